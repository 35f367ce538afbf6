"""The Authorization header of an Http action: whom the operator allows to have a credential, and the credential.

A job names a managed identity's token or an app setting; it never holds the secret. Nothing is allowed unless
the operator's two settings say so, and neither a token nor a setting's value is ever told or logged.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from azure.core.credentials_async import AsyncTokenCredential
from azure.identity import CredentialUnavailableError
from azure.identity.aio import ManagedIdentityCredential
from yarl import URL

from shared.engine.actions.inputs import HOST_PATTERN, check_uri, host_matches, host_of
from shared.errors import Fault

log = logging.getLogger("timerjobs.execute")
# What the library warns of quotes the platform's answer, a token in it included; what fails is logged here.
logging.getLogger("azure.identity").setLevel(logging.ERROR)

IDENTITY_TARGETS = "IDENTITY_TARGETS"
SECRET_HOSTS = "SECRET_HOSTS"
MANAGED_IDENTITY = "ManagedServiceIdentity"
_SETTING = re.compile(r"SECRET_[A-Z0-9_]+")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")

CredentialFactory = Callable[[str | None], AsyncTokenCredential]


class NotAuthorized(Exception):
    """There is no credential for this request, and there will be none: the operator must do something."""


class NoToken(Exception):
    """The platform did not give a token now."""


def parse_identity_targets(text: str) -> Mapping[str, tuple[str, ...]]:
    """The setting IDENTITY_TARGETS: from a token's audience to patterns of the hosts that may have it.

    Empty text allows nothing. Raises ValueError.
    """
    parsed = _json(text or "{}")
    if not isinstance(parsed, dict):
        raise ValueError(
            'must be a JSON object such as {"https://storage.azure.com": ["*.blob.core.windows.net"]}'
        )
    if "" in parsed:
        raise ValueError("names an empty audience")
    return MappingProxyType({audience: _patterns(hosts) for audience, hosts in parsed.items()})


def parse_secret_hosts(text: str) -> tuple[str, ...]:
    """The setting SECRET_HOSTS: patterns of the hosts that may have a SECRET_* setting's value.

    Empty text allows nothing. Raises ValueError.
    """
    return _patterns(_json(text or "[]"))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None


def _patterns(hosts: Any) -> tuple[str, ...]:
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise ValueError('must list hosts as JSON: ["api.example.org", "*.example.net"]')
    for host in hosts:
        if not HOST_PATTERN.fullmatch(host.lower()):
            raise ValueError(f"names {host[:80]!r}, which is neither a host nor *. and a domain")
    return tuple(host.lower() for host in hosts)


def authentication_faults(
    authentication: Any,
    uri: str | None,
    identity_targets: Mapping[str, Sequence[str]],
    secret_hosts: Sequence[str],
) -> list[Fault]:
    """What is wrong with an action's `authentication`, or not allowed; paths start at `authentication`.

    `uri` is the action's; None where it is not known yet, an expression being in it: then hosts are left to the
    run. A `uri` that is no URI is not told here.
    """
    if not isinstance(authentication, Mapping):
        return [Fault("authentication", "must be an object")]
    faults, allowed, by = _SHAPES.get(_text(authentication.get("type")), _no_shape)(
        authentication, identity_targets, secret_hosts
    )
    if faults or uri is None:
        return faults
    try:
        url = check_uri(uri)
    except ValueError:
        return []
    host = host_of(url)
    if not any(host_matches(host, pattern) for pattern in allowed):
        return [Fault("authentication", f"is not allowed for {host}: the operator must add that host to {by}")]
    if url.scheme != "https" and not _LOOPBACK.fullmatch(host):
        return [Fault("authentication", "is sent to https addresses only")]
    return []


_Shape = tuple[list[Fault], Sequence[str], str]


def _identity_shape(given: Mapping[str, Any], targets: Mapping[str, Sequence[str]], _: Sequence[str]) -> _Shape:
    """The faults of a managed identity's object, the patterns of its hosts, and where those stand."""
    faults = _unknown(given, {"type", "audience", "identity"})
    audience, identity = given.get("audience"), given.get("identity")
    if not isinstance(audience, str) or not audience:
        faults.append(Fault("authentication.audience", "is required: the resource that the token is for"))
    elif audience not in targets:
        reason = f"is not allowed: the operator must add it, with the hosts for its token, to {IDENTITY_TARGETS}"
        faults.append(Fault("authentication.audience", reason))
    if identity is not None and not (isinstance(identity, str) and re.fullmatch(r"[0-9A-Za-z-]{1,64}", identity)):
        faults.append(Fault("authentication.identity", "must be the client id of a user-assigned identity"))
    if faults:
        return faults, (), ""
    return [], targets[str(audience)], f"{IDENTITY_TARGETS} under {audience}"


