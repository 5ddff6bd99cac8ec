"""Storage queues that are reached as whom the process is to Entra ID."""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from azure.storage.queue.aio import QueueClient

from stack.azurite import azurite
from tests.support.certificates import pem_for
from workers.shared.bridges.consumer import BridgeError, BridgeTotals, Retry
from workers.shared.errors import SettingsError
from workers.shared.services.bodies import Settle, Verdict
from workers.transfers.bridge import StorageQueuesBridge
from workers.transfers.resources import queue_addresses
from workers.transfers.settings import StorageQueueSettings


@dataclass
class Identities:
    """An endpoint of managed identities, as a machine of Azure has one."""

    url: str
    asked: list[str] = field(default_factory=list[str])
    """The resources that tokens were asked for."""


@pytest.fixture
def identities(monkeypatch: pytest.MonkeyPatch) -> Generator[Identities]:
    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (resource,) = parse_qs(urlsplit(self.path).query)["resource"]
            assert self.headers["X-IDENTITY-HEADER"] == "secret"
            found.asked.append(resource)
            until = int(time.time()) + 3_600
            answer = {"access_token": _token(resource, until), "expires_on": str(until)}
            body = json.dumps({**answer, "resource": resource, "token_type": "Bearer"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    found = Identities(f"http://127.0.0.1:{server.server_port}/token")
    monkeypatch.setenv("IDENTITY_ENDPOINT", found.url)
    monkeypatch.setenv("IDENTITY_HEADER", "secret")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _token(resource: str, until: int) -> str:
    """A token as Entra ID makes them; the emulator checks all but its signature."""
    claims = {
        "aud": resource,
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "iat": until - 7_200,
        "nbf": until - 7_200,
        "exp": until,
    }
    parts = [json.dumps(each).encode() for each in ({"alg": "none", "typ": "JWT"}, claims)]
    parts.append(b"signature")
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)


class Taking:
    """Takes everything."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def accept(self, raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        self.seen.append(raw)
        return Settle("x")

    async def give_up(
        self, raw: bytes, earlier: int, message_id: str | None, reason: str
    ) -> Verdict:
        raise AssertionError(reason)

    async def ready(self) -> bool:
        return True


@pytest.mark.parametrize("way", ["account", "file"])
async def test_queues_are_reached_as_whom_the_process_is(
    way: str, identities: Identities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = pem_for("127.0.0.1")
    tls = (tmp_path / "certificate.pem", tmp_path / "key.pem")
    for file, content in zip(tls, (pem.certificate, pem.key), strict=True):
        file.write_bytes(content)
    trusting = ssl.create_default_context(cafile=tls[0])
    # Made when aiohttp is imported, and there is no setting for it.
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
    async with azurite(tmp_path, tls) as connection_string:
        async with QueueClient.from_connection_string(connection_string, "jobs") as client:
            await client.create_queue()
            await client.send_message('{"id": 1}')
            url = client.url.partition("?")[0]
        settings = tmp_path / "appsettings.json"
        settings.write_text(json.dumps({"Queues": {"jobs": {"Url": url, "Credential": "EntraID"}}}))
        given = {
            "account": {"DOCFLOW_TRANSFERS_QUEUE_ACCOUNT": url.rpartition("/")[0]},
            "file": {"DOCFLOW_TRANSFERS_APPSETTINGS": str(settings)},
        }
        addresses = queue_addresses(StorageQueueSettings.read(given[way]), ("jobs",))
        taking = Taking()
        bridge = StorageQueuesBridge(addresses, lambda _: taking)
        assert await bridge.run(asyncio.Event(), drain=True) == BridgeTotals(received=1, settled=1)
        assert taking.seen == [b'{"id": 1}']
        assert set(identities.asked) == {"https://storage.azure.com"}


async def test_a_process_that_entra_id_does_not_know_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of all that the credential would try, the one that sends no request.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    url = "https://127.0.0.1:9/account"
    settings = StorageQueueSettings.read({"DOCFLOW_TRANSFERS_QUEUE_ACCOUNT": url})
    addresses = queue_addresses(settings, ("jobs",))
    at_once = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = StorageQueuesBridge(addresses, lambda _: Taking(), retry=at_once)
    with pytest.raises(BridgeError, match=r"jobs refuses access.*Entra ID"):
        await bridge.run(asyncio.Event(), drain=True)


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ({"Credential": "EntraID", "SASToken": "sig=x"}, 'either "SASToken" or "Credential"'),
        ({}, 'either "SASToken" or "Credential"'),
        ({"Credential": "Password"}, '"Credential" of queue "jobs" must be "EntraID"'),
    ],
)
def test_a_queue_has_one_credential(queue: dict[str, str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "appsettings.json"
    file.write_text(json.dumps({"Queues": {"jobs": {"Url": "https://x.test/jobs", **queue}}}))
    settings = StorageQueueSettings.read({"DOCFLOW_TRANSFERS_APPSETTINGS": str(file)})
    with pytest.raises(SettingsError, match=said):
        queue_addresses(settings, ("jobs",))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://acme.queue.core.windows.net", "must begin with https://"),
        ("https://acme.queue.core.windows.net?sig=x", "a URL has no token"),
    ],
)
def test_the_url_of_an_account_is_checked(url: str, said: str) -> None:
    settings = StorageQueueSettings.read({"DOCFLOW_TRANSFERS_QUEUE_ACCOUNT": url})
    with pytest.raises(SettingsError, match=said):
        queue_addresses(settings, ("jobs",))
