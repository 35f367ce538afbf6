"""Names of things: ids, the partition of a job, stamps."""

import hashlib
import re
import secrets
from datetime import datetime

from shared.errors import Fault, InvalidInput
from shared.jobs.times import key_text

ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


def check_id(job_id: object) -> str:
    """`job_id`, if it is one. Raises InvalidInput on field `id`."""
    if not isinstance(job_id, str) or not ID.fullmatch(job_id) or job_id in (".", ".."):
        raise InvalidInput(
            [Fault("id", "must be 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and neither '.' nor '..'")]
        )
    return job_id


def new_id() -> str:
    """An id for a job whose caller gave none: 128 random bits."""
    return secrets.token_hex(16)


def new_stamp(now: datetime) -> str:
    """The name of a job's life from `now` on. Two lives never share one, not even within a second."""
    return f"{key_text(now)}-{secrets.token_hex(4)}"


def partition_of(job_id: str, partitions: int) -> str:
    """The PartitionKey of a job's rows: two hex digits of a hash that is the same in every process."""
    digest = hashlib.sha256(job_id.encode()).digest()
    return f"{int.from_bytes(digest[:8]) % partitions:02x}"


def all_partitions(partitions: int) -> list[str]:
    """Every PartitionKey that `partition_of` can give."""
    return [f"{index:02x}" for index in range(partitions)]
