"""App settings: bounds and defaults; every fault is told at once."""

from datetime import timedelta

import pytest

from shared.errors import Misconfigured
from shared.settings import read_settings

STORAGE = {"AzureWebJobsStorage": "UseDevelopmentStorage=true"}


def test_defaults() -> None:
    settings = read_settings(STORAGE)
    assert settings.partitions == 16
    assert settings.horizon == timedelta(days=6)
    assert settings.default_max_lateness == timedelta(hours=1)


def test_an_empty_setting_is_absent() -> None:
    assert read_settings(STORAGE | {"PARTITIONS": ""}).partitions == 16


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARTITIONS", "0"),
        ("PARTITIONS", "257"),
        ("PARTITIONS", "1.5"),
        ("PARTITIONS", "-1"),
        ("PARTITIONS", "٣"),
        ("HORIZON", "P7D"),
        ("HORIZON", "6 days"),
        ("HORIZON", "P1M"),
        ("LOCK_DURATION", "PT1S"),
        ("DETECTION_PERIOD", "PT0S"),
        ("DEFAULT_MAX_LATENESS", "-PT1H"),
        ("MAX_EXECUTING", "0"),
        ("TABLE_NAME", "tt"),
        ("TABLE_NAME", "a_b"),
        ("QUEUE_NAME", "Timerjobs-Tickets"),
        ("QUEUE_NAME", "a--b"),
        ("EVENTS_QUEUE", "x"),
        ("MIN_INTERVAL", "PT0S"),
        ("MIN_INTERVAL", "P2D"),
        ("MAX_BODY", "1023"),
        ("MAX_BODY", "256K"),
        ("MAX_ACTIONS", "0"),
        ("MAX_ACTIONS", "101"),
    ],
)
def test_a_value_out_of_bounds_is_told_with_its_setting(name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings(STORAGE | {name: value})
    assert [fault.field for fault in raised.value.faults] == [name]
    assert name not in raised.value.told()


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({"PARTITIONS": "x", "HORIZON": "y"})
    assert {fault.field for fault in raised.value.faults} == {"AzureWebJobsStorage", "PARTITIONS", "HORIZON"}
