"""What every answer carries; events that are streamed; answers counted."""

import asyncio
import re
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Mapping,
)
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import anyio
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers.shared import metrics
from workers.shared.services.errors import TooManyRequests
from workers.shared.services.identity import Identity

COME_BACK_AFTER: Final = 2000
"""Milliseconds after which a browser connects again."""

Item = TypeVar("Item")


class Streams:
    """Limits how many event streams each caller has open at one gateway.

    Args:
        most: Streams of a caller; 0: there is no limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = Counter[str]()

    @contextmanager
    def one_of(self, subject: str) -> Generator[None]:
        """A stream is open until the block ends.

        Raises:
            TooManyRequests: The caller has as many as they may.
        """
        if self._most and self._open[subject] >= self._most:
            raise TooManyRequests(
                f"you may have {self._most:,} event streams open at once; close one first",
                COME_BACK_AFTER // 1000,
            )
        self._open[subject] += 1
        try:
            yield
        finally:
            self._open[subject] -= 1
            if not self._open[subject]:
                del self._open[subject]


class EventStream(StreamingResponse):
    """Server-sent events to one caller, who may have so many streams open; no cache stores them."""

    def __init__(self, events: AsyncIterator[bytes], streams: Streams, subject: str) -> None:
        super().__init__(
            events,
            media_type="text/event-stream",
            # Proxies must pass on each event as it comes.
            headers={"x-accel-buffering": "no", "cache-control": "no-store"},
        )
        self._streams = streams
        self._subject = subject

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one_of(self._subject):
            await super().__call__(scope, receive, send)


def event_stream(
    request: Request,
    who: Identity,
    items: AsyncGenerator[Item | None],
    *,
    event: str,
    id: Callable[[Item], str],
    render: Callable[[Item], str],
) -> EventStream:
    """An event for each item, whose id is that of its revision.

    Args:
        request: Asks for the stream.
        who: Asks for it.
        items: As `watched` gives them (`workers/shared/services/lists.py`).
        event: Name of the events.
        id: What a browser sends back as `Last-Event-ID`.
        render: The data of an event.
    """
    streams: Streams = request.app.state.streams
    return EventStream(_events(items, event, id, render), streams, who.subject)


async def _events(
    items: AsyncGenerator[Item | None],
    event: str,
    id: Callable[[Item], str],
    render: Callable[[Item], str],
) -> AsyncIterator[bytes]:
    yield format_sse_event(retry=COME_BACK_AFTER)
    async with aclosing(items):
        async for each in items:
            if each is None:
                yield KEEPALIVE_COMMENT
            else:
                yield format_sse_event(event=event, id=id(each), data_str=render(each))


class Download(FileResponse):
    """Sends a file and deletes it, also when the client has disconnected."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)


_MEGABYTE: Final = 1_000_000
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PART: Final = re.compile(r"\{[a-z]+\}")
_UNFRAMED: Final = "frame-ancestors 'none'"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        _UNFRAMED,
    )
)
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # What people import is theirs: no cache keeps it, unless an answer allows it.
    "cache-control": "no-store",
}
"""Of every answer that has no value of its own for one of them."""


def framed_by(origins: Collection[str]) -> Mapping[str, str]:
    """Headers of a page that pages of some sites, and no others, may show in a frame.

    Args:
        origins: The sites; they are checked, and hold nothing that ends a directive.
    """
    framed = f"frame-ancestors {' '.join(origins)}"
    return {
        "content-security-policy": _POLICY.replace(_UNFRAMED, framed),
        "cross-origin-resource-policy": "cross-origin",
        # It knows one site at most: the policy above takes its place.
        "x-frame-options": "",
    }


class SecurityHeaders:
    """Adds headers that keep browsers from doing what no page of ours asks for.

    Args:
        app: What answers.
        https: Browsers are instructed to use https only.
    """

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = dict(SECURITY_HEADERS)
        if https:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if not headers["x-frame-options"]:
                    del headers["x-frame-options"]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class BoundedBodies:
    """Refuses bodies that are too large, except where files are uploaded, or come too slowly.

    Only the time counts in which the gateway waits for a body, not that in which it works on what
    has come.

    Args:
        app: What answers.
        uploads: Paths that take files by POST, and have a limit of their own; `{name}` stands
            for any one part of a path.
        largest: Bytes of a body that is no upload.
        seconds: What a body may take, and again for each megabyte of it that has come.
    """

    def __init__(
        self, app: ASGIApp, *, uploads: Collection[str], largest: int, seconds: float
    ) -> None:
        self._app = app
        self._uploads = [re.compile(_PART.sub("[^/]+", path)) for path in uploads]
        self._largest = largest
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        is_upload = scope["method"] == "POST" and any(
            path.fullmatch(scope["path"]) for path in self._uploads
        )
        received, waited, has_more, answering = 0, 0.0, True, False

        async def receive_bounded() -> Message:
            nonlocal received, waited, has_more
            if not has_more:
                return await receive()
            begun = clock()
            allowed = self._seconds * (1 + received // _MEGABYTE)
            try:
                async with asyncio.timeout(allowed - waited):
                    message = await receive()
            except TimeoutError:
                has_more = False
                if answering:
                    return {"type": "http.disconnect"}
                detail = f"the body came too slowly: within {allowed:g} seconds {received:,} bytes"
                raise HTTPException(408, detail, {"connection": "close"}) from None
            waited += clock() - begun
            received += len(message.get("body", b""))
            has_more = message.get("more_body", False)
            if received > self._largest and not is_upload:
                raise HTTPException(413, f"a body may have at most {self._largest:,} bytes")
            return message

        async def send_noted(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        await self._app(scope, receive_bounded, send_noted)


class BodilessHead:
    """Answers HEAD as GET is answered, without the body.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        with anyio.CancelScope() as answering:

            async def send_start(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body"})
                elif message.get("more_body"):
                    # A stream that nobody reads may never end by itself.
                    answering.cancel()

            await self._app({**scope, "method": "GET"}, receive, send_start)


COMPRESSED: Final = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/pdf",
    "application/vnd.apache.parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "image/tiff",
)
"""Media types of what compressing again makes no smaller, and of streams."""


class CountedResponses:
    """Counts answers by method and status.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                # A client may send any word: each would be a series of its own for ever.
                method = scope["method"] if scope["method"] in _METHODS else "other"
                labels = {"method": method, "status": str(message["status"])}
                metrics.count(metrics.RESPONSES, labels)
            await send(message)

        await self._app(scope, receive, send_counted)
