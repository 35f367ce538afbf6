"""Events: how runs end otherwise than well, and that jobs are completed, as CloudEvents on a queue."""

from collections.abc import Iterable
from datetime import datetime

from shared.jobs.context import TOLD, Completion, job_event
from shared.jobs.model import Ended, Stretch
from shared.storage.outbox import Outbox


class Events:
    """Sends events before what they tell of is recorded, so at least once; without a queue, none."""

    def __init__(self, outbox: Outbox | None) -> None:
        self._outbox = outbox

    async def ended(self, job_id: str, stamp: str, records: Iterable[Ended | Stretch]) -> None:
        """Tells of the runs and stretches that did not succeed."""
        if self._outbox:
            for record in records:
                if str(record.status) in TOLD:
                    await self._outbox.put(job_event(job_id, stamp, record))

    async def completed(self, job_id: str, stamp: str, seq: int, at: datetime) -> None:
        """Tells that a job has nothing more to fire; `seq` is its last number."""
        if self._outbox:
            await self._outbox.put(job_event(job_id, stamp, Completion(seq=seq, at=at)))
