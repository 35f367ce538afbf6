"""The storage account by identity: the app's clients against an Azurite that takes tokens only over https."""

import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from azure.core.pipeline.transport import AioHttpTransport
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from devhost.azurite import ACCOUNT, Azurite, Ports
from shared.jobs.model import Ended, Status
from shared.settings import Account, read_settings
from shared.storage.table import StoreFailed
from shared.web.api import respond
from shared.web.exchange import Request
from shared.wiring import App, build, own_identity

pytestmark = pytest.mark.servers

STORAGE = "https://storage.azure.com"
CLIENT_ID = "6f1a5bd0-7b1c-4c52-9d0e-2f5d2a0c1b3e"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine's own address, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert_file, key_file


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ports, ssl.SSLContext]]:
    """An Azurite that takes tokens, over https, and whom a client must trust to talk to it."""
    cert, key = certificate(tmp_path_factory.mktemp("certificate"))
    trust = ssl.create_default_context(cafile=str(cert))
    options = ["--oauth", "basic", "--cert", str(cert), "--key", str(key)]
    with Azurite.start(in_memory=True, options=options) as azurite:
        yield azurite.ports, trust


class Platform:
    """The token endpoint of a managed identity, as App Service and Functions have it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.audience = STORAGE
        self.knows_the_identity = True

    async def token(self, request: web.Request) -> web.Response:
        """A token that nobody has signed, which is all that Azurite looks for."""
        self.asked.append({"identity": request.headers["X-IDENTITY-HEADER"], **request.query})
        if not self.knows_the_identity:
            return web.json_response({"statusCode": 400, "message": "No User Assigned Identity found"}, status=400)
        now = int(time.time())
        claims = {
            "iss": "https://sts.windows.net/t/",
            "aud": self.audience,
            "iat": now,
            "nbf": now - 60,
            "exp": now + 3600,
        }
        parts = ({"alg": "none", "typ": "JWT"}, claims)
        token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().strip("=") for part in parts)
        return web.json_response(
            {
                "access_token": token + ".c2ln",
                "expires_on": str(now + 3600),
                "resource": STORAGE,
                "token_type": "Bearer",
            }
        )


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    made, server = Platform(), web.Application()
    server.router.add_get("/token", made.token)
    runner = web.AppRunner(server, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{runner.addresses[0][1]}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "of-the-platform")
    yield made
    await runner.cleanup()


@asynccontextmanager
async def built(secure: tuple[Ports, ssl.SSLContext], **env: str) -> AsyncIterator[App]:
    """The app on that Azurite, by identity; it is closed at the end."""
    ports, trust = secure
    name = uuid4().hex[:16]
    uris = {
        f"AzureWebJobsStorage__{service}ServiceUri": f"https://127.0.0.1:{port}/{ACCOUNT}/"  # as Azure tells them
        for service, port in ports._asdict().items()
    }
    settings = read_settings(
        uris | {"TABLE_NAME": f"t{name}", "QUEUE_NAME": f"q{name}", "PARTITIONS": "2", "HORIZON": "PT15M"} | env
    )

    def transport() -> AioHttpTransport:
        return AioHttpTransport(
            session=aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)), session_owner=True
        )

    app = await build(settings, transport=transport)
    try:
        yield app
    finally:
        await app.close()


@pytest.mark.parametrize("credential", ["managedidentity", ""])
async def test_a_job_fires_and_tells_events_with_nothing_but_an_identity(
    secure: tuple[Ports, ssl.SSLContext], platform: Platform, credential: str
) -> None:
    identity = {"AzureWebJobsStorage__credential": credential, "AzureWebJobsStorage__clientId": CLIENT_ID}
    inbox = f"inbox-{uuid4().hex[:8]}"
    async with built(secure, QUEUE_TARGETS=json.dumps([inbox]), EVENTS_QUEUE=inbox, **identity) as app:
        action = {"type": "Queue", "inputs": {"queue": inbox, "message": "hello"}}
        job = json.dumps({"id": "keyless", "trigger": {"type": "Once"}, "action": action}).encode()
        headers = {"content-type": "application/json"}
        asked = Request(url="http://localhost/api/jobs", headers=headers, route={}, query={}, body=job)
        assert (await respond(app.api.jobs.create, asked)).status == 201
        assert await app.detector.tick()
        for partition in app.store.jobs.partitions:
            await app.dispatcher.fire_due(partition)
        run = await app.store.run_list.one("keyless", 1, 100)
    assert isinstance(run, Ended)
    assert run.status is Status.SUCCEEDED, run
    # One token serves all clients.
    assert [(each["client_id"], each["resource"]) for each in platform.asked] == [(CLIENT_ID, STORAGE)]


async def test_a_token_that_storage_does_not_take_is_told_as_such(
    secure: tuple[Ports, ssl.SSLContext], platform: Platform
) -> None:
    platform.audience = "https://vault.azure.net"
    with pytest.raises(StoreFailed) as raised:
        async with built(secure, AzureWebJobsStorage__credential="managedidentity"):
            pass
    assert "AuthenticationFailed" in str(raised.value) or "authenticate" in str(raised.value)


async def test_a_platform_without_that_identity_is_told_as_such(
    secure: tuple[Ports, ssl.SSLContext], platform: Platform
) -> None:
    platform.knows_the_identity = False
    with pytest.raises(StoreFailed):
        async with built(secure, AzureWebJobsStorage__credential="managedidentity"):
            pass
    assert len(platform.asked) == 1


@pytest.mark.parametrize(
    ("account", "named", "asked"),
    [(Account(client_id=CLIENT_ID), None, CLIENT_ID), (Account(client_id=CLIENT_ID), "other", "other")],
)
async def test_jobs_have_the_identity_of_the_app_unless_they_name_another(
    platform: Platform, account: Account, named: str | None, asked: str
) -> None:
    async with own_identity(account)(named) as credential:
        await credential.get_token("api://ours/.default")
    assert [each.get("client_id") for each in platform.asked] == [asked]
