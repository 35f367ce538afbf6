"""The rows of history: how a run ended, or a stretch of occurrences that were not fired."""

from datetime import datetime
from typing import Any

from shared.jobs.definition import unpack
from shared.jobs.model import FORMAT_VERSION, Ended, Status, Stretch, members
from shared.jobs.progress import pack_record
from shared.jobs.times import from_row_text, row_text
from shared.storage.chunks import CHUNK
from shared.storage.formats import check_format
from shared.storage.rows import past_key
from shared.storage.table import Row


def past_row(
    job_id: str, record: Ended | Stretch, history_limit: int, mark: str = "", kept: bool = True
) -> dict[str, Any]:
    """The history row of a run that ended, or of a stretch; of one that is not `kept`, no more than its mark."""
    plain = {k: row_text(v) if isinstance(v, datetime) else v for k, v in members(record).items()}
    return {
        "RowKey": past_key(job_id, record.seq, history_limit),
        "seq": record.seq,
        "kind": "mark" if not kept else "stretch" if isinstance(record, Stretch) else "run",
        "record": pack_record(plain, CHUNK) if kept else b"",
        "mark": mark,
        "v": FORMAT_VERSION,
    }


def read_past(row: Row) -> Ended | Stretch:
    """The history record in a row. Raises NewerFormat."""
    check_format(row)
    plain: dict[str, Any] = unpack(row["record"])
    plain["status"] = Status(plain["status"])
    times = ("first", "last") if row["kind"] == "stretch" else ("scheduled", "started", "ended")
    plain |= {name: from_row_text(plain[name]) for name in times}
    return Stretch(**plain) if row["kind"] == "stretch" else Ended(**plain)
