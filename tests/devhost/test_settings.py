"""host.json, local settings, `%SETTING%` and connections."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from devhost.azurite import STANDARD_PORTS, Ports, connection_string
from devhost.errors import DevhostError
from devhost.settings import (
    HostConfig,
    QueueOptions,
    load_settings,
    parse_duration,
    point_development_storage_at,
    resolve,
    storage_connection,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:05", 5),
        ("00:00:00.100", 0.1),
        ("01:02:03.5", 3723.5),
        ("2.00:00:00", 172800),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["5", "00:05", "00:60:00", "24:00:00", "-00:00:01", "00:00:05s", ""])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hh:mm:ss"):
        parse_duration(text)


def write_host_json(folder: Path, *, timeout: object = "00:05:00", **extensions: object) -> Path:
    content = {"version": "2.0", "functionTimeout": timeout, "extensions": extensions}
    (folder / "host.json").write_text(json.dumps(content))
    return folder


def test_host_json_is_read(tmp_path: Path) -> None:
    queues = {
        "batchSize": 6,
        "maxPollingInterval": "00:00:01",
        "visibilityTimeout": "00:00:05",
        "maxDequeueCount": 3,
        "messageEncoding": "none",
    }
    config = HostConfig.read(write_host_json(tmp_path, http={"routePrefix": "v1"}, queues=queues))
    assert config == HostConfig(
        "v1",
        QueueOptions(6, 3, timedelta(seconds=1), timedelta(seconds=5), 3, "none"),
        timedelta(minutes=5),
    )


@pytest.mark.parametrize("unbounded", ["-1", -1])
def test_a_function_timeout_of_minus_one_means_none(tmp_path: Path, unbounded: object) -> None:
    assert HostConfig.read(write_host_json(tmp_path, timeout=unbounded)).function_timeout is None


@pytest.mark.parametrize("wrong", ["-2", "30 min", "00:00:00", None])
def test_a_wrong_function_timeout_is_named(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(DevhostError, match=r"host\.json: functionTimeout"):
        HostConfig.read(write_host_json(tmp_path, timeout=wrong))


def test_what_host_json_does_not_say_has_the_platforms_default(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    assert HostConfig.read(tmp_path) == HostConfig(
        "api", QueueOptions(16, 8, timedelta(minutes=1), timedelta(0), 5, "base64"), timedelta(minutes=30)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batchSize", 33),
        ("batchSize", "16"),
        ("newBatchThreshold", -1),
        ("maxDequeueCount", 0),
        ("maxPollingInterval", "00:00:00.050"),
        ("visibilityTimeout", "5 s"),
        ("messageEncoding", "utf-8"),
    ],
)
def test_a_wrong_key_in_host_json_is_named(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(DevhostError, match=f"host.json: {key}"):
        HostConfig.read(write_host_json(tmp_path, queues={key: value}))


def test_a_host_json_that_is_missing_or_no_json_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DevhostError, match=r"there is no host\.json"):
        HostConfig.read(tmp_path)
    (tmp_path / "host.json").write_text("{")
    with pytest.raises(DevhostError, match=r"host\.json is not JSON"):
        HostConfig.read(tmp_path)


def write_settings(folder: Path, name: str, **values: object) -> None:
    (folder / name).write_text(json.dumps({"IsEncrypted": False, "Values": values}))


def test_the_sample_settings_serve_where_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {})
    assert load_settings(tmp_path) is None
    write_settings(tmp_path, "local.settings.sample.json", GREETING="sample")
    assert load_settings(tmp_path) == "local.settings.sample.json"
    assert resolve("%GREETING%", "a test") == "sample"


def test_local_settings_replace_the_sample_altogether_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"GREETING": "environment"})
    write_settings(tmp_path, "local.settings.sample.json", ONLY_SAMPLE="1")
    write_settings(tmp_path, "local.settings.json", GREETING="file", NUMBER=5)
    assert load_settings(tmp_path) == "local.settings.json"
    assert resolve("%GREETING% %NUMBER%", "a test") == "environment 5"
    with pytest.raises(DevhostError, match="setting ONLY_SAMPLE, named by a test, is missing"):
        resolve("%ONLY_SAMPLE%", "a test")


def test_encrypted_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "local.settings.json").write_text('{"IsEncrypted": true, "Values": {"A": "x"}}')
    with pytest.raises(DevhostError, match="encrypted"):
        load_settings(tmp_path)


def test_development_storage_means_azurite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"Store": "UseDevelopmentStorage=true;", "Other": "AccountName=x"})
    assert storage_connection("Store") == connection_string(STANDARD_PORTS)
    assert storage_connection("Other") == "AccountName=x"
    with pytest.raises(DevhostError, match="setting Third is missing"):
        storage_connection("Third")


def test_other_ports_reach_the_app_by_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"Store": "UseDevelopmentStorage=true", "Other": "AccountName=x"}
    monkeypatch.setattr("os.environ", environment)
    point_development_storage_at(STANDARD_PORTS)
    assert environment["Store"] == "UseDevelopmentStorage=true"
    ports = Ports(1, 2, 3)
    point_development_storage_at(ports)
    assert environment == {"Store": connection_string(ports), "Other": "AccountName=x"}
    assert storage_connection("Store") == connection_string(ports)


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("local.settings.json", '{"Values": null}', "Values is an object"),
        ("local.settings.json", '{"Values": []}', "Values is an object"),
        ("local.settings.json", '{"Values": {"A=B": "x"}}', "'A=B'"),
        ("local.settings.json", '{"Values": {"": "x"}}', "setting ''"),
        ("local.settings.json", '{"Values": {"A": null}}', "'A'"),
        ("local.settings.json", '{"Values": {"A": "\\u0000"}}', "'A'"),
        ("local.settings.json", "[" * 100_000, "is not JSON"),
        ("host.json", '{"extensions": null}', "extensions is an object"),
        ("host.json", '{"extensions": {"queues": null}}', "queues is an object"),
        ("host.json", '{"extensions": {"http": null}}', "http is an object"),
        ("host.json", '{"extensions": {"http": {"routePrefix": 5}}}', "routePrefix is text"),
    ],
)
def test_what_a_file_may_not_hold_is_told_in_one_line(tmp_path: Path, file: str, text: str, told: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(DevhostError, match=told) as raised:
        load_settings(tmp_path) if file != "host.json" else HostConfig.read(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "host.json").mkdir()
    with pytest.raises(DevhostError, match="cannot be read"):
        HostConfig.read(tmp_path)
