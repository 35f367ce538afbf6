"""`POST /preview` gives what the calendar gives: a sample of its cases, over the API."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Bench

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "recurrence" / "cases.json").read_text("utf-8")
)
SAMPLE = CASES[::6]
TYPES = {"recurrence": "Recurrence", "slidingWindow": "SlidingWindow"}


def trigger_of(case: dict[str, Any]) -> dict[str, Any]:
    trigger = {"type": TYPES[case["trigger"]], "recurrence": case["recurrence"]}
    trigger |= case.get("options", {})
    return trigger | ({"inputs": case["inputs"]} if "inputs" in case else {})


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case["id"])
async def test_a_preview_shows_what_the_calendar_says(at: Bench, case: dict[str, Any]) -> None:
    body = {"trigger": trigger_of(case), "createdAt": case["created_at"], "count": case["count"]}
    body |= {"parameters": case["parameters"]} if "parameters" in case else {}
    response = await at.call("preview", "preview", body=body)
    if isinstance(case["expected"], dict):
        named = case["expected"]["error"]
        paths = {"delay": "trigger.inputs.delay", "parameters": "parameters"}
        assert response.status == 400
        assert response.body["errors"][0]["field"] == paths.get(named, f"trigger.recurrence.{named}")
        return
    assert response.status == 200, response.body
    items = response.body["occurrences"]
    assert [item["scheduledTime"] for item in items] == case["expected"]
    assert response.body["completed"] is (len(items) < case["count"])
    if "windows" in case:
        assert [[item["windowStartTime"], item["windowEndTime"]] for item in items] == case["windows"]
        assert [item["dueTime"] for item in items] == case["due"]
