"""Addresses that no job may call, in every way of writing them; `{port}` is where a listener waits."""

import socket
from collections.abc import Mapping, Sequence

from aiohttp.abc import AbstractResolver, ResolveResult

LITERALS = [
    # This machine.
    "http://127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.1.2.3:{port}/",
    "http://127.255.255.255:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://a.localhost:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0.1.2.3:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::FFFF:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b:1::1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::]:{port}/",
    "http://[v1.127]:{port}/",
    "http://[2001:0:102:304:0:0:80ff:fffe]:{port}/",
    # IPv4 as the socket layer reads it: decimal, octal, hexadecimal, short, mixed.
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0x7f000001:{port}/",
    "http://0X7F000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0x0.0.01:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.0.0.0x1:{port}/",
    "http://127.0.0.01:{port}/",
    "http://0127.0.0.1:{port}/",
    "http://00000177.0.0.1:{port}/",
    "http://0:{port}/",
    "http://0x:{port}/",
    "http://127.0.0.256:{port}/",
    "http://127.0.0.1.1:{port}/",
    "http://4294967296:{port}/",
    # Metadata services and what else is near.
    "http://169.254.169.254/metadata/identity/oauth2/token?resource=https://vault.azure.net",
    "http://169.254.169.254.:80/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://2852039166/latest/meta-data/",
    "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.170.2/v2/credentials",
    "http://168.63.129.16/machine/?comp=goalstate",
    "http://[::ffff:168.63.129.16]/",
    "http://100.100.100.200/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./computeMetadata/v1/",
    "http://metadata/",
    "http://instance-data/latest/",
    # Networks behind the app, and what is no host's address.
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://169.254.1.1/",
    "http://198.18.0.1/",
    "http://192.0.0.8/",
    "http://192.0.2.1/",
    "http://203.0.113.9/",
    "http://192.88.99.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250:1900/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://[2001:db8::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[4000::1]/",
]
"""Refused without being looked up."""

NO_URIS = [
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "http://example.org@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.org/",
    "http://example.org\\.127.0.0.1:{port}/",
    "http://127.0.0.1%2f:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    "http://%6cocalhost:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127。0。0。1:{port}/",
    "http://①②⑦.0.0.1:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[fe80::1%25eth0]:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1:{port}\r\nHost: x/",
    "http://[127.0.0.1]:{port}/",
]
"""No URIs that an action takes."""

NAMED: dict[str, list[str]] = {
    "loopback.test": ["127.0.0.1"],
    "loopback6.test": ["::1"],
    "any.test": ["0.0.0.0"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "translated.test": ["64:ff9b::7f00:1"],
    "sixtofour.test": ["2002:7f00:1::1"],
    "private.test": ["10.1.2.3", "192.168.1.1"],
    "link.test": ["fe80::1%lo"],
    "metadata.test": ["169.254.169.254"],
    "wireserver.test": ["168.63.129.16"],
    "carrier.test": ["100.64.1.1"],
    "all.test": ["127.0.0.1", "::1", "10.0.0.1", "fd00::1"],
    "127.0.0.1.nip.test": ["127.0.0.1"],
    "0x7f000001.test": ["127.0.0.1"],
}
"""Names, and the addresses at which somebody's resolver puts them."""


class Names(AbstractResolver):
    """A resolver that knows these names; where there are several lists for one, each look-up takes the next."""

    def __init__(self, names: Mapping[str, Sequence[str] | list[list[str]]]) -> None:
        self._names = {name: list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        known = self._names.get(host.lower().removesuffix("."))
        if not known:
            raise OSError(None, "no such host")
        rebinds = isinstance(known[0], list)
        found = known[0] if rebinds else known
        if rebinds and len(known) > 1:
            known.pop(0)
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        pass
