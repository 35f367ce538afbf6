"""docs/recurrence.md says what is: its examples and tables are read and compared."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shared.recurrence import compile_trigger
from shared.recurrence.models import RecurrenceSchedule
from shared.recurrence.reading import LONGEST, USABLE_WITH
from tests.recurrence.support import SHAPE, at, compiled, first
from tests.recurrence.test_cases import CASES

TEXT = Path(__file__).parents[2].joinpath("docs", "recurrence.md").read_text("utf-8")
CENTRAL = "Central Standard Time"


class Example(NamedTuple):
    number: int
    kinds: list[str]
    created: str
    trigger: dict[str, Any]
    occurrences: str


def examples() -> Iterator[Example]:
    section = TEXT.split("\n## Examples\n")[1].split("\n## ")[0]
    for part in section.split("\n### ")[1:]:
        number = int(part.split(".")[0])
        said = re.search(r"^(Recurrence|Recurrence or SlidingWindow), created at `([^`]+)`\.", part, re.MULTILINE)
        assert said, part
        (trigger,) = re.findall(r"```json\n(.*?)```", part, re.DOTALL)
        (listed,) = re.findall(r"```text\n(.*?)```", part, re.DOTALL)
        yield Example(number, said[1].split(" or "), said[2], json.loads(trigger), listed)


EXAMPLES = list(examples())


def test_there_are_all_the_examples() -> None:
    assert [example.number for example in EXAMPLES] == list(range(1, 22))
    assert [len(example.kinds) for example in EXAMPLES] == [2] * 6 + [1] * 15


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.number))
def test_an_example_fires_as_it_says(example: Example) -> None:
    for kind in example.kinds:
        schedule = compile_trigger(example.trigger | {"type": kind}, at(example.created))
        found = "\n".join(first(schedule, 40)) + "\n"
        beginning, _, later = example.occurrences.partition("...\n")
        assert found.startswith(beginning)
        assert beginning
        assert f"\n{later}" in found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.number))
def test_an_example_is_a_case_of_the_case_file(example: Example) -> None:
    cases = {case["id"]: case for case in CASES}
    for kind in example.kinds:
        suffix = {"SlidingWindow": "-SW", "Recurrence": "-R"}[kind] if len(example.kinds) > 1 else ""
        case = cases[f"ROW{example.number:02}{suffix}"]
        assert example.trigger["recurrence"] == case["recurrence"]
        assert example.created == case["created_at"]
        lines = [line for line in example.occurrences.splitlines() if line != "..."]
        assert [text for text in case["expected"] if text in lines] == lines


def tables() -> list[list[list[str]]]:
    """All tables of the page, as rows of cells."""
    found: list[list[list[str]]] = [[]]
    for line in TEXT.splitlines():
        if line.startswith("| "):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return found


DAYLIGHT_SAVING = [table[2:] for table in tables() if table and table[0][0] == "date"]


def test_there_are_both_tables_of_daylight_saving() -> None:
    assert [[row[0] for row in table] for table in DAYLIGHT_SAVING] == [
        ["2019-03-09", "2019-03-10", "2019-03-11"],
        ["2019-11-02", "2019-11-03", "2019-11-04"],
    ]


@pytest.mark.parametrize("table", DAYLIGHT_SAVING, ids=["forward", "back"])
@pytest.mark.parametrize(("clock", "column"), [("01:30", 1), ("02:30", 3)])
def test_a_table_of_daylight_saving_is_right(table: list[list[str]], clock: str, column: int) -> None:
    dates = [row[0] for row in table]
    recurrence = {"frequency": "Day", "interval": 1, "startTime": f"{dates[0]}T{clock}:00", "timeZone": CENTRAL}
    schedule = compiled(recurrence, "2019-01-01T00:00:00Z")
    runs = [at(text) for text in first(schedule, 3)]
    assert [f"{schedule.local(run):%Y-%m-%d %H:%M}" for run in runs] == [
        f"{row[0]} {row[column]}" for row in table
    ]
    assert [f"{run:%Y-%m-%d %H:%M}" for run in runs] == [f"{row[0]} {row[column + 1]}" for row in table]


def test_the_table_of_frequencies_is_right() -> None:
    (table,) = [table[2:] for table in tables() if table and table[0][0] == "frequency"]
    for name, longest, usable in table:
        frequency = name.strip("`")
        assert int(longest.replace(",", "")) == LONGEST[frequency]
        assert set(re.findall(r"`(\w+)`", usable)) == {
            name for name, frequencies in USABLE_WITH.items() if frequency in frequencies
        }
    assert [row[0].strip("`") for row in table] == list(LONGEST)


def test_the_table_of_the_schedule_names_every_property() -> None:
    (table,) = [table[2:] for table in tables() if table and table[0][0] == "in `schedule`"]
    assert [row[0].strip("`") for row in table] == list(RecurrenceSchedule.model_json_schema()["properties"])


def test_every_other_trigger_on_the_page_compiles() -> None:
    others = TEXT.split("\n## Examples\n")[0]
    triggers = re.findall(r"```json\n(.*?)```", others, re.DOTALL) + re.findall(r"`(\{\"type\".*?\})`", others)
    assert len(triggers) == 3
    for trigger in triggers:
        schedule = compile_trigger(json.loads(trigger), at("2019-01-01T00:00:00Z"))
        found = [at(text) for text in first(schedule, 3)]
        assert all(earlier < later for earlier, later in pairwise(found))
        assert f"{found[0]:{SHAPE}}"


def test_every_rule_the_code_names_stands_on_the_page() -> None:
    sources = Path(__file__).parents[2].joinpath("shared", "recurrence").glob("*.py")
    code = "\n".join(source.read_text("utf-8") for source in sources)
    named = set(re.findall(r"\b[VZFEKDNWX]\d{1,2}\b", code))
    assert len(named) > 30
    said = set()
    for first_rule, last_rule in re.findall(r"\b([VZFEKDNWX]\d{1,2})(?: to ([VZFEKDNWX]\d{1,2}))?", TEXT):
        numbers = range(int(first_rule[1:]), int((last_rule or first_rule)[1:]) + 1)
        said |= {f"{first_rule[0]}{number}" for number in numbers}
    assert named - said == set()
