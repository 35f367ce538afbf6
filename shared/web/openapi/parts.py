"""What routes are described with: their parameters, headers, answers and errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs import identity
from shared.jobs.fields import JOB_ID
from shared.web.bulk import MEDIA_TYPES
from shared.web.hosts import MAX_WAIT
from shared.web.jobs import MAX_OCCURRENCES, MAX_PAGE
from shared.web.openapi.examples import HOST, ID, Example

JSON = "application/json"
LINES = MEDIA_TYPES[0]
PLAIN = "text/plain"
TEXT = {"type": "string"}
ETAG = {"type": "string", "pattern": '^"[^"]+"$'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a request may carry beside its body. `place`: path, query or header."""

    place: str
    schema: Mapping[str, Any]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What comes with a status. `schema` is the name of a component; without one there is no body.

    Of JSON lines it is what each line is. `headers` are names of HEADERS.
    """

    says: str
    schema: str | None = None
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a request brings: a component's name (of JSON lines, what each is), and as which media type.

    One that is not `required` may be left out, and is then as one that says nothing: `{}`, or no lines.
    """

    schema: str
    media_type: str = JSON
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. `path` is as `function_app` binds it, `name` the function's.

    `parameters` are names of PARAMETERS, beside those in the path. `problems` are the statuses of errors that
    this route has beside those of all (USUAL).
    """

    method: str
    path: str
    name: str
    says: str
    answers: Mapping[int, Answer]
    parameters: tuple[str, ...] = ()
    body: Body | None = None
    problems: tuple[int, ...] = ()
    usual: bool = True
    anonymous: bool = False
    examples: tuple[Example, ...] = ()


USUAL = (400, 500, 503)
PROBLEMS = {
    400: "The input is wrong; `errors` names the fields",
    404: "There is no such job or run",
    409: "It does not go with what exists",
    412: "A condition of the request does not hold",
    413: "The body, or a definition in it, is too large: over 256 KiB (`MAX_BODY`), or as the route says",
    415: "The body is of another type",
    422: "The Idempotency-Key came before with another body",
    500: "An error of the scheduler's own",
    503: "Storage does not answer, or keeps being changed; trying again may help",
}
HEADERS: dict[str, tuple[Mapping[str, Any], str]] = {
    "ETag": (ETAG, "the version of the job, for `If-Match`; the scheduler's own writes do not change it"),
    "Location": (TEXT, "the path of the job"),
}
PARAMETERS = {
    "id": Parameter(place="path", schema={"type": "string", "examples": [ID]} | JOB_ID, says="the job's id"),
    "seq": Parameter(
        place="path",
        schema={"type": "string", "pattern": "^[0-9]{1,10}$", "examples": ["1"]},
        says="the number of a run or a stretch",
    ),
    "host": Parameter(
        place="path",
        schema={"type": "string", "pattern": "^[0-9a-f]{32}$", "examples": [HOST]},
        says="the host's id, as it was given when it registered",
    ),
    "wait": Parameter(
        place="query",
        schema={"type": "integer", "minimum": 0, "maximum": MAX_WAIT, "default": 20},
        says="for how many seconds to wait for an event",
    ),
    "If-Match": Parameter(
        place="header", schema=TEXT, says="entity tags, one of which the job must have, or `*`: any"
    ),
    "Idempotency-Key": Parameter(
        place="header",
        schema={"type": "string", "pattern": "^[!-~]{1,255}$"},
        says="names the request: a repetition makes no second job; without an id, the job's id is made of it",
    ),
    "If-None-Match": Parameter(place="header", schema={"const": "*"}, says="`*`: there must be no such job"),
    "resetState": Parameter(
        place="query",
        schema={"enum": ["true", "false"]},
        says="`true`: the schedule begins anew, even if it means the same as before",
    ),
    "prefix": Parameter(
        place="query",
        schema={"type": "string", "pattern": f"^({identity.ID.pattern})?$"},
        says="the beginning of ids",
    ),
    "state": Parameter(
        place="query", schema={"enum": ["Enabled", "Suspended", "Completed"]}, says="only jobs in this state"
    ),
    "tag": Parameter(
        place="query",
        schema={"type": "string", "pattern": "^$|:"},
        says="only jobs with this tag, as `name:value`",
    ),
    "pageSize": Parameter(
        place="query",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100},
        says="how many at most; pages may be shorter though more follow",
    ),
    "continuation": Parameter(place="query", schema=TEXT, says="what the page before gave; leads on from there"),
    "unique": Parameter(
        place="query", schema={"enum": ["true", "false"]}, says="`true`: only if no job has this timerjobid"
    ),
    "count": Parameter(
        place="query",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_OCCURRENCES, "default": 10},
        says="how many occurrences at most",
    ),
}
