"""The files that azd and the editors read."""

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml

from tests.infra.source import FILES, INFRA, ROOT

SCHEMAS = ROOT.parent / "shared" / "schemas"


def schema(name: str) -> Any:
    if not (SCHEMAS / name).exists():
        pytest.skip("the published schemas are not beside the project")
    return json.loads((SCHEMAS / name).read_text())


def azure_yaml() -> Any:
    return yaml.safe_load((ROOT / "azure.yaml").read_text())


def test_azure_yaml_fits_its_schema() -> None:
    jsonschema.validate(azure_yaml(), schema("azure.yaml.json"))


def test_azd_deploys_the_root_as_a_python_function_app() -> None:
    (service,) = azure_yaml()["services"].values()
    assert service == {"project": ".", "language": "python", "host": "function"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Timer Jobs"},
        {"metadata": "timerjobs"},
        {"services": {"api": {"language": "python", "host": "function"}}},
    ],
)
def test_the_schema_of_azure_yaml_can_say_no(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(azure_yaml() | wrong, schema("azure.yaml.json"))


@pytest.mark.parametrize("wrong", [{"batchSize": 64}, {"maxPolingInterval": "00:00:01"}])
def test_the_schema_of_host_json_can_say_no(wrong: dict[str, Any]) -> None:
    host = json.loads((ROOT / "host.json").read_text())
    host["extensions"]["queues"] |= wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(host, schema("host.json"))


def test_every_abbreviation_is_used_and_known() -> None:
    source = "".join(path.read_text() for path in FILES)
    used = set(re.findall(r"abbrs\.(\w+)", source))
    assert used == json.loads((INFRA / "abbreviations.json").read_text()).keys()


@pytest.mark.parametrize("name", ["extensions", "launch", "settings", "tasks"])
def test_the_editors_files_are_json(name: str) -> None:
    assert json.loads((ROOT / ".vscode" / f"{name}.json").read_text())


def test_the_container_has_the_python_that_is_deployed() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    (deployed,) = re.findall(r"version: '([\d.]+)'", (INFRA / "app" / "api.bicep").read_text())
    assert re.search(r"python:[\d-]*" + re.escape(deployed), container["image"])


def leaves(value: dict[str, Any]) -> set[str]:
    """The names of the values in a JSON object, at any depth."""
    return {
        leaf
        for name, each in value.items()
        for leaf in (leaves(each) if isinstance(each, dict) and name != "logLevel" else {name})
    }


def test_every_value_of_host_json_has_its_reason() -> None:
    host = json.loads((ROOT / "host.json").read_text())
    tuned = leaves({name: host[name] for name in ("functionTimeout", "extensions", "logging")})
    told = (ROOT / "docs" / "operations.md").read_text()
    sampling = {"isEnabled", "excludedTypes", "includedTypes"}  # told as samplingSettings
    assert {"batchSize", "logLevel"} <= tuned
    assert [name for name in tuned - sampling if f"`{name}`" not in told] == []


def test_the_queries_ask_for_what_the_code_logs() -> None:
    asked = re.findall(r'message (?:startswith|has|with) "([^"]+)"', (ROOT / "docs" / "operations.md").read_text())
    code = "".join(path.read_text() for path in (ROOT / "shared").rglob("*.py"))
    assert len(asked) > 5
    assert [text for text in asked if text not in code] == []
