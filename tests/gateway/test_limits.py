"""Clients that are slow, many or wrong, at a gateway that goes on answering everybody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from tests.gateway.test_refusals import problem
from tests.support.gateway import EVENT, Stack, import_in, served, token
from tests.support.waiting import eventually
from workers.shared.settings.connections import ConnectionSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIVE: Final = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORT: Final = 0.5
LONG: Final = 600
"""Seconds; tests that last so long fail."""
PATIENT: Final = {
    "header_seconds": LONG,
    "body_seconds": LONG,
    "send_seconds": LONG,
    "idle_seconds": LONG,
}


@dataclass
class Client:
    """A client that sends what it likes when it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    @asynccontextmanager
    async def to(cls, address: str, sent: bytes = b"") -> AsyncIterator[Self]:
        """One that has sent something."""
        parts = urlsplit(address)
        client = cls(*await asyncio.open_connection(parts.hostname, parts.port))
        client.writer.write(sent)
        try:
            yield client
        finally:
            client.writer.close()

    async def answer(self) -> str:
        """The head of the next answer."""
        return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def rest(self) -> str:
        """All that comes until the gateway closes the connection."""
        return (await self.reader.read()).decode()

    async def trickle(self, piece: bytes, every: float) -> None:
        """Send a piece again and again, until the connection is closed or the task is cancelled."""
        while not self.reader.at_eof():
            self.writer.write(piece)
            await asyncio.sleep(every)


@asynccontextmanager
async def limited(stack: Stack, **limits: Any) -> AsyncIterator[str]:
    """A gateway whose other limits are never reached; its address."""
    settings = ConnectionSettings(**{**PATIENT, "sign_in_attempts": 0, **limits})
    app = stack.gateway(connections=settings)
    async with served(app, connections=settings) as address:
        await others_are_answered(address)
        yield address


async def others_are_answered(address: str) -> None:
    async with httpx.AsyncClient(base_url=address) as other:
        assert (await other.get("/health/live")).status_code == 200


@pytest.mark.parametrize("trickles", [True, False])
async def test_slow_headers_get_408(stack: Stack, trickles: bool) -> None:
    async with (
        limited(stack, header_seconds=SHORT) as address,
        Client.to(address, LIVE[:-2]) as slow,
        asyncio.TaskGroup() as group,
    ):
        trickling = group.create_task(slow.trickle(b"X: y\r\n", SHORT / 10 if trickles else LONG))
        await others_are_answered(address)
        answer = await slow.rest()
        trickling.cancel()
    assert answer.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert "urn:docflow:problem:request-timeout" in answer and f"within {SHORT} seconds" in answer
    assert "connection: close" in answer.lower() and "x-content-type-options" in answer.lower()


async def test_a_connection_without_a_request_is_closed(stack: Stack) -> None:
    async with limited(stack, header_seconds=SHORT) as address, Client.to(address) as silent:
        await others_are_answered(address)
        assert await silent.rest() == ""


async def test_slow_headers_after_an_answer_get_408(stack: Stack) -> None:
    async with limited(stack, header_seconds=SHORT) as address, Client.to(address, LIVE) as slow:
        assert (await slow.answer()).startswith("HTTP/1.1 200")
        slow.writer.write(LIVE[:20])
        assert "HTTP/1.1 408" in await slow.rest()


async def test_an_idle_connection_is_closed(stack: Stack) -> None:
    async with limited(stack, idle_seconds=SHORT) as address, Client.to(address, LIVE * 2) as idle:
        for _ in range(2):
            assert (await idle.answer()).startswith("HTTP/1.1 200")
            await idle.reader.readuntil(b"}")
        await others_are_answered(address)
        assert await idle.rest() == ""


