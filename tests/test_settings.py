"""App settings: bounds and defaults; every fault is told at once; code, deployment and documents name the same."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter

from shared.errors import Misconfigured
from shared.settings import SERVICES, Account, read_settings
from tests.infra.source import ROOT, app_settings

# What the platform reads, not the code: telemetry of host and worker, and which worker `func` starts.
PLATFORM = {
    "APPLICATIONINSIGHTS_CONNECTION_STRING",
    "APPLICATIONINSIGHTS_AUTHENTICATION_STRING",
    "PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY",
    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
}
LOCAL_PLATFORM = {"FUNCTIONS_WORKER_RUNTIME"}

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


ID = "6f1a5bd0-7b1c-4c52-9d0e-2f5d2a0c1b3e"
URIS = {f"AzureWebJobsStorage__{service}ServiceUri": f"https://{service}.example.net" for service in SERVICES}


@pytest.mark.parametrize(
    ("env", "account"),
    [
        (STORAGE, Account(connection="UseDevelopmentStorage=true")),
        (
            {"AzureWebJobsStorage__accountName": "acct1"},
            Account(queues="https://acct1.queue.core.windows.net", tables="https://acct1.table.core.windows.net"),
        ),
        (
            URIS | {"AzureWebJobsStorage__credential": "ManagedIdentity", "AzureWebJobsStorage__clientId": ID},
            Account(
                queues="https://queue.example.net", tables="https://table.example.net", managed=True, client_id=ID
            ),
        ),
    ],
)
def test_the_account_is_named_as_the_functions_host_names_it(env: dict[str, str], account: Account) -> None:
    assert read_settings(env).account == account


@pytest.mark.parametrize(
    ("env", "wrong"),
    [
        ({}, {""}),
        ({"": "UseDevelopmentStorage=true", "__accountName": "acct"}, {""}),
        ({"": "UseDevelopmentStorage=true", "__credential": "managedidentity"}, {""}),
        ({"__accountName": "Acct"}, {"__accountName"}),
        ({"__accountName": "acct", "__tableServiceUri": "https://a.table.core.windows.net"}, {"__accountName"}),
        ({"__tableServiceUri": "https://a.example.net"}, {"__blobServiceUri", "__queueServiceUri"}),
        ({"__clientId": ID}, {"__blobServiceUri", "__queueServiceUri", "__tableServiceUri"}),
        ({"__accountName": "acct", "__credential": "workloadidentity"}, {"__credential"}),
        ({"__accountName": "acct", "__clientId": "my-identity"}, {"__clientId"}),
        (
            {"__accountName": "a", "__credential": "x", "__clientId": "y"},
            {"__accountName", "__credential", "__clientId"},
        ),
    ],
)
def test_an_account_that_is_named_wrongly_is_told_with_its_setting(env: dict[str, str], wrong: set[str]) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({f"AzureWebJobsStorage{suffix}": value for suffix, value in env.items()})
    assert {fault.field for fault in raised.value.faults} == {f"AzureWebJobsStorage{suffix}" for suffix in wrong}


@pytest.mark.parametrize(
    "uri",
    ["http://queue.example.net", "queue.example.net", "https://", "https://[", "https://q.example.net?sig=s3cret"],
)
def test_an_address_of_a_service_is_an_https_address_and_is_not_repeated(uri: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings(URIS | {"AzureWebJobsStorage__queueServiceUri": uri})
    assert [fault.field for fault in raised.value.faults] == ["AzureWebJobsStorage__queueServiceUri"]
    assert "s3cret" not in str(raised.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({"PARTITIONS": "x", "HORIZON": "y"})
    assert {fault.field for fault in raised.value.faults} == {"AzureWebJobsStorage", "PARTITIONS", "HORIZON"}


class Asked(dict[str, str]):
    """An environment that notes what is asked for."""

    def __init__(self) -> None:
        super().__init__(STORAGE)
        self.names: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.names.add(name)
        return super().get(name, default)


def read_by_the_code() -> set[str]:
    """The settings that are read once, those that bindings name, and those that code asks the environment for."""
    asked = Asked()
    read_settings(asked)
    bound = re.findall(r"%(\w+)%", (ROOT / "function_app.py").read_text())
    direct = [
        name
        for path in (ROOT / "shared").rglob("*.py")
        for name in re.findall(r"""environ(?:\.get\(|\[)["'](\w+)["']""", path.read_text())
    ]
    return asked.names | set(bound) | set(direct)


def documented() -> dict[str, str]:
    """The settings of the README's table, each with its default."""

    def rows() -> Iterator[tuple[str, str]]:
        table = (ROOT / "README.md").read_text().partition("\n## Settings\n")[2].partition("\n## ")[0]
        for line in re.findall(r"^\| (`.*)\|$", table, re.MULTILINE):
            names, default, _ = re.split(r"(?<!\\)\|", line, maxsplit=2)
            yield from ((name, default.strip()) for name in re.findall(r"`(\w+)`", names))

    return dict(rows())


def test_the_readme_has_every_setting_that_is_read_and_no_other() -> None:
    assert documented().keys() == read_by_the_code()


def test_the_readme_tells_the_defaults() -> None:
    told = {name: re.fullmatch(r"`(.*)`", default) for name, default in documented().items()}
    given = {name: match[1] for name, match in told.items() if match}
    assert len(given) > 8
    assert read_settings(STORAGE | given) == read_settings(STORAGE)


def test_the_deployment_sets_what_is_required_and_nothing_that_nobody_reads() -> None:
    deployed = app_settings().keys()
    assert deployed <= read_by_the_code() | PLATFORM
    required = {name for name, default in documented().items() if default.startswith("(required)")}
    assert {"QUEUE_NAME", "DETECTION_SCHEDULE"} <= required <= deployed
    operations = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in deployed if f"`{name}`" not in operations] == []


def test_the_local_sample_sets_what_is_required_and_nothing_that_nobody_reads() -> None:
    local = json.loads((ROOT / "local.settings.sample.json").read_text())["Values"].keys()
    assert local <= read_by_the_code() | LOCAL_PLATFORM
    assert {"QUEUE_NAME", "DETECTION_SCHEDULE"} <= local


def test_what_the_deployment_sets_is_valid_and_each_tick_runs_a_cycle() -> None:
    literal = {name: text.strip("'") for name, text in app_settings().items() if re.fullmatch(r"'[^$]*'", text)}
    account = {"AzureWebJobsStorage__accountName": "acct"}
    settings = read_settings({name: text for name, text in literal.items() if "__" not in name} | account)
    ticks = croniter(literal["DETECTION_SCHEDULE"], datetime(2026, 1, 1, tzinfo=UTC), second_at_beginning=True)
    first, second = ticks.get_next(datetime), ticks.get_next(datetime)
    assert settings.detection_period < second - first < settings.horizon


def test_the_deployment_names_the_account_as_the_code_reads_it() -> None:
    deployed = {name for name in app_settings() if name.startswith("AzureWebJobsStorage")}
    assert deployed == URIS.keys() | {"AzureWebJobsStorage__credential", "AzureWebJobsStorage__clientId"}
    assert app_settings()["AzureWebJobsStorage__credential"] == "'managedidentity'"


@pytest.mark.parametrize("name", ["HORIZON", "HEALTH_MAX_DETECTION_AGE"])
def test_what_is_to_outlast_a_detection_period_does(name: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings(STORAGE | {name: "PT59M", "HORIZON": "PT59M", "DETECTION_PERIOD": "PT1H"})
    assert name in {fault.field for fault in raised.value.faults}
    assert all("DETECTION_PERIOD (PT1H)" in fault.reason for fault in raised.value.faults)
    longest = {"HORIZON": "PT1H", "HEALTH_MAX_DETECTION_AGE": "PT1H", "DETECTION_PERIOD": "PT1H"}
    assert read_settings(STORAGE | longest).horizon == timedelta(hours=1)
