"""The files the platform and the tools read."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shared.settings import read_settings

ROOT = Path(__file__).parent.parent
SCHEMAS = ROOT.parent / "shared" / "schemas"


def load(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


@pytest.mark.parametrize(
    ("file", "schema"), [("host.json", "host.json"), ("local.settings.sample.json", "local.settings.json")]
)
def test_it_is_valid_by_its_published_schema(file: str, schema: str) -> None:
    if not (SCHEMAS / schema).exists():
        pytest.skip("the published schemas are not beside the project")
    jsonschema.validate(load(file), json.loads((SCHEMAS / schema).read_text()))


def test_every_setting_named_in_a_binding_is_in_the_sample() -> None:
    named = set(re.findall(r"%(\w+)%", (ROOT / "function_app.py").read_text()))
    assert named <= load("local.settings.sample.json")["Values"].keys()


def test_the_sample_makes_valid_settings() -> None:
    settings = read_settings(load("local.settings.sample.json")["Values"])
    assert settings.horizon.total_seconds() == 15 * 60


def test_queue_messages_are_encoded_as_the_queue_trigger_expects() -> None:
    assert load("host.json")["extensions"]["queues"]["messageEncoding"] == "base64"


def test_nothing_is_required_that_the_platform_brings() -> None:
    required = [
        line.split("#")[0].strip()
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.split("#")[0].strip()
    ]
    names = {re.split(r"[<>=~\[ ]", line)[0].lower() for line in required}
    assert {"azure-functions", "azure-data-tables", "azure-storage-queue", "python-dateutil", "tzdata"} <= names
    assert not names & {"azure-functions-worker", "azure-functions-runtime"}
    assert all(re.search(r"[<>=~]", line) for line in required), "without a range"


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "devhost/package-lock.json", "Makefile"]
)
def test_no_file_names_a_registry(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "index-url" not in text
    assert '"resolved"' not in text
