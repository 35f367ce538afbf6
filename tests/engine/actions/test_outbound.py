"""Where Http actions may connect to: no hostile address is ever reached, by whatever way it is come by."""

import asyncio
import random
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest
from yarl import URL

from shared.engine.actions.outbound import NOWHERE, Outbound, identity_endpoints, parse_places
from shared.engine.actions.outcome import Later, Outcome
from shared.jobs.model import Status
from tests.engine.actions.hostile import LITERALS, NAMED, NO_URIS, Names
from tests.engine.actions.support import an_attempt, answers, ended, goes_on, http_action
from tests.harness import Receiver

PUBLIC = "8.8.8.8"
# What the tests' own target is called by: the operator allows it by its name, so nothing else is open.
TARGET = "target.test"
RULES = Outbound(parse_places(f'["{TARGET}"]'))
CLOSED = Outbound()


@dataclass
class Trap:
    """A listener that must not be reached, and the addresses that connections were tried to."""

    port: int
    reached: list[Any] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)


@pytest.fixture
async def trap(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Trap]:
    """Listens on every address of this machine. Connections to elsewhere are noted, and refused."""
    made = Trap(0)

    async def reached(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.reached.append(writer.get_extra_info("sockname"))
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    # One socket for both families where there are both: of two, the second could find its port taken.
    family, address = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
    listening = socket.create_server((address, 0), family=family, dualstack_ipv6=family is socket.AF_INET6)
    made.port = listening.getsockname()[1]
    server = await asyncio.start_server(reached, sock=listening)
    loop = asyncio.get_running_loop()
    connect = loop.sock_connect

    async def noted(sock: Any, address: Any) -> None:
        made.tried.append(address[0])
        if not ip_address(address[0]).is_loopback:
            raise ConnectionRefusedError("not from here")
        await connect(sock, address)

    monkeypatch.setattr(loop, "sock_connect", noted)
    yield made
    server.close()
    await server.wait_closed()


async def get(uri: str, rules: Outbound = CLOSED, names: Names | None = None, **memo: Any) -> Outcome | Later:
    """One attempt at a GET."""
    async with http_action(outbound=rules, resolver=names or Names(NAMED)) as action:
        return await action.attempt(an_attempt({"method": "GET", "uri": uri}, memo=memo))


def by_name(receiver: Receiver) -> str:
    return receiver.url.replace("127.0.0.1", TARGET)


async def test_the_trap_is_reached_where_it_is_allowed(trap: Trap) -> None:
    rules = Outbound(parse_places('["127.0.0.0/8"]'))
    goes_on(await get(f"http://127.0.0.1:{trap.port}/", rules))
    goes_on(await get(f"http://loopback.test:{trap.port}/", rules))
    assert len(trap.reached) == len(trap.tried) == 2


@pytest.mark.parametrize("uri", LITERALS)
async def test_an_address_is_refused_whichever_way_it_is_written(trap: Trap, uri: str) -> None:
    names = Names(NAMED)
    outcome = ended(await get(uri.format(port=trap.port), names=names), Status.FAILED)
    assert outcome.reason.startswith("the request leads to ")
    assert not trap.reached
    assert not trap.tried
    assert not names.asked
    (fault,) = CLOSED.uri_faults(uri.format(port=trap.port))  # so it is refused at creation, for the same reason
    assert fault.field == "uri"
    assert outcome.reason == f"the request {fault.reason}"


@pytest.mark.parametrize("uri", NO_URIS)
async def test_what_is_no_uri_is_refused(trap: Trap, uri: str) -> None:
    outcome = ended(await get(uri.format(port=trap.port)), Status.FAILED)
    assert outcome.reason.startswith("uri ")
    assert not trap.reached
    assert not trap.tried


@pytest.mark.parametrize("name", NAMED)
async def test_a_name_is_refused_by_the_address_it_has(trap: Trap, name: str) -> None:
    uri = f"http://{name}:{trap.port}/"
    assert CLOSED.uri_faults(uri) == []  # only looking it up can tell
    outcome = ended(await get(uri), Status.FAILED)
    assert outcome.reason.startswith(f"the request leads to {name}, ")
    for address in NAMED[name]:  # what a name stands for in the app's network is not told
        assert name.startswith(address) or address not in outcome.reason
    assert not trap.reached
    assert not trap.tried


@pytest.mark.parametrize("uri", [*LITERALS, *NO_URIS, *[f"http://{name}:{{port}}/" for name in NAMED]])
async def test_neither_a_redirect_nor_a_poll_leads_there(trap: Trap, target: Receiver, uri: str) -> None:
    names = Names(NAMED | {TARGET: ["127.0.0.1"]})
    location = re.sub(r"[\r\n]", "", uri.format(port=trap.port))
    inputs = {"method": "GET", "uri": by_name(target)}
    async with http_action(outbound=RULES, resolver=names) as action:
        for status in (302, 307):
            answers(target, {"status": status, "headers": {"Location": location}})
            outcome = ended(await action.attempt(an_attempt(inputs)), Status.FAILED)
            assert "leads to" in outcome.reason or "but its Location" in outcome.reason
        answers(target, {"status": 202, "headers": {"Location": location}})
        result = await action.attempt(an_attempt(inputs))
        if isinstance(result, Later):
            result = await action.attempt(an_attempt(inputs, memo=result.memo, now=result.at))
        ended(result, Status.FAILED)
    assert len(target.hits) == 3
    assert not trap.reached
    assert set(trap.tried) == {"127.0.0.1"}  # the target itself


async def test_a_name_that_is_rebound_is_judged_anew_and_what_was_judged_is_called(trap: Trap) -> None:
    names = Names({"rebound.test": [[PUBLIC], ["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC]]})
    uri = f"http://rebound.test:{trap.port}/"
    goes_on(await get(uri, names=names))
    assert (trap.tried, len(names.asked)) == ([PUBLIC], 1)  # looked up once for one connection
    ended(await get(uri, names=names), Status.FAILED)
    assert trap.tried == [PUBLIC]
    goes_on(await get(uri, names=names))
    goes_on(await get(uri, names=names))
    assert set(trap.tried) == {PUBLIC}
    assert not trap.reached


async def test_a_name_that_is_rebound_between_redirects_is_refused(trap: Trap, target: Receiver) -> None:
    names = Names({TARGET: ["127.0.0.1"], "rebound.test": [[PUBLIC], ["127.0.0.1"]]})
    answers(target, {"status": 302, "headers": {"Location": f"http://rebound.test:{trap.port}/"}})
    goes_on(await get(by_name(target), RULES, names))
    assert set(trap.tried) == {"127.0.0.1", PUBLIC}
    outcome = ended(await get(by_name(target), RULES, names), Status.FAILED)
    assert outcome.reason.startswith("the request leads to rebound.test, which is not public (loopback); ")
    assert not trap.reached


async def test_a_name_that_nobody_knows_may_be_known_later(trap: Trap) -> None:
    goes_on(await get("http://unknown.test/"))
    assert not trap.tried


async def test_what_is_public_is_called(trap: Trap) -> None:
    names = Names({"public.test": [PUBLIC, "2606:4700::1111"], "dns64.test": ["64:ff9b::808:808"]})
    for uri in ("http://8.8.8.8/", "http://[2606:4700::1111]/", "http://[::ffff:8.8.8.8]/", "http://public.test/"):
        assert CLOSED.uri_faults(uri) == []
        goes_on(await get(uri, names=names))
    goes_on(await get("http://dns64.test/", names=names))
    assert {"8.8.8.8", "2606:4700::1111"} <= set(trap.tried)


# What is not public, by IANA's registries of special purpose addresses; and two addresses of metadata services.
CLOSED_RANGES = """
    0.0.0.0-0.255.255.255 10.0.0.0-10.255.255.255 100.64.0.0-100.127.255.255 127.0.0.0-127.255.255.255
    169.254.0.0-169.254.255.255 172.16.0.0-172.31.255.255 192.0.0.0-192.0.0.255 192.0.2.0-192.0.2.255
    192.88.99.0-192.88.99.255 192.168.0.0-192.168.255.255 198.18.0.0-198.19.255.255
    198.51.100.0-198.51.100.255 203.0.113.0-203.0.113.255 224.0.0.0-255.255.255.255
    168.63.129.16-168.63.129.16
    ::-1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001::-2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
    2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002::-2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    3fff::-3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 4000::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
"""


@pytest.mark.parametrize("ends", CLOSED_RANGES.split())
def test_a_range_is_closed_from_end_to_end_and_what_is_beside_it_is_open(ends: str) -> None:
    first, last = (ip_address(end) for end in ends.split("-"))
    middle = first + (int(last) - int(first)) // 2
    assert [each for each in (first, middle, last) if not refused(each)] == []
    beside = [each + step for each, step in ((first, -1), (last, 1)) if 0 < int(each) < 2**each.max_prefixlen - 1]
    assert [each for each in beside if refused(each) or not each.is_global] == []


def refused(address: IPv4Address | IPv6Address) -> bool:
    return CLOSED.address_refusal("h", 80, str(address)) is not None


def test_no_python_knows_better() -> None:
    """What is open is global by every Python's own table, which has changed from one to the next."""
    draw = random.Random(7)
    open_ones = 0
    for _ in range(10_000):
        for address in (
            IPv4Address(draw.getrandbits(32)),
            IPv6Address(draw.getrandbits(125) | 1 << 125),
            IPv6Address(0x2001 << 112 | draw.getrandbits(112) >> draw.randrange(16)),
        ):
            if refused(address):
                continue
            open_ones += 1
            assert address.is_global, address
    assert open_ones > 15_000


@pytest.mark.parametrize(
    ("allow", "deny", "opened", "closed"),
    [
        ('["10.0.0.0/8"]', "", ["http://10.9.8.7/", "http://[::ffff:10.9.8.7]/"], ["http://11.0.0.1.1/"]),
        ('["127.0.0.1"]', "", ["http://127.0.0.1:1/", "http://localhost:1/"], ["http://127.0.0.2:1/"]),
        ('["::1"]', "", ["http://[::1]:1/", "http://localhost:1/"], ["http://127.0.0.1:1/"]),
        (
            '["10.0.0.0/8"]',
            '["10.1.0.0/16"]',
            ["http://10.2.0.1/"],
            ["http://10.1.0.1/", "http://[::ffff:a01:1]/"],
        ),
        ("", '["8.8.8.0/24"]', ["http://8.8.4.4/"], ["http://8.8.8.8/", "http://[64:ff9b::808:808]/"]),
        ("", '["*.example.net"]', ["http://example.net/"], ["http://a.example.net/", "http://A.EXAMPLE.NET./"]),
        ('["a.example.net"]', '["*.example.net"]', ["http://xexample.net/"], ["http://a.example.net/"]),
        ("", '["2606:4700::/32"]', ["http://[2606:4800::1]/"], ["http://[2606:4700::1]/"]),
        ("", '["::ffff:8.8.8.0/120"]', ["http://8.8.4.4/"], ["http://8.8.8.8/"]),
        ('["169.254.0.0/16"]', "", ["http://169.254.1.1/"], ["http://169.254.169.254/"]),
        ('["0.0.0.0/0", "::/0"]', "", ["http://[fd00::1]/"], ["http://168.63.129.16/", "http://[fd00:ec2::254]/"]),
        ('["0.0.0.0/0", "::/0"]', "", ["http://127.0.0.1/"], ["http://[2002:a9fe:a9fe::]/", "http://127.1/"]),
        ('["*.google.internal"]', "", ["http://a.google.internal/"], ["http://metadata.google.internal/"]),
    ],
)
def test_the_operator_opens_and_closes(allow: str, deny: str, opened: list[str], closed: list[str]) -> None:
    rules = Outbound(parse_places(allow), parse_places(deny))
    assert {uri: rules.uri_faults(uri) for uri in opened} == {uri: [] for uri in opened}
    assert [uri for uri in closed if not rules.uri_faults(uri)] == []


async def test_a_host_is_opened_by_its_name_alone_wherever_it_is(trap: Trap) -> None:
    names = Names({"a.internal.test": ["127.0.0.1"], "b.test": ["127.0.0.1"], "c.internal.test": ["10.1.1.1"]})
    rules = Outbound(parse_places('["*.internal.test"]'), parse_places('["10.0.0.0/8"]'))
    goes_on(await get(f"http://a.internal.test:{trap.port}/", rules, names))
    assert len(trap.reached) == 1
    ended(await get(f"http://b.test:{trap.port}/", rules, names), Status.FAILED)
    outcome = ended(await get("http://c.internal.test/", rules, names), Status.FAILED)
    assert "denies in OUTBOUND_DENY" in outcome.reason
    assert len(trap.tried) == 1


async def test_the_apps_own_endpoints_stay_closed_whatever_is_allowed(trap: Trap) -> None:
    environ = {
        "IDENTITY_ENDPOINT": f"http://localhost:{trap.port}/msi/token",
        "MSI_ENDPOINT": "http://[",
        "X": "y",
    }
    storage = ["https://acct.table.core.windows.net", "http://10.0.0.4:10001/devstoreaccount1"]
    rules = Outbound(
        parse_places('["0.0.0.0/0", "::/0", "*.test"]'), NOWHERE, [*identity_endpoints(environ), *storage]
    )
    closed = [
        *(f"http://{host}:{trap.port}/" for host in ("127.0.0.1", "127.9.9.9", "[::1]", "localhost", "0.0.0.0")),
        *(f"http://{host}:{trap.port}/" for host in ("[::ffff:127.0.0.1]", "[::]", "loopback.test", "any.test")),
        *("https://acct.table.core.windows.net/jobs", "http://ACCT.table.core.windows.net.:8080/"),
        *("https://acct-secondary.table.core.windows.net/", "http://10.0.0.4:80/", "http://10.0.0.4:10001/x"),
    ]
    for uri in closed:
        outcome = ended(await get(uri, rules), Status.FAILED)
        assert outcome.reason.endswith("an endpoint of the app itself"), uri
    assert not trap.reached
    assert not trap.tried
    assert rules.uri_faults(f"http://127.0.0.1:{trap.port + 1}/") == []
    assert rules.uri_faults("https://other.table.core.windows.net/") == []


@pytest.mark.parametrize(
    "uri",
    ["@parameters('u')", "http://@{parameters('h')}/", "http://h:@{parameters('p')}/", "http://x@{trigger()}"],
)
def test_a_host_that_expressions_give_is_left_to_the_run(uri: str) -> None:
    assert CLOSED.uri_faults(uri) == []


def test_a_known_host_is_judged_whatever_expressions_stand_behind_it() -> None:
    assert CLOSED.uri_faults("http://127.0.0.1/@{parameters('p')}")
    assert CLOSED.uri_faults("http://127.0.0.1?q=@{parameters('p')}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "must be JSON"),
        ("[" * 5000, "must be JSON"),
        ('"127.0.0.1"', "must list"),
        ("{}", "must list"),
        ("[1]", "must list"),
        ('["10.0.0.1/8"]', "bits beyond its prefix"),
        ('["10.0.0.0/33"]', "no address or CIDR"),
        ('["127.1"]', "no address or CIDR"),
        ('["0x7f.1"]', "no address or CIDR"),
        ('["[::1]"]', "no address or CIDR"),
        ('["127.0.0.1:80"]', "no address or CIDR"),
        ('["example.org:80"]', "no address or CIDR"),
        ('["https://example.org"]', "no address or CIDR"),
        ('["*"]', "neither a host"),
        ('["a.*.org"]', "neither a host"),
        ('["exa mple.org"]', "neither a host"),
        ('[""]', "neither a host"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_places(text)


@pytest.mark.parametrize(
    "text", ["", "[]", '["Example.ORG", "*.internal.example", "10.0.0.0/8", "::1", "fc00::/7"]']
)
def test_a_setting_that_means_something_is_taken(text: str) -> None:
    parse_places(text)


def test_the_url_that_is_judged_is_the_one_that_is_called() -> None:
    for uri in LITERALS:
        url = URL(uri.format(port=1), encoded=True)
        assert CLOSED.refusal((url.raw_host or "").lower().removesuffix("."), url.port or 0)
