"""POST /CreateTimerJob: the request and the answers of the Logic Apps job scheduler template."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.engine.admin import Admin, entity_tag
from shared.engine.clock import Clock
from shared.engine.policy import Policy
from shared.errors import Conflict, Fault, InvalidInput, Misconfigured
from shared.jobs.identity import new_id
from shared.jobs.model import State
from shared.jobs.spec import parse_job
from shared.jobs.template import TimerJob, as_asked, read_timer_job, time_text
from shared.storage.jobs import Jobs
from shared.web.exchange import Request, Response, flag, known_query, path_of, read_json

FAILED = "Failed to create timer job"
LOOKED_AT = 100  # jobs of one timerjobid in one partition, where one that is not being deleted is looked for


def read_template_action(text: str, policy: Policy, now: datetime) -> Mapping[str, Any] | None:
    """The action in the setting TEMPLATE_ACTION, None if it is empty. Raises Misconfigured."""
    if not text:
        return None
    try:
        action: dict[str, Any] = json.loads(text)
        policy.check(parse_job({"trigger": {"type": "Once"}, "action": action}, now), now)
    except (ValueError, RecursionError, InvalidInput) as error:
        raise Misconfigured([Fault("TEMPLATE_ACTION", f"is not an action: {error}")]) from error
    return action


class TemplateRoute:
    """`/CreateTimerJob`."""

    def __init__(
        self, admin: Admin, jobs: Jobs, clock: Clock, max_body: int, action: Mapping[str, Any] | None
    ) -> None:
        self._admin = admin
        self._jobs = jobs
        self._clock = clock
        self._max_body = max_body
        self._action = action

    async def create(self, request: Request) -> Response:
        """A new job for each request; with `unique=true` only if none has its timerjobid. Answers are texts."""
        try:
            known_query(request, "unique")
            unique = flag(request, "unique")
            now = self._clock()
            timer = read_timer_job(read_json(request, self._max_body), self._action, now)
            job, _ = await self._admin.draft(timer.body, now, await self._id(timer, unique))
        except InvalidInput as error:
            faults = [f"{fault.field} {fault.reason}" for fault in as_asked(error).faults]
            return _text(400, "\n".join([FAILED, *faults]))
        except Conflict as error:
            return _text(409, str(error))
        try:
            await self._admin.insert(job, now)
        except Conflict:
            return _text(409, _exists(job.id))
        location = f"{path_of(request).rpartition('/')[0]}/jobs/{job.id}"
        text = f"Next execution time will be at {time_text(timer.first)}"
        return _text(201, text, {"Location": location, "ETag": entity_tag(job)})

    async def _id(self, timer: TimerJob, unique: bool) -> str:
        """The id of the job to be made: it begins alike for all of a timerjobid, of which a unique one has just
        that, so that there cannot be two. Raises Conflict where it must be the only one and is not."""
        common = f"timerjob-{hashlib.sha256(timer.timerjobid.encode()).hexdigest()[:32]}"
        if not unique:
            return f"{common}.{new_id()[:16]}"
        pages = await asyncio.gather(*(self._jobs.page(p, common, "", LOOKED_AT) for p in self._jobs.partitions))
        for page in pages:
            for job in page.jobs:
                if job.state is not State.DELETING:
                    raise Conflict(_exists(job.id))
        return common


def _exists(job_id: str) -> str:
    return f"A timer job with this timerjobid exists: {job_id}"


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    content = text.encode(errors="replace")
    return Response(
        status=status, body=content, headers={"Content-Type": "text/plain; charset=utf-8"} | dict(headers or {})
    )
