"""The shape of a recurrence object (V1 to V8): what can be said of each property by itself.

What properties mean for each other is checked in `reading`. Names are those of the JSON, in snake case.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError

from shared.errors import MAX_TOLD

_DECIMAL = re.compile(r"-?[0-9]{1,18}")
SOME = Field(min_length=1)  # V10


class FirstFault:
    """For Annotated[list or tuple, …]: behind the first member that is wrong no further one is looked at."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "fail_fast": True}


@cache
def names_of(model: type[BaseModel]) -> frozenset[str]:
    """A model's properties, by their names in JSON."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


def few_unknown(given: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The properties given that a model has, and of the others as many as are told."""
    names = names_of(model)
    if given.keys() <= names:
        return dict(given)
    known = {name: value for name, value in given.items() if name in names}
    unknown = ((name, value) for name, value in given.items() if name not in names)
    return known | dict(islice(unknown, MAX_TOLD))


def _integer(value: Any) -> int:
    """Integers may be decimal strings, as the designer writes them; nothing else may (V4)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return int(value)
    raise PydanticCustomError("integer", "must be an integer")


def _integer_or_text(low: int, high: int | None = None) -> BeforeValidator:
    text = Annotated[str, Field(pattern=f"^{_DECIMAL.pattern}$")]
    return BeforeValidator(_integer, json_schema_input_type=Annotated[int, Field(ge=low, le=high)] | text)


def _not_zero(value: int) -> int:
    if value == 0:
        raise PydanticCustomError("zero", "must not be 0")
    return value


def _capitalised(value: Any) -> Any:
    return value.capitalize() if isinstance(value, str) else value


def _in_any_case(names: Any) -> BeforeValidator:
    patterns = ("".join(f"[{c.upper()}{c.lower()}]" for c in name) for name in get_args(names))
    text = Annotated[str, Field(pattern=f"^({'|'.join(patterns)})$")]
    return BeforeValidator(_capitalised, json_schema_input_type=names | text)


def _once_each(value: Any) -> Any:
    """A list without what it names again, which says nothing more."""
    if not isinstance(value, list):
        return value
    return list({_key(item): item for item in value}.values())


def _key(item: Any) -> Any:
    if isinstance(item, dict) and all(type(value) in (str, int) for value in item.values()):
        return tuple(item.items())
    return (type(item), item) if isinstance(item, str | int) else id(item)


def _one_or_more(item: Any) -> BeforeValidator:
    """A scalar stands for a list of one (V5)."""
    return BeforeValidator(
        lambda value: _once_each(value if isinstance(value, list) else [value]),
        json_schema_input_type=item | Annotated[list[item], SOME],
    )


_Frequency = Literal["Second", "Minute", "Hour", "Day", "Week", "Month"]
_WeekDay = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
Frequency = Annotated[_Frequency, _in_any_case(_Frequency)]
WeekDay = Annotated[_WeekDay, _in_any_case(_WeekDay)]
Positive = Annotated[int, Field(ge=1), _integer_or_text(1)]
Hour = Annotated[int, Field(ge=0, le=23), _integer_or_text(0, 23)]
Minute = Annotated[int, Field(ge=0, le=59), _integer_or_text(0, 59)]
DayOfMonth = Annotated[int, Field(ge=-31, le=31), AfterValidator(_not_zero), _integer_or_text(-31, 31)]
Nth = Annotated[int, Field(ge=-5, le=5), AfterValidator(_not_zero), _integer_or_text(-5, 5)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, given: Any) -> Any:
        return few_unknown(given, cls) if isinstance(given, Mapping) else given


class MonthlyOccurrence(_Shape):
    """The n-th such weekday of a month, from its end if negative; every one if no `occurrence` (V8)."""

    day: WeekDay
    occurrence: Nth | None = None


class RecurrenceSchedule(_Shape):
    """On which days and at which times of day a Day, Week or Month recurrence falls."""

    hours: Annotated[tuple[Hour, ...], FirstFault(), SOME, _one_or_more(Hour)] | None = None
    minutes: Annotated[tuple[Minute, ...], FirstFault(), SOME, _one_or_more(Minute)] | None = None
    week_days: Annotated[tuple[WeekDay, ...], FirstFault(), SOME, _one_or_more(WeekDay)] | None = None
    month_days: Annotated[tuple[DayOfMonth, ...], FirstFault(), SOME, _one_or_more(DayOfMonth)] | None = None
    monthly_occurrences: (
        Annotated[tuple[MonthlyOccurrence, ...], FirstFault(), SOME, BeforeValidator(_once_each)] | None
    ) = None


class Recurrence(_Shape):
    """How often, from when, until when.

    Times are `YYYY-MM-DDThh:mm[:ss[.f]]`, either ending in Z or read in `timeZone`.
    """

    frequency: Frequency
    interval: Positive
    time_zone: str | None = None
    start_time: str | None = None
    schedule: RecurrenceSchedule | None = None
    end_time: str | None = None
    count: Positive | None = None
