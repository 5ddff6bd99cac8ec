"""The names that the gateway answers to, and what it answers with no name of its own."""

from collections.abc import Collection
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers.shared.services.bodies import printable

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""They lead to the machine of whoever asks, so no other site can stand behind them."""
_ANY: Final = "*"
HEALTH: Final = "/health/"
"""Asked for by address, by what starts and watches processes; it says the same to everyone."""
_LONGEST: Final = 200


def host_of(authority: str) -> str | None:
    """The name in an authority such as `docflow.example.org:8000`, in small letters.

    None: it is no authority.
    """
    try:
        parts = urlsplit(f"//{authority}")
        name = parts.hostname
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        return None
    return name.rstrip(".") if name else None


class KnownHosts:
    """Refuses requests that are addressed to another name, and keeps redirects relative.

    A site of somebody else can give its name our address; pages of ours would be that site's own.

    Args:
        app: What answers.
        hosts: Names; `*.example.org` is all below one, `*` is any.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self._app = app
        names = {host.lower().strip("[]").rstrip(".") for host in hosts} | LOOPBACK
        self._any = _ANY in names
        self._names = {name for name in names if not name.startswith("*.")}
        self._ends = tuple(name[1:] for name in names if name.startswith("*."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("host", "")
        if not self._knows(given) and not scope["path"].startswith(HEALTH):
            await _misdirected(given)(scope, receive, send)
            return

        async def send_relative(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (location := headers.get("location")) is not None:
                    headers["location"] = _relative(location, given)
            await send(message)

        await self._app(scope, receive, send_relative)

    def _knows(self, authority: str) -> bool:
        name = host_of(authority)
        if name is None:
            return False
        return self._any or name in self._names or name.endswith(self._ends)


def _relative(location: str, authority: str) -> str:
    """An address without the name that the request was sent to; others stay as they are."""
    parts = urlsplit(location)
    if parts.netloc != authority or not parts.scheme:
        return location
    # Two slashes at its beginning would lead to another host.
    return urlunsplit(("", "", f"/{parts.path.lstrip('/')}", parts.query, parts.fragment))


def _misdirected(authority: str) -> JSONResponse:
    shown = printable(authority)[:_LONGEST]
    return JSONResponse(
        {
            "type": "urn:docflow:problem:misdirected",
            "title": "Not an address of this gateway",
            "status": HTTPStatus.MISDIRECTED_REQUEST.value,
            "detail": f"the gateway does not answer to {shown!r}; if people reach it by that name,"
            " add it to DOCFLOW_ALLOWED_HOSTS, or set DOCFLOW_PUBLIC_URL",
        },
        HTTPStatus.MISDIRECTED_REQUEST,
        media_type="application/problem+json",
    )


def is_own_origin(origin: str, authority: str, public_url: str | None) -> bool:
    """Whether a browser says that a request comes from a page of ours.

    The scheme is not compared: a proxy may terminate TLS.

    Args:
        origin: `Origin`: `https://docflow.example.org`, or `null`.
        authority: `Host`, which is one of ours.
        public_url: Address of the gateway for its users.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    own = [authority, *([urlsplit(public_url).netloc] if public_url else [])]
    default = ":443" if parts.scheme == "https" else ":80"
    return parts.netloc.removesuffix(default).lower() in {
        each.removesuffix(default).lower() for each in own
    }
