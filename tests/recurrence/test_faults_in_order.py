"""Which faults are told together, and in which order (V13)."""

from tests.recurrence.support import fields, recurrence_fields, schedule_fields


def test_v13_all_independent_faults_come_in_order() -> None:
    found = recurrence_fields(
        count=0,
        endTime="never",
        schedule={"monthDays": [0], "minutes": [61], "hours": [], "days": []},
        startTime="2024-05-02",
        timeZone="Mars/Phobos",
        interval="x",
        frequency="Fortnight",
        repeat=True,
    )
    assert found == [
        "schedule.days",
        "repeat",
        "frequency",
        "interval",
        "timeZone",
        "startTime",
        "schedule.hours",
        "schedule.minutes",
        "schedule.monthDays",
        "endTime",
        "count",
    ]


def test_v13_a_bound_waits_for_the_frequency_it_depends_on() -> None:
    assert recurrence_fields(frequency="Fortnight", interval=10**6) == ["frequency"]


def test_v13_a_wall_time_waits_for_the_zone_it_depends_on() -> None:
    assert recurrence_fields(timeZone="Mars/Phobos", startTime="2099-01-01T00:00:00") == ["timeZone"]


def test_v13_a_start_in_utc_does_not_wait_for_the_zone() -> None:
    assert recurrence_fields(timeZone="Mars/Phobos", startTime="2099-01-01T00:00:00Z") == ["timeZone", "startTime"]


def test_v13_an_end_before_the_start_waits_for_the_start() -> None:
    assert recurrence_fields(startTime="soon", endTime="2024-05-01T00:00:00Z") == ["startTime"]


def test_v13_one_of_two_properties_that_exclude_each_other_is_told_by_itself_first() -> None:
    found = schedule_fields("Month", monthDays=[0], monthlyOccurrences=[{"day": "Friday"}])
    assert found == ["schedule.monthDays"]


def test_v13_days_that_never_come_are_told_last_and_beside_independent_faults() -> None:
    found = fields(
        {
            "recurrence": {
                "frequency": "Month",
                "interval": 12,
                "startTime": "2024-06-01T00:00:00Z",
                "schedule": {"monthDays": [31]},
                "count": 0,
            },
            "inputs": {"delay": "PT5M"},
        }
    )
    assert found == ["recurrence.count", "inputs.delay", "recurrence.schedule"]


def test_v13_days_that_never_come_wait_for_the_interval() -> None:
    found = recurrence_fields(
        frequency="Month", interval=24, startTime="2024-06-01T00:00:00Z", schedule={"monthDays": [31]}
    )
    assert found == ["interval"]