def post(path: str, content_type: str, length: int) -> bytes:
    """The headers of a request whose body has not come."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token()}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


UPLOAD: Final = (
    b'--b\r\nContent-Disposition: form-data; name=file; filename="a.csv"\r\n\r\nFirst name\r\n'
)


@pytest.mark.parametrize(
    ("path", "content_type", "begins"),
    [
        ("/api/v1/uploads/contexts", "application/json", b'{"table": "'),
        ("/api/imports", "multipart/form-data; boundary=b", UPLOAD),
    ],
    ids=["json", "upload"],
)
async def test_a_slow_body_gets_408(
    stack: Stack, path: str, content_type: str, begins: bytes
) -> None:
    async with (
        limited(stack, body_seconds=SHORT) as address,
        Client.to(address, post(path, content_type, 500_000) + begins) as slow,
        asyncio.TaskGroup() as group,
    ):
        trickling = group.create_task(slow.trickle(b"x", SHORT / 10))
        await others_are_answered(address)
        answer = await slow.rest()
        trickling.cancel()
    assert answer.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert "urn:docflow:problem:request-timeout" in answer
    assert f"within {SHORT} seconds" in answer


async def test_a_body_that_is_not_read_ends_with_its_connection(stack: Stack) -> None:
    asked = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    async with (
        limited(stack, header_seconds=SHORT) as address,
        Client.to(address, asked) as slow,
        asyncio.TaskGroup() as group,
    ):
        trickling = group.create_task(slow.trickle(b"x", SHORT / 10))
        assert (await slow.answer()).startswith("HTTP/1.1 200")
        assert await slow.rest() == '{"status":"live"}'
        trickling.cancel()


async def test_a_body_that_is_too_large_gets_413(stack: Stack) -> None:
    async with limited(stack, body_bytes=1_024) as address, stack.browser(address=address) as anna:
        large = {"table": "events", "name": "x" * 1_024, "starts_on": "2026-05-10"}
        refused = await anna.post("/api/v1/uploads/contexts", json=large)
        assert "at most 1,024 bytes" in problem(refused, 413, "too-large")
        await import_in(anna, "COLUMN_MAPPING", contextId=str(EVENT))


async def test_an_answer_that_nobody_reads_ends_with_its_connection() -> None:
    sent = 0
    ended = asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200})
        gone = asyncio.create_task(receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            sent += 1
        ended.set()

    settings = ConnectionSettings(send_seconds=SHORT)
    asked = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with served(endless, connections=settings) as address:
        await asyncio.sleep(0)
        async with Client.to(address, asked):
            await ended.wait()
    assert sent > 1


async def test_one_more_connection_takes_the_place_of_the_longest_idle(stack: Stack) -> None:
    async with limited(stack, connections=3) as address, AsyncExitStack() as exits:
        some = [await exits.enter_async_context(Client.to(address, LIVE)) for _ in range(3)]
        for client in some:
            assert (await client.answer()).startswith("HTTP/1.1 200")
            await client.reader.readuntil(b"}")
        await others_are_answered(address)
        assert await some[0].rest() == ""
        some[1].writer.write(LIVE)
        assert (await some[1].answer()).startswith("HTTP/1.1 200")


async def test_connections_that_say_nothing_keep_nobody_out(stack: Stack) -> None:
    async with limited(stack, connections=3) as address, AsyncExitStack() as exits:
        for _ in range(10):
            await exits.enter_async_context(Client.to(address, LIVE[:10]))
        await others_are_answered(address)


async def test_too_many_connections_at_work_get_503(stack: Stack) -> None:
    async with (
        limited(stack, connections=2) as address,
        stack.browser(address=address) as anna,
        anna.stream("GET", "/api/v1/events"),
        anna.stream("GET", "/api/v1/events"),
        stack.browser(token("ben"), address=address) as ben,
    ):
        refused = await ben.get("/api/v1/runs")
        assert "too many connections" in problem(refused, 503, "unavailable")
        assert refused.headers["retry-after"] == "5"
        assert refused.headers["connection"] == "close"
        # Who watches the process would start it again.
        await others_are_answered(address)


async def test_too_many_streams_of_one_caller_get_429(stack: Stack) -> None:
    path = "/api/v1/events"
    async with (
        limited(stack, streams=2) as address,
        stack.browser(address=address) as anna,
        stack.browser(token("ben"), address=address) as ben,
        anna.stream("GET", path),
        anna.stream("GET", path) as second,
    ):
        refused = await anna.get(path)
        assert "2 event streams" in problem(refused, 429, "too-many-requests")
        assert refused.headers["retry-after"] == "2"
        assert (await anna.get("/api/v1/runs")).status_code == 200
        async with ben.stream("GET", path) as of_ben:
            assert of_ben.status_code == 200
        await second.aclose()

        async def is_free() -> bool:
            async with anna.stream("GET", path) as third:
                return third.status_code == 200

        await eventually(is_free)


async def test_many_wrong_sign_ins_get_429(stack: Stack) -> None:
    async with limited(stack, sign_in_attempts=3) as address:
        async with httpx.AsyncClient(base_url=address) as eve:
            for _ in range(3):
                assert (await eve.post("/sign-in", data={"token": "no"})).status_code == 401
            for bearer in ("no", token()):
                refused = await eve.post("/sign-in", data={"token": bearer})
                assert refused.status_code == 429
                assert 0 < int(refused.headers["retry-after"]) <= 60
                assert "Too many sign-ins from your address failed" in refused.text
            # The proxy on this machine says who somebody is.
            elsewhere = {"x-forwarded-for": "192.0.2.7"}
            form = {"token": token("ben")}
            assert (await eve.post("/sign-in", data=form, headers=elsewhere)).status_code == 303
        async with stack.browser(address=address) as anna:
            assert (await anna.get("/api/v1/runs")).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("192.0.2.7", "192.0.2.8", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
    ],
)
async def test_sign_ins_count_for_an_address(
    stack: Stack, first: str, second: str, shared: bool
) -> None:
    async with (
        limited(stack, sign_in_attempts=1) as address,
        httpx.AsyncClient(base_url=address) as eve,
    ):
        statuses = [
            (await eve.post("/sign-in", data={"token": "no"}, headers={"x-forwarded-for": place}))
            for place in (first, second)
        ]
    assert [each.status_code for each in statuses] == [401, 429 if shared else 401]


async def test_a_proxy_that_is_not_trusted_speaks_for_nobody(stack: Stack) -> None:
    async with (
        limited(stack, sign_in_attempts=1, trusted_proxies=("192.0.2.1",)) as address,
        httpx.AsyncClient(base_url=address) as eve,
    ):
        for place, status in (("192.0.2.7", 401), ("192.0.2.8", 429)):
            headers = {"x-forwarded-for": place}
            refused = await eve.post("/sign-in", data={"token": "no"}, headers=headers)
            assert refused.status_code == status
