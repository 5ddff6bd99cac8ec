"""What every answer carries; events that are streamed; answers counted."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar

import anyio
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers.shared import metrics

COME_BACK_AFTER: Final = 2000
"""Milliseconds after which a browser connects again."""

Item = TypeVar("Item")


def event_stream(
    items: AsyncGenerator[Item | None],
    *,
    event: str,
    id: Callable[[Item], str],
    render: Callable[[Item], str],
) -> StreamingResponse:
    """An event for each item, whose id is that of its revision; no cache may store them.

    Args:
        items: As `watched` gives them (`workers/shared/services/lists.py`).
        event: Name of the events.
        id: What a browser sends back as `Last-Event-ID`.
        render: The data of an event.
    """
    return StreamingResponse(
        _events(items, event, id, render),
        media_type="text/event-stream",
        # Proxies must pass on each event as it comes.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


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


_LARGEST_BODY: Final = 1 << 20
"""Bytes of a request that is not an upload."""
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


class SmallBodies:
    """Refuses bodies beyond a megabyte, except where files are uploaded.

    Args:
        app: What answers.
        uploads: Paths that take files by POST, and have a limit of their own; `{name}` stands
            for any one part of a path.
    """

    def __init__(self, app: ASGIApp, *, uploads: Collection[str]) -> None:
        self._app = app
        self._uploads = [re.compile(_PART.sub("[^/]+", path)) for path in uploads]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (
            scope["method"] == "POST"
            and any(path.fullmatch(scope["path"]) for path in self._uploads)
        ):
            await self._app(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > _LARGEST_BODY:
                    raise HTTPException(413, f"a body may have at most {_LARGEST_BODY:,} bytes")
            return message

        await self._app(scope, receive_counted, send)


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
                labels = {"method": scope["method"], "status": str(message["status"])}
                metrics.count(metrics.RESPONSES, labels)
            await send(message)

        await self._app(scope, receive, send_counted)
