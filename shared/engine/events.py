"""Events: how runs end otherwise than well, and that jobs are completed, as CloudEvents on a queue."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from shared.engine.logs import about_ended
from shared.jobs.context import TOLD, Completion, job_event
from shared.jobs.model import Ended, Status, Stretch
from shared.storage.outbox import Outbox
from shared.storage.table import StoreFailed

log = logging.getLogger("timerjobs.events")


class Events:
    """Sends events before what they tell of is recorded, so at least once; without a queue, none.

    Failed runs are logged besides: an alert looks for that line, queue or none.
    """

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox

    async def ended(self, job_id: str, stamp: str, records: Iterable[Ended | Stretch]) -> None:
        """Tells of the runs and stretches that did not succeed."""
        for record in records:
            if isinstance(record, Ended) and record.status in (Status.FAILED, Status.TIMED_OUT):
                log.warning(
                    "a run has failed: job %s, run %d: %s: %s",
                    job_id,
                    record.seq,
                    record.status,
                    record.reason,
                    extra={"action": "execute", **about_ended(job_id, stamp, record)},
                )
            if str(record.status) in TOLD:
                await self._send(job_id, record.seq, job_event(job_id, stamp, record))

    async def completed(self, job_id: str, stamp: str, seq: int, at: datetime) -> None:
        """Tells that a job has nothing more to fire; `seq` is its last number."""
        await self._send(job_id, seq, job_event(job_id, stamp, Completion(seq=seq, at=at)))

    async def _send(self, job_id: str, seq: int, event: Mapping[str, Any]) -> None:
        """Sends an event. Where its queue cannot be reached, jobs go on and the log has the event."""
        if self._outbox is None:
            return
        try:
            await self._outbox.put(event)
        except StoreFailed as failure:
            about = {"job": job_id, "run": seq}
            log.error("an event was not sent: %s: %s", failure, event, extra={"action": "tell", **about})
