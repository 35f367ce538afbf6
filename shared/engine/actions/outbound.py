"""Where an Http action may connect to: the rules, and the connector that holds every connection to them.

By default public addresses alone. `OUTBOUND_DENY` takes away and wins; `OUTBOUND_ALLOW` admits what is not public.
Metadata services and the endpoints of the app's own identity and storage stay closed whatever is allowed. The
table of addresses is the app's own (IANA's registries of special purpose), so every Python judges alike.
"""

import asyncio
import json
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from shared.engine.actions.answers import WholeHeads
from shared.engine.actions.inputs import HOST_PATTERN, check_uri, host_matches, host_of
from shared.errors import Fault

OUTBOUND_ALLOW = "OUTBOUND_ALLOW"
OUTBOUND_DENY = "OUTBOUND_DENY"
IDENTITY_ENDPOINTS = ("IDENTITY_ENDPOINT", "MSI_ENDPOINT", "IMDS_ENDPOINT", "AZURE_POD_IDENTITY_AUTHORITY_HOST")
"""Environment variables in which the platform says where the app's own identity gives tokens."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NOT_PUBLIC = {
    "unspecified": ("0.0.0.0/8", "::/128"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10", "64:ff9b:1::/48"),
    "shared by a carrier's customers": ("100.64.0.0/10",),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "documentation": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    "reserved": ("192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4"),
    "a tunnel": ("192.88.99.0/24", "2001::/23", "2002::/16"),  # 2001::/32 is Teredo, 2002::/16 6to4
}
_KINDS = [(ip_network(network), kind) for kind, networks in _NOT_PUBLIC.items() for network in networks]
_METADATA_HOSTS = re.compile(r"metadata(\.google(\.internal)?)?|metadata\.goog|instance-data(\..*)?")
_METADATA = [
    ip_network(address)
    for address in (
        *("169.254.169.254", "169.254.169.253", "169.254.170.2", "168.63.129.16", "100.100.100.200"),
        *("192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
    )
]
_LOCALHOST = re.compile(r"(.*\.)?localhost")
# A host whose last part is a number means an IPv4 address to the socket layer, or nothing.
_NUMBER_AT_END = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")


class Refused(Exception):
    """A request leads where it must not; the text says so as a predicate: `leads to …`."""


@dataclass(frozen=True, slots=True)
class Places:
    """Hosts by name (`*.` and a domain: all below it) and by address."""

    names: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    def has_name(self, host: str) -> bool:
        """Whether the host is one of them by its name."""
        return any(host_matches(host, name) for name in self.names)

    def has_address(self, addresses: Iterable[Address]) -> bool:
        """Whether any of the addresses is one of them."""
        return any(_within(address, self.networks) for address in addresses)


NOWHERE = Places()


def parse_places(text: str) -> Places:
    """What OUTBOUND_ALLOW or OUTBOUND_DENY says: a JSON list of hosts, addresses and CIDRs. Raises ValueError."""
    try:
        given = json.loads(text or "[]")
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None
    if not isinstance(given, list) or not all(isinstance(place, str) for place in given):
        raise ValueError('must list hosts and CIDRs as JSON: ["api.example.org", "*.example.net", "10.1.0.0/16"]')
    places = [_place(place.lower()) for place in given]
    return Places(
        names=tuple(place for place in places if isinstance(place, str)),
        networks=tuple(place for place in places if not isinstance(place, str)),
    )


def _place(text: str) -> str | Network:
    shown = f"names {text[:80]!r}, which is"
    if not ("/" in text or ":" in text or _NUMBER_AT_END.fullmatch(text)):
        if not HOST_PATTERN.fullmatch(text):
            raise ValueError(f"{shown} neither a host, nor *. and a domain, nor an address or CIDR")
        return text
    try:
        network = ip_network(text)
    except ValueError:
        raise ValueError(f"{shown} no address or CIDR, or has bits beyond its prefix") from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


class Outbound:
    """Tells whether a host, or an address that it turned out to be at, may be called.

    `endpoints` are URLs that stay closed, as far as they are URLs: a host by its name, an address, a port of this
    machine.
    """

    def __init__(self, allow: Places = NOWHERE, deny: Places = NOWHERE, endpoints: Iterable[str] = ()) -> None:
        self._allow = allow
        self._deny = deny
        self._own_names: set[str] = set()
        self._own_addresses: set[Address] = set()
        self._own_ports: set[int] = set()
        for endpoint in endpoints:
            with suppress(ValueError):
                self._close(endpoint)

    def uri_faults(self, uri: str) -> list[Fault]:
        """What is known to be wrong with an action's `uri` without looking its host up.

        Nothing is told of a text that is no URI, as one whose host expressions give.
        """
        try:
            url = check_uri(uri)
        except ValueError:
            return []
        reason = self.refusal(host_of(url), url.port or 0)
        return [Fault("uri", reason)] if reason else []

    def refusal(self, host: str, port: int) -> str | None:
        """Why this host (as `host_of` gives it) must not be called, as far as is known without looking it up."""
        if _METADATA_HOSTS.fullmatch(host):
            return _leads_to(host, "a metadata service")
        if host in self._own_names:
            return _leads_to(host, "an endpoint of the app itself")
        if self._deny.has_name(host):
            return _leads_to(host, f"which the operator denies in {OUTBOUND_DENY}")
        if _LOCALHOST.fullmatch(host):
            ways = [self.address_refusal(host, port, address) for address in ("127.0.0.1", "::1")]
            return ways[0] if all(ways) else None
        if ":" in host or _NUMBER_AT_END.fullmatch(host):
            return self.address_refusal(host, port, host)
        return None

    def address_refusal(self, host: str, port: int, text: str) -> str | None:
        """Why this host must not be called where it is at the address `text`."""
        try:
            address = ip_address(text)
        except ValueError:
            return _leads_to(host, "which is no address as it is written: IPv4 takes four decimal numbers")
        real, meant = _real(address), set(_meant(address))
        if any(_within(each, _METADATA) for each in meant):
            return _leads_to(host, "a metadata service")
        kind = _kind(real)
        if meant & self._own_addresses or (kind in ("loopback", "unspecified") and port in self._own_ports):
            return _leads_to(host, "an endpoint of the app itself")
        if self._deny.has_address(meant):
            return _leads_to(host, f"which the operator denies in {OUTBOUND_DENY}")
        if kind is None or self._allow.has_name(host) or self._allow.has_address((address, real)):
            return None
        return _leads_to(host, f"which is not public ({kind}); the operator may allow it in {OUTBOUND_ALLOW}")

    def _close(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        host = (parts.hostname or "").removesuffix(".")
        if _LOCALHOST.fullmatch(host):
            address: Address = IPv4Address("127.0.0.1")
        elif ":" in host or _NUMBER_AT_END.fullmatch(host):
            address = _real(ip_address(host))
        else:
            account, _, domain = host.partition(".")
            self._own_names |= {host, f"{account}-secondary.{domain}"}
            return
        if _kind(address) == "loopback":
            self._own_ports.add(parts.port or (443 if parts.scheme == "https" else 80))
        else:
            self._own_addresses.add(address)


def identity_endpoints(environ: Mapping[str, str]) -> list[str]:
    """The addresses at which the platform gives tokens of the app's identity."""
    return [environ[name] for name in IDENTITY_ENDPOINTS if environ.get(name)]


