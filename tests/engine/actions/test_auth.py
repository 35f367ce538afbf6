"""Whom the operator's settings allow to have a credential: told at creation as at run time."""

from typing import Any

import pytest

from shared.engine.actions.auth import authentication_faults, parse_identity_targets, parse_secret_hosts
from shared.errors import Fault

STORAGE = "https://storage.azure.com"
TARGETS = {STORAGE: ["*.blob.core.windows.net"], "api://ours": ["api.example.org", "localhost", "127.0.0.1"]}
SECRETS = ["*.example.net", "api.example.org", "127.0.0.1", "::1"]
IDENTITY: dict[str, Any] = {"type": "ManagedServiceIdentity", "audience": STORAGE}
OURS = IDENTITY | {"audience": "api://ours"}
RAW: dict[str, Any] = {"type": "Raw", "value": {"setting": "SECRET_TOKEN"}}


def faults(authentication: Any, uri: str | None) -> list[Fault]:
    return authentication_faults(authentication, uri, TARGETS, SECRETS)


@pytest.mark.parametrize(
    ("authentication", "uri"),
    [
        (IDENTITY, "https://acct.blob.core.windows.net/c/b?x=1"),
        (IDENTITY, "https://ACCT.Blob.Core.Windows.NET./c"),
        (IDENTITY, "https://a.z1.blob.core.windows.net:8443/c"),
        (IDENTITY | {"identity": "8c0a8f0e-1111-2222-3333-444444444444"}, "https://a.blob.core.windows.net"),
        (IDENTITY | {"identity": None}, "https://a.blob.core.windows.net"),
        (OURS, "https://api.example.org/"),
        (OURS, "http://localhost:7071/"),
        (OURS, "http://127.0.0.1:7071/"),
        (RAW, "https://deep.down.example.net/"),
        (RAW, "https://api.example.org/"),
        (RAW, "http://127.0.0.1:7071/"),
        (RAW, "http://[::1]:7071/"),
        (RAW, None),
        (IDENTITY, None),
        (RAW, "@nonsense"),
    ],
)
def test_what_the_operator_lists_is_allowed(authentication: Any, uri: str | None) -> None:
    assert faults(authentication, uri) == []


@pytest.mark.parametrize(
    ("authentication", "uri", "host", "setting"),
    [
        (IDENTITY, "https://blob.core.windows.net/", "blob.core.windows.net", "IDENTITY_TARGETS"),
        (IDENTITY, "https://evilblob.core.windows.net/", "evilblob.core.windows.net", "IDENTITY_TARGETS"),
        (IDENTITY, "https://a.blob.core.windows.net.evil.org/", "a.blob.core.windows.net.evil.org", "IDENTITY_"),
        (IDENTITY, "https://evil.org/a.blob.core.windows.net", "evil.org", "IDENTITY_TARGETS"),
        (IDENTITY, "https://api.example.org/", "api.example.org", STORAGE),
        (OURS, "https://x.api.example.org/", "x.api.example.org", "IDENTITY_TARGETS under api://ours"),
        (RAW, "https://example.net/", "example.net", "SECRET_HOSTS"),
        (RAW, "https://evil.org/", "evil.org", "SECRET_HOSTS"),
        (RAW, "https://evil.org?.example.net", "evil.org", "SECRET_HOSTS"),
        (RAW, "https://evil.org#.example.net", "evil.org", "SECRET_HOSTS"),
    ],
)
def test_another_host_is_refused_and_the_operator_told_what_to_allow(
    authentication: Any, uri: str, host: str, setting: str
) -> None:
    ((field, reason),) = faults(authentication, uri)
    assert field == "authentication"
    assert f"not allowed for {host}: the operator must add that host to " in reason
    assert setting in reason


@pytest.mark.parametrize(
    ("authentication", "uri"), [(IDENTITY, "http://a.blob.core.windows.net/"), (RAW, "http://api.example.org/")]
)
def test_plain_http_is_refused_but_to_this_machine(authentication: Any, uri: str) -> None:
    assert faults(authentication, uri) == [("authentication", "is sent to https addresses only")]


