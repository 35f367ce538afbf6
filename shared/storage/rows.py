"""Row keys: where each thing lies in the table. What a row holds: see `records`.

Where a row lies is the state it is in; docs/design.md has the table of rows.
"""

from datetime import datetime

from shared.jobs.times import key_text

ALL_RUNS = ("run:", "run;")
ALL_LOADS = ("load:", "load;")


def job_key(job_id: str) -> str:
    """`job:{id}`."""
    return f"job:{job_id}"


def timer_key(due: datetime, job_id: str, seq: int | None = None) -> str:
    """`timer:{due}:{id}`, or `timer:{due}:{id}:{seq}` of an idle run."""
    return f"timer:{key_text(due)}:{job_id}" + (f":{seq:010d}" if seq is not None else "")


def run_key(job_id: str, seq: int) -> str:
    """`run:{id}:{seq}`."""
    return f"run:{job_id}:{seq:010d}"


def idle_key(job_id: str, seq: int) -> str:
    """`idle:{id}:{seq}`: where a run in nobody's memory is: its timer, or its load row."""
    return f"idle:{job_id}:{seq:010d}"


def type_text(service_type: str) -> str:
    """A service type as a key holds it: keys cannot hold a slash, and service types hold no comma."""
    return service_type.replace("/", ",")


def type_of_text(text: str) -> str:
    """The service type of a `type_text`."""
    return text.replace(",", "/")


def load_key(service_type: str, job_id: str, seq: int) -> str:
    """`load:{serviceType}:{id}:{seq}`: a run that waits for a host of its service type."""
    return f"load:{type_text(service_type)}:{job_id}:{seq:010d}"


def load_range(service_type: str, job_id: str = "") -> tuple[str, str]:
    """The keys of the runs that wait for hosts of this type, of all jobs or of one: types as keys hold them have
    none of `: ;`."""
    start = f"load:{type_text(service_type)}" + (f":{job_id}" if job_id else "")
    return f"{start}:", f"{start};"


def past_key(job_id: str, seq: int, history_limit: int) -> str:
    """`past:{id}:{slot}`: history is a ring of `history_limit` slots."""
    return f"past:{job_id}:{seq % history_limit:05d}"


def job_range(kind: str, job_id: str) -> tuple[str, str]:
    """The keys of one job's rows of a kind: ids hold none of `: ;`, so no other job's are among them."""
    return f"{kind}:{job_id}:", f"{kind}:{job_id};"


def prefix_range(prefix: str) -> tuple[str, str]:
    """The keys of the jobs whose id starts with `prefix`."""
    return f"job:{prefix}", f"job:{prefix}\x7f"


def timer_range(before: datetime, since: datetime | None = None) -> tuple[str, str]:
    """The keys of the timers with since <= due < before, both whole seconds."""
    return f"timer:{key_text(since)}" if since else "timer:", f"timer:{key_text(before)}"