def _raw_shape(given: Mapping[str, Any], _: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> _Shape:
    """The faults of an object that names an app setting, the patterns of its hosts, and where those stand."""
    faults, value = _unknown(given, {"type", "value"}), given.get("value")
    if not isinstance(value, Mapping) or set(value) != {"setting"}:
        reason = 'must name an app setting, {"setting": "SECRET_…"}; secrets are not kept in jobs'
        faults.append(Fault("authentication.value", reason))
    elif not _SETTING.fullmatch(_text(value["setting"])) or value["setting"] == SECRET_HOSTS:
        faults.append(Fault("authentication.value.setting", "must be SECRET_ and then A-Z 0-9 _"))
    return faults, hosts, SECRET_HOSTS


def _no_shape(given: Mapping[str, Any], _: Mapping[str, Sequence[str]], hosts: Sequence[str]) -> _Shape:
    return [Fault("authentication.type", f"must be {MANAGED_IDENTITY} or Raw")], (), ""


_SHAPES = {MANAGED_IDENTITY: _identity_shape, "Raw": _raw_shape}


def _unknown(given: Mapping[str, Any], known: set[str]) -> list[Fault]:
    names = [name for name, value in given.items() if name not in known and value is not None]
    return [Fault(f"authentication.{name[:80]}", "is not a property of this type") for name in names]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def managed_identity(client_id: str | None) -> AsyncTokenCredential:
    """The app's own identity, or the user-assigned one of this client id. It does not retry: a run does."""
    return ManagedIdentityCredential(client_id=client_id, retry_total=0)


class Authorizer:
    """Gives the value of the Authorization header that a job's `authentication` stands for."""

    def __init__(
        self,
        identity_targets: Mapping[str, Sequence[str]],
        secret_hosts: Sequence[str],
        environ: Mapping[str, str],
        credential_for: CredentialFactory = managed_identity,
    ) -> None:
        self._identity_targets = identity_targets
        self._secret_hosts = secret_hosts
        self._environ = environ
        self._credential_for = credential_for
        # Only identities that have given a token, so no more than the app has. Tokens are kept by the credential.
        self._credentials: dict[str | None, AsyncTokenCredential] = {}
        self._first_use = asyncio.Lock()
        self._given: dict[tuple[str | None, str], str] = {}  # the last token of each identity and audience

    def faults(self, authentication: Any, uri: str | None) -> list[Fault]:
        """What is wrong with this `authentication`, or not allowed by the operator; see authentication_faults."""
        return authentication_faults(authentication, uri, self._identity_targets, self._secret_hosts)

    async def authorization(self, authentication: Any, url: URL) -> str:
        """The header's value for a request to `url`.

        Raises NotAuthorized, saying what the operator must do, or NoToken where trying again may help.
        """
        faults = self.faults(authentication, str(check_uri(str(url))))
        if faults:
            raise NotAuthorized("; ".join(f"{fault.field} {fault.reason}" for fault in faults))
        if authentication["type"] == MANAGED_IDENTITY:
            identity, audience = authentication.get("identity"), authentication["audience"]
            token = self._given[identity, audience] = await self._token(audience, identity)
            return f"Bearer {token}"
        return self._secret(authentication["value"]["setting"])

    def known(self, authentication: Any) -> list[str]:
        """The header's values that this `authentication` is known to stand for, to be kept out of what is told."""
        if authentication is None or self.faults(authentication, None):
            return []
        if authentication["type"] == MANAGED_IDENTITY:
            token = self._given.get((authentication.get("identity"), authentication["audience"]))
            return [f"Bearer {token}"] if token else []
        return [value for value in (self._environ.get(authentication["value"]["setting"]),) if value]

    async def close(self) -> None:
        """Closes the credentials' connections."""
        while self._credentials:
            await self._credentials.popitem()[1].close()

    def _secret(self, setting: str) -> str:
        value = self._environ.get(setting, "")
        if not value:
            raise NotAuthorized(f"the operator must set the app setting {setting}")
        if any(not 32 <= ord(c) < 127 for c in value) or value != value.strip():
            raise NotAuthorized(f"the app setting {setting} holds what a header cannot carry, such as a line end")
        return value

    async def _token(self, audience: str, identity: str | None) -> str:
        scope = f"{audience}/.default"
        try:
            if identity in self._credentials:
                return (await self._credentials[identity].get_token(scope)).token
            async with self._first_use:
                return await self._first_token(identity, scope)
        except Exception as error:  # whatever the platform's endpoint answered; its text is not repeated
            if isinstance(error, CredentialUnavailableError) and error.response is None:
                raise NotAuthorized("the operator must give the app a managed identity") from None
            # The first line holds no token: the library leaves it out there, and then quotes all of the answer.
            line = (str(error).splitlines() or [""])[0][:500]
            log.warning("no token for %s: %s", audience, line, extra={"action": "execute"})
            raise NoToken(f"no token for {audience} could be had ({type(error).__name__})") from None

    async def _first_token(self, identity: str | None, scope: str) -> str:
        if identity in self._credentials:
            return (await self._credentials[identity].get_token(scope)).token
        credential = self._credential_for(identity)
        try:
            token = (await credential.get_token(scope)).token
        except BaseException:
            await credential.close()
            raise
        self._credentials[identity] = credential
        return token