@pytest.mark.parametrize("authentication", [IDENTITY, RAW])
def test_nothing_is_allowed_unless_the_operator_says_so(authentication: Any) -> None:
    for host in ("a.blob.core.windows.net", "localhost", "api.example.org"):
        assert authentication_faults(authentication, f"https://{host}/", {}, ())


def test_an_audience_that_is_not_listed_is_refused_even_before_the_host_is_known() -> None:
    ((field, reason),) = faults(IDENTITY | {"audience": "https://vault.azure.net"}, None)
    assert field == "authentication.audience"
    assert "the operator must add it" in reason
    assert "IDENTITY_TARGETS" in reason


@pytest.mark.parametrize(
    ("authentication", "fields"),
    [
        ("Bearer x", ["authentication"]),
        (None, ["authentication"]),
        ({}, ["authentication.type"]),
        ({"type": "Basic", "username": "a", "password": "b"}, ["authentication.type"]),
        ({"type": ["Raw"]}, ["authentication.type"]),
        ({"type": "ManagedServiceIdentity"}, ["authentication.audience"]),
        (IDENTITY | {"audience": 5}, ["authentication.audience"]),
        (IDENTITY | {"audience": ""}, ["authentication.audience"]),
        (IDENTITY | {"audience": [STORAGE]}, ["authentication.audience"]),
        (IDENTITY | {"identity": 5}, ["authentication.identity"]),
        (IDENTITY | {"identity": "a&resource=x"}, ["authentication.identity"]),
        (IDENTITY | {"credential": "x"}, ["authentication.credential"]),
        ({"type": "Raw"}, ["authentication.value"]),
        (RAW | {"value": "Bearer secret"}, ["authentication.value"]),
        (RAW | {"value": {}}, ["authentication.value"]),
        (RAW | {"value": {"setting": "SECRET_A", "prefix": "Bearer"}}, ["authentication.value"]),
        (RAW | {"value": {"setting": "AzureWebJobsStorage"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": "SECRET_"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": "SECRET_a"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": "SECRET_A\n"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": "MY_SECRET_A"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": "SECRET_HOSTS"}}, ["authentication.value.setting"]),
        (RAW | {"value": {"setting": 5}}, ["authentication.value.setting"]),
        (RAW | {"audience": STORAGE}, ["authentication.audience"]),
    ],
)
def test_what_is_no_authentication_is_told_with_its_fields(authentication: Any, fields: list[str]) -> None:
    told = faults(authentication, "https://api.example.org/")
    assert [field for field, _ in told] == fields
    assert not [reason for _, reason in told if "Bearer secret" in reason]


def test_settings_that_are_empty_allow_nothing() -> None:
    assert parse_identity_targets("") == {}
    assert parse_secret_hosts("") == ()


def test_settings_are_json_and_hosts_of_any_case() -> None:
    given = '{"https://storage.azure.com": ["*.Blob.core.windows.net", "x"], "api://b": []}'
    assert parse_identity_targets(given) == {STORAGE: ("*.blob.core.windows.net", "x"), "api://b": ()}
    assert parse_secret_hosts('["API.example.org", "::1", "10.0.0.1"]') == ("api.example.org", "::1", "10.0.0.1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("[]", "must be a JSON object"),
        ('"x"', "must be a JSON object"),
        ('{"": ["x"]}', "empty audience"),
        ('{"a": "x"}', "must list hosts"),
        ('{"a": [5]}', "must list hosts"),
        ('{"a": ["*"]}', "neither a host nor"),
    ],
)
def test_identity_targets_that_are_wrong_are_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_identity_targets(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("api.example.org", "must be JSON"),
        ('{"a": []}', "must list hosts"),
        ('"x"', "must list hosts"),
        ('["*"]', "neither a host nor"),
        ('["*."]', "neither a host nor"),
        ('["a.*.org"]', "neither a host nor"),
        ('["*example.org"]', "neither a host nor"),
        ('["https://example.org"]', "neither a host nor"),
        ('["example.org:443"]', "neither a host nor"),
        ('["example.org/x"]', "neither a host nor"),
        ('[""]', "neither a host nor"),
    ],
)
def test_secret_hosts_that_are_wrong_are_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_secret_hosts(text)
