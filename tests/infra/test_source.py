"""The Bicep sources, without the compiler: they parse, name what exists, and no property is misspelt."""

import json
from pathlib import Path

import pytest

from tests.infra.source import FILES, INFRA, TABLE, Source, paths, property_names

SAMPLE = INFRA / "app" / "sample.bicep"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_template_parses_and_names_what_exists(path: Path) -> None:
    assert Source.read(path).complaints() == []


def test_every_template_is_used() -> None:
    used = {INFRA / path for path in Source.read(INFRA / "main.bicep").modules}
    assert {path.resolve() for path in used} == set(FILES[1:])


def test_only_known_properties_are_set() -> None:
    """The table holds what `bicep build` has accepted; `python -m tests.infra.source` writes it."""
    assert property_names() == json.loads(TABLE.read_text())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("param name string\noutput a string = name", []),
        ("param name string = {", ["it does not parse"]),
        ("param name string", ["name is not used"]),
        ("var names = ['a']\noutput a string = nams[0]", ["nams is not declared", "names is not used"]),
        ("output a array = [for (each, i) in range(0, 2): '${each}${i}']", []),
        ("output a array = [for each in range(0, 2): '${eahc}']", ["eahc is not declared"]),
        ("module m 'monitorin.bicep' = {\n  params: {}\n}", ["monitorin.bicep does not exist"]),
        (
            "module m 'monitoring.bicep' = {\n  params: { logAnalyticsName: 'a', location: 'b', tgas: {} }\n}",
            [
                "monitoring.bicep: tgas is not one of its parameters",
                "monitoring.bicep: applicationInsightsName must be given",
                "monitoring.bicep: tags must be given",
            ],
        ),
    ],
)
def test_what_is_wrong_is_told(text: str, complaint: list[str]) -> None:
    assert Source(text, SAMPLE).complaints() == [f"sample.bicep: {each}" for each in complaint]


def test_a_misspelt_property_is_another() -> None:
    text = (INFRA / "app" / "storage.bicep").read_text()
    assert "allowSharedKeyAccess" in text
    ((kind, names), *_) = (
        (kind, set(paths(node)))
        for kind, node in Source(text.replace("allowSharedKeyAccess", "alowSharedKeyAccess"), SAMPLE).resources()
    )
    assert names - set(json.loads(TABLE.read_text())[kind]) == {"properties.alowSharedKeyAccess"}