def _leads_to(host: str, what: str) -> str:
    return f"leads to {host[:253]}, {what}"


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _kind(address: Address) -> str | None:
    """What an address is that is not public; None for a public one."""
    for network, kind in _KINDS:
        if _within(address, (network,)):
            return kind
    return "reserved" if isinstance(address, IPv6Address) and address not in _GLOBAL_V6 else None


def _real(address: Address) -> Address:
    """The address that is called in the end: an IPv4 address that IPv6 writes otherwise, or translates to."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _meant(address: Address) -> Iterator[Address]:
    """The address and all others that it holds."""
    yield address
    if isinstance(address, IPv6Address):
        yield _real(address)
        yield from address.teredo or ()
        if address.sixtofour:
            yield address.sixtofour
        if int(address) >> 32 == 0:
            yield IPv4Address(int(address))


class GuardedConnector(aiohttp.TCPConnector):
    """Opens connections where the rules allow it, and raises Refused elsewhere.

    A name is looked up once, and what was judged is what is connected to. `resolver` looks names up.
    """

    def __init__(self, rules: Outbound, resolver: AbstractResolver) -> None:
        # A kept connection may be closed by its other end just as the next request goes out.
        super().__init__(limit=0, force_close=True, resolver=_GuardedResolver(rules, resolver))
        self._outbound = rules
        handler: type[ResponseHandler] = WholeHeads
        self._factory = partial(handler, loop=asyncio.get_running_loop())

    async def connect(self, req: aiohttp.ClientRequest, *rest: Any, **named: Any) -> Connection:
        """A connection for the request. Its host is judged here too: the resolver is not asked for addresses."""
        reason = self._outbound.refusal(host_of(req.url), req.url.port or 0)
        if reason:
            raise Refused(reason)
        return await super().connect(req, *rest, **named)


class Lookups(AbstractResolver):
    """Looks names up as the system does, in up to `most` threads of its own: one whose name server does not answer
    keeps nobody else's waiting."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises OSError where there is none."""
        kind, flags = socket.SOCK_STREAM, socket.AI_ADDRCONFIG
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, family, kind, flags=flags)
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=int(place[1]),
                family=of,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for of, _, proto, _, place in found
        ]

    async def close(self) -> None:
        """Ends it. Threads that hang are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _GuardedResolver(AbstractResolver):
    """Gives of a host's addresses those that may be called."""

    def __init__(self, rules: Outbound, resolver: AbstractResolver) -> None:
        self._outbound = rules
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        name = host.lower().removesuffix(".")
        found = await self._resolver.resolve(host, port, family)
        reasons = [self._outbound.address_refusal(name, port, each["host"]) for each in found]
        open_ones = [each for each, reason in zip(found, reasons, strict=True) if reason is None]
        if reasons and not open_ones:
            raise Refused(reasons[0])
        return open_ones

    async def close(self) -> None:
        await self._resolver.close()
