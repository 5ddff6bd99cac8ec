"""Sites that embed an importer: what their pages may ask the API themselves."""

import time
from collections.abc import Callable, Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters.ports.errors import PortError
from workers.shared.services.access import ApiTokenService

_API: Final = "/api/v1/"
_ORIGINS_LAST: Final = 5.0
"""Seconds after which it is read again which sites have a valid token."""
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match",
    "Access-Control-Max-Age": "60",
    "Vary": "Origin",
}
_ALLOWED: Final = "Access-Control-Allow-Origin"
_READABLE: Final = "ETag, Link, Location, Retry-After"
_UNAUTHORISED: Final = 401


class EmbeddingSites:
    """Answers pages of the sites that an upload token names, as CORS has it.

    An answer to a request with an upload token can be read by pages of its own sites. A browser
    asks beforehand without the token: it is told to go on if any valid token names the site.

    Args:
        app: What answers.
        tokens: Which sites have a valid token.
        clock: Seconds, for the age of what was read.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: ApiTokenService,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._clock = clock
        self._until = 0.0
        self._known: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not scope["path"].startswith(_API):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None:
            await self._app(scope, receive, send)
            return
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if is_preflight and await self._is_known(origin):
            answer = Response(status_code=204, headers={**_PREFLIGHT, _ALLOWED: origin})
            await answer(scope, receive, send)
            return
        state = scope.setdefault("state", {})

        async def send_readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                grant = getattr(state.get("who"), "upload", None)
                is_theirs = grant is not None and origin in grant.origins
                # They have to see that a token has expired, to get another one.
                has_expired = message["status"] == _UNAUTHORISED and await self._is_known(origin)
                if is_theirs or has_expired:
                    own = MutableHeaders(scope=message)
                    own[_ALLOWED] = origin
                    own["Access-Control-Expose-Headers"] = _READABLE
                    own.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, send_readable)

    async def _is_known(self, origin: str) -> bool:
        if self._clock() >= self._until:
            try:
                self._known = await self._tokens.embedding_origins()
            except PortError:
                return False
            self._until = self._clock() + _ORIGINS_LAST
        return origin in self._known
