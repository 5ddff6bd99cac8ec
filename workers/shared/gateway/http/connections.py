"""The connections of the gateway: how many there are, and how long one may keep it waiting."""

import asyncio
import json
from http import HTTPStatus
from typing import Any, Final, cast

import h11
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from workers.shared.gateway.http.answers import SECURITY_HEADERS
from workers.shared.gateway.http.hosts import HEALTH
from workers.shared.services.errors import ServiceUnavailable
from workers.shared.settings.connections import ConnectionSettings

_RETRY_SECONDS: Final = "5"
_PROBLEM: Final = "application/problem+json"


class ServerConfig(uvicorn.Config):
    """How the gateway's server runs.

    Args:
        app: What answers.
        settings: Limits of its connections.
    """

    def __init__(self, app: ASGIApp, settings: ConnectionSettings) -> None:
        super().__init__(
            cast("Any", app),
            http=Connection,
            # A WebSocket would have none of these limits.
            ws="none",
            # Its lines are part of the process's own log.
            log_config=None,
            log_level="warning",
            lifespan="off",
            server_header=False,
            forwarded_allow_ips=list(settings.trusted_proxies),
            # It goes to the event loop, which takes fractions.
            timeout_keep_alive=cast("int", settings.idle_seconds),
            timeout_graceful_shutdown=settings.grace_seconds,
        )
        self.settings = settings
        self.waiting: dict[Connection, None] = {}
        """Connections without a request under way, the one that waits longest first."""


class Connection(H11Protocol):
    """One connection.

    A deadline runs while it waits for the client, and bytes that trickle in do not move it: for the
    headers of a request from the first byte of them, for those of the first request from the
    beginning, and for the rest of a body from an answer that did not need it. `BoundedBodies`
    waits for a body that is read.
    """

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._settings = config.settings
        self._waiting = config.waiting
        self._deadline: asyncio.TimerHandle | None = None
        self._reader_watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take the connection, in the place of one that waits if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self._settings.connections:
            if oldest := next(iter(self._waiting), None):
                oldest.end()
            else:
                self.app = cast("Any", _Full(cast("ASGIApp", self.app)))
        self._waiting[self] = None
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        if self._reader_watch is not None:
            self._reader_watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        if self._is_busy:
            self._forget()
        elif self.transport.is_closing():
            self._watch_reader()
        else:
            self._expect()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reader()
        # The next one may have come already.
        elif not self._is_busy:
            self._waiting[self] = None
            if self.conn.their_state is h11.SEND_BODY:
                self._expect()

    def pause_writing(self) -> None:
        """Watch whether the client reads the answer."""
        super().pause_writing()
        self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that is idle."""
        super().timeout_keep_alive_handler()
        self._watch_reader()

    def end(self) -> None:
        """Close the connection."""
        self._forget()
        self._unset_keepalive_if_required()
        self.transport.close()
        self._watch_reader()

    @property
    def _is_busy(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    def _expect(self) -> None:
        """Give the client time, if it does not run already."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._settings.header_seconds, self._late)

    def _forget(self) -> None:
        """The connection does not wait any more."""
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        begun, _ = self.conn.trailing_data
        if begun and self.conn.our_state is h11.IDLE:
            self._answer_late()
        self.end()

    def _answer_late(self) -> None:
        status = HTTPStatus.REQUEST_TIMEOUT
        seconds = self._settings.header_seconds
        detail = f"headers must come within {seconds:g} seconds"
        text = json.dumps(_problem("request-timeout", status, detail)).encode()
        headers = {
            **SECURITY_HEADERS,
            "content-type": _PROBLEM,
            "content-length": str(len(text)),
            "connection": "close",
        }
        start = h11.Response(
            status_code=status,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            reason=status.phrase.encode(),
        )
        for event in (start, h11.Data(data=text), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")

    def _watch_reader(self, left: int | None = None) -> None:
        """Cut off a client that reads nothing of what is left to send."""
        now = self.transport.get_write_buffer_size()
        if self._reader_watch is not None:
            self._reader_watch.cancel()
            self._reader_watch = None
        if left is not None and now >= left:
            self.transport.abort()
        elif now:
            seconds = self._settings.send_seconds
            self._reader_watch = self.loop.call_later(seconds, self._watch_reader, now)


class _Full:
    """Answers that there are too many connections, unless somebody watches the process."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(HEALTH):
            await self._app(scope, receive, send)
            return
        headers = {**SECURITY_HEADERS, "retry-after": _RETRY_SECONDS, "connection": "close"}
        status = HTTPStatus.SERVICE_UNAVAILABLE
        problem = _problem(ServiceUnavailable.kind, status, "the gateway has too many connections")
        await JSONResponse(problem, status, headers, media_type=_PROBLEM)(scope, receive, send)


def _problem(kind: str, status: HTTPStatus, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:docflow:problem:{kind}",
        "title": status.phrase,
        "status": status.value,
        "detail": f"{detail}; try again in a moment",
    }
