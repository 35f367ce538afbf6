"""docs/activation.md: each test its table names exists; what it shows is what there is."""

import ast
import json
import re
from pathlib import Path

from shared.jobs.instance import is_service_type
from tests.harness import Bench

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "activation.md").read_text()
SEED = "tests/activation/test_seed.py"


def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)}


def named_tests() -> list[tuple[str, str]]:
    table = DOC[DOC.index("## The instance store's terms") :]
    return [(path or SEED, name) for path, name in re.findall(r"`(?:(tests/[\w/.]+)::)?(test_\w+)` \|", table)]


def test_each_test_that_the_table_names_exists() -> None:
    named = named_tests()
    assert len(named) > 20
    assert [(path, name) for path, name in named if name not in functions_of(path)] == []
    rows = DOC[DOC.index("| the store | here | test |") :].strip().splitlines()[2:]
    assert len(rows) == len(named)


def test_the_example_is_the_one_in_the_folder() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", DOC, re.DOTALL)
    source = (ROOT / "workflows" / "countdown.py").read_text()
    plain = [line for line in source.splitlines() if '"""' not in line]
    assert [line for line in shown.splitlines() if line] == [line for line in plain if line]


async def test_the_job_shown_is_accepted(at: Bench) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", DOC, re.DOTALL)
    job = await at.create(**json.loads(shown))
    assert is_service_type(job["serviceType"])
    assert job["activation"]["site"] == "https://jobs.acme.example"
