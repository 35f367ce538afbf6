"""The models as the API's description uses them."""

import jsonschema
import pytest

from shared.recurrence import MonthlyOccurrence, Recurrence, RecurrenceSchedule

SCHEMA = Recurrence.model_json_schema(mode="validation")


def accepts(recurrence: object) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(recurrence)


def test_the_schema_names_the_properties_as_the_json_does() -> None:
    assert set(SCHEMA["properties"]) == {
        "frequency",
        "interval",
        "timeZone",
        "startTime",
        "schedule",
        "endTime",
        "count",
    }
    assert SCHEMA["required"] == ["frequency", "interval"]
    assert set(RecurrenceSchedule.model_json_schema()["properties"]) == {
        "hours",
        "minutes",
        "weekDays",
        "monthDays",
        "monthlyOccurrences",
    }
    assert set(MonthlyOccurrence.model_json_schema()["properties"]) == {"day", "occurrence"}


@pytest.mark.parametrize(
    "recurrence",
    [
        {"frequency": "Day", "interval": 1},
        {"frequency": "Day", "interval": "1", "schedule": {"hours": ["8", 16], "minutes": 30}},
        {"frequency": "Week", "interval": 1, "schedule": {"weekDays": "Monday"}, "timeZone": None},
        {"frequency": "Month", "interval": 1, "schedule": {"monthDays": [-1]}},
        {
            "frequency": "Month",
            "interval": 1,
            "schedule": {"monthlyOccurrences": [{"day": "Friday", "occurrence": -1}]},
        },
    ],
)
def test_the_schema_accepts_what_is_accepted(recurrence: object) -> None:
    assert accepts(recurrence)
    Recurrence.model_validate(recurrence)


@pytest.mark.parametrize(
    "recurrence",
    [
        {"frequency": "Day"},
        {"frequency": "Day", "interval": 0},
        {"frequency": "Day", "interval": True},
        {"frequency": "Day", "interval": "x"},
        {"frequency": "Day", "interval": 1, "schedule": {"hours": [24]}},
        {"frequency": "Day", "interval": 1, "schedule": {"hours": []}},
        {"frequency": "Day", "interval": 1, "unknown": 1},
        {"frequency": "Week", "interval": 1, "schedule": {"weekDays": ["Mon"]}},
    ],
)
def test_the_schema_refuses_what_is_refused(recurrence: object) -> None:
    assert not accepts(recurrence)
