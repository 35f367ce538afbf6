"""App settings: bounds and defaults; every fault is told at once."""

from datetime import timedelta

import pytest

from shared.errors import Misconfigured
from shared.settings import SERVICES, Account, read_settings

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
