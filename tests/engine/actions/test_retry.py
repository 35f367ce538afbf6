"""Retry policies: what they mean, their bounds, the draw, and Retry-After."""

from datetime import timedelta
from typing import Any

import pytest

from shared.engine.actions.inputs import BadInput
from shared.engine.actions.retry import (
    DEFAULT_RETRY,
    RetryPolicy,
    read_retry_policy,
    retry_after,
)
from tests.engine.actions.support import NOW


def seconds(*numbers: float) -> tuple[timedelta, ...]:
    return tuple(timedelta(seconds=number) for number in numbers)


def test_nothing_said_means_four_retries_from_ranges_that_double_within_5_and_45_seconds() -> None:
    policy = read_retry_policy(None)
    assert policy == DEFAULT_RETRY
    assert policy.count == 4
    assert [policy.bounds(k) for k in (1, 2, 3, 4)] == [
        seconds(5, 7.5),
        seconds(7.5, 15),
        seconds(15, 30),
        seconds(30, 45),
    ]


def test_none_means_no_retry() -> None:
    assert read_retry_policy({"type": "none"}).count == 0


def test_fixed_waits_the_same_each_time() -> None:
    policy = read_retry_policy({"type": "fixed", "count": 3, "interval": "PT30S"})
    assert policy.count == 3
    assert {policy.delay(retry, str(retry)) for retry in (1, 2, 3)} == {timedelta(seconds=30)}


def exponential(**more: Any) -> RetryPolicy:
    return read_retry_policy({"type": "exponential", "count": 10, "interval": "PT10S"} | more)


def test_exponential_draws_from_ranges_that_double() -> None:
    policy = exponential()
    assert [policy.bounds(k) for k in (1, 2, 3)] == [seconds(5, 10), seconds(10, 20), seconds(20, 40)]


def test_a_minimum_and_a_maximum_bound_the_ranges() -> None:
    policy = exponential(minimumInterval="PT15S", maximumInterval="PT1M")
    assert [policy.bounds(k) for k in (1, 2, 3, 4, 5, 90)] == [
        seconds(15, 15),
        seconds(15, 20),
        seconds(20, 40),
        seconds(40, 60),
        seconds(60, 60),
        seconds(60, 60),
    ]


def test_an_interval_never_exceeds_a_day() -> None:
    assert exponential(count=90).bounds(90) == (timedelta(days=1), timedelta(days=1))


def test_a_short_interval_is_not_raised_to_the_usual_minimum() -> None:
    assert exponential(interval="PT2S").bounds(1) == seconds(2, 2)


def test_the_draw_follows_from_the_seed_and_fills_the_range() -> None:
    policy = exponential()
    draws = [policy.delay(3, f"key-{number}:3") for number in range(300)]
    assert draws == [policy.delay(3, f"key-{number}:3") for number in range(300)]
    low, high = policy.bounds(3)
    assert all(low <= draw <= high for draw in draws)
    fifths = {int((draw - low) / (high - low) * 5) for draw in draws}
    assert fifths == {0, 1, 2, 3, 4}


FIXED = {"type": "fixed", "count": 1, "interval": "PT10S"}
EXPONENTIAL = FIXED | {"type": "exponential"}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("none", "retryPolicy"),
        ([], "retryPolicy"),
        ({}, "retryPolicy.type"),
        ({"type": "linear"}, "retryPolicy.type"),
        ({"type": ["none"]}, "retryPolicy.type"),
        ({"type": "none", "count": 1}, "retryPolicy.count"),
        ({"type": "fixed", "interval": "PT10S"}, "retryPolicy.count"),
        (FIXED | {"count": 0}, "retryPolicy.count"),
        (FIXED | {"count": 91}, "retryPolicy.count"),
        (FIXED | {"count": "3"}, "retryPolicy.count"),
        (FIXED | {"count": True}, "retryPolicy.count"),
        ({"type": "fixed", "count": 1}, "retryPolicy.interval"),
        (FIXED | {"interval": 10}, "retryPolicy.interval"),
        (FIXED | {"interval": "10s"}, "retryPolicy.interval"),
        (FIXED | {"interval": "PT0S"}, "retryPolicy.interval"),
        (FIXED | {"interval": "P2D"}, "retryPolicy.interval"),
        (FIXED | {"minimumInterval": "PT5S"}, "retryPolicy.minimumInterval"),
        (EXPONENTIAL | {"minimumInterval": 5}, "retryPolicy.minimumInterval"),
        (EXPONENTIAL | {"minimumInterval": "PT1M", "maximumInterval": "PT30S"}, "retryPolicy.minimumInterval"),
        (EXPONENTIAL | {"maximumInterval": "P2D"}, "retryPolicy.maximumInterval"),
        (EXPONENTIAL | {"jitter": "PT1S"}, "retryPolicy.jitter"),
    ],
)
def test_a_policy_that_is_none_is_told_with_its_field(raw: Any, field: str) -> None:
    with pytest.raises(BadInput) as told:
        read_retry_policy(raw)
    assert told.value.fault.field == field
    assert str(told.value).startswith(f"{field} ")


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (None, None),
        ("120", timedelta(minutes=2)),
        (" 0 ", timedelta(0)),
        ("86401", timedelta(days=1)),
        ("9" * 4000, timedelta(days=1)),
        ("Tue, 08 Sep 2026 12:00:30 GMT", timedelta(seconds=30)),
        ("Tue, 08 Sep 2026 12:00:30 -0000", timedelta(seconds=30)),
        ("Tue, 08 Sep 2026 11:00:00 GMT", timedelta(0)),
        ("Tue, 08 Sep 2027 12:00:00 GMT", timedelta(days=1)),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("Tue, 99 Sep 2026 12:00:30 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_at_most_a_day(text: str | None, waits: timedelta | None) -> None:
    assert retry_after(text, NOW) == waits
