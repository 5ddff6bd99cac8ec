"""What a request asks for and who sends it: preferences, access, cursors, identity."""

import hashlib
import hmac
import secrets
import time
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil
from typing import Annotated, Any, Final, TypeVar, cast

from fastapi import Depends, Query
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from pydantic import AfterValidator
from starlette.requests import Request

from adapters.ports.access import PREFIX
from workers.shared.gateway.http.auth import Tokens, Unauthorised
from workers.shared.services.errors import QuotaExceeded, Refused, TooLarge, TooManyRequests
from workers.shared.services.identity import Identity
from workers.shared.services.lists import Cursor

_HOME_BITS: Final = 64
"""Of the IPv6 network that somebody gets from a provider, at least."""
_LONGEST: Final = 1_000
"""Characters of an `Accept` that are read."""
_PAGES: Final = ("text/html", "text/*", "*/*")
_PROBLEMS: Final = ("application/problem+json", "application/json", "application/*", "*/*")
"""Media ranges that a type is in, the one that says most first."""


def quality(parameters: str) -> float:
    """The quality of an item of a header: 0.8 of `q=0.8`, 1 where none is given, else 0."""
    name, _, value = parameters.partition("=")
    if not name.strip():
        return 1.0
    try:
        found = float(value)
    except ValueError:
        return 0.0
    return found if name.strip().lower() == "q" and 0 <= found <= 1 else 0.0


def prefers_page(header: str) -> bool:
    """Whether a client takes HTML rather than JSON, as browsers do that open an address.

    A type that is named comes before one that a wildcard allows with the same quality. Who takes
    anything, or both alike, is a program.

    Args:
        header: `Accept`: `text/html,application/xml;q=0.9,*/*;q=0.8`.
    """
    ranges: dict[str, float] = {}
    for item in header[:_LONGEST].split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = next((each for each in parameters if each.startswith("q=")), "")
        ranges[name] = quality(weight)
    page = _best(ranges, _PAGES)
    return page[0] > 0 and page > _best(ranges, _PROBLEMS)


def _best(ranges: dict[str, float], names: tuple[str, ...]) -> tuple[float, bool]:
    """Quality of a type, and whether more than `*/*` names it."""
    found = next((name for name in names if name in ranges), None)
    return (0.0, False) if found is None else (ranges[found], found != "*/*")


_CURSOR_CHARACTERS: Final = 200


def _checked(text: str) -> str:
    try:
        Cursor.read(text)
    except ValueError as error:
        raise ValueError("must be `next` of a page before, or a moment") from error
    return text


async def bounded_body(
    request: Request, most: int, what: str, refusal: type[TooLarge] = TooLarge
) -> bytes:
    """The body of a request.

    Args:
        request: Whose body has not been read.
        most: Bytes that it may have.
        what: It holds, for messages.
        refusal: Raised if it has more.

    Raises:
        TooLarge: It has more.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise refusal(f"{what} has at most {most:,} bytes")
    return bytes(body)


Before = Annotated[
    str | None,
    AfterValidator(lambda text: None if text is None else _checked(text)),
    Query(
        max_length=_CURSOR_CHARACTERS,
        description="Those behind this cursor; a moment alone: those that changed before.",
    ),
]


def cursor_of(before: str | None) -> Cursor | None:
    """The cursor that a parameter names; None: the first page is asked for.

    Raises:
        Refused: It is none.
    """
    try:
        return None if before is None else Cursor.read(before)
    except ValueError as error:
        raise Refused("cursor: send `next` of the page before") from error


PageLimit = Annotated[int, Query(ge=1, le=200, description="Items of a page")]
PageCursor = Annotated[str | None, Query(max_length=300, description="`next` of a page")]

COOKIE: Final = "docflow_session"
"""Holds what finds the session of a person; neither scripts nor other sites can use it."""
BEARER: Final = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="token",
    description="A JSON Web Token with the claims sub, organisations and roles, or an API token.",
)


def embedded_token(request: Request) -> str | None:
    """The upload token with which an embedded importer asks for a page; None: something else asks.

    What it is worth is not known yet.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    is_ours = scheme.lower() == "bearer" and token.startswith(PREFIX)
    return token if is_ours else None


async def identify(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
) -> Identity:
    """Read the token of a request.

    Raises:
        Unauthorised: There is none, or it is not valid.
        KeysUnavailable: It cannot be checked at the moment.
    """
    if credentials is None:
        raise Unauthorised("send a token in the header Authorization: Bearer ...", missing=True)
    if (known := getattr(request.state, "who", None)) is not None:
        return cast("Identity", known)
    tokens = cast("Tokens", request.app.state.tokens)
    request.state.who = who = await tokens.identify(credentials.credentials)
    return who


Who = Annotated[Identity, Depends(identify)]


class RequestRates:
    """Limits how often each caller, and all of an organisation together, ask one gateway.

    Args:
        per_minute: Requests of a caller; 0: there is no limit.
        of_organisation: Requests of those whose first organisation it is; 0: there is no limit.
    """

    def __init__(self, per_minute: int, of_organisation: int = 0) -> None:
        self._rate = _Rate(per_minute)
        self._quota = _Rate(of_organisation)

    async def count(self, who: Identity) -> None:
        """Count a request.

        Raises:
            TooManyRequests: The caller has sent as many as they may.
            QuotaExceeded: Their organisation has.
        """
        if not await self._rate.hit(who.subject):
            raise TooManyRequests(
                f"you may send {self._rate.most:,} requests a minute; wait and send this one again",
                await self._rate.seconds(who.subject),
            )
        if who.is_operator or not who.organisations:
            return
        organisation = who.organisations[0]
        if not await self._quota.hit(str(organisation)):
            raise QuotaExceeded(
                f"organisation {organisation} may send {self._quota.most:,} requests a minute "
                "(DOCFLOW_QUOTA_REQUESTS); wait and send this one again",
                await self._quota.seconds(str(organisation)),
            )


class SignInRates:
    """Limits how often sign-ins from one address fail at one gateway.

    Args:
        most: Sign-ins that may fail in a minute; 0: there is no limit.
    """

    def __init__(self, most: int) -> None:
        self._rate = _Rate(most)

    async def seconds(self, request: Request) -> int | None:
        """Seconds until there may be another sign-in; None: there may be one now."""
        place = _place(request)
        return None if await self._rate.test(place) else await self._rate.seconds(place)

    async def count(self, request: Request) -> None:
        """Count one that failed."""
        await self._rate.hit(_place(request))


def _place(request: Request) -> str:
    """The address of a client; of IPv6, the network: who has one has all its addresses."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv4Address):
        return host
    network = IPv6Network((int(address), _HOME_BITS), strict=False)
    return str(address.ipv4_mapped or network)


class _Rate:
    """So many within a minute for each key; 0: there is no limit."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._item = RateLimitItemPerMinute(most) if most else None
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def hit(self, key: str) -> bool:
        """Count one; False: there are too many already, and it is not counted."""
        return self._item is None or await self._limiter.hit(self._item, key)

    async def test(self, key: str) -> bool:
        """Whether there may be one more."""
        return self._item is None or await self._limiter.test(self._item, key)

    async def seconds(self, key: str) -> int:
        """Seconds until there may be one more."""
        assert self._item is not None, "without a limit nothing is refused"
        window = await self._limiter.get_window_stats(self._item, key)
        return max(1, ceil(window.reset_time - time.time()))


def refuse_unknown_parameters(request: Request, route: APIRoute) -> None:
    """Refuse a query parameter that an operation does not have: it is a mistake.

    Raises:
        Refused: There is one.
    """
    known = _query_parameters(route.dependant)
    if unknown := sorted(set(request.query_params) - known):
        there = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise Refused(f"{unknown[0]}: is not a query parameter of this operation; {there}")


def _query_parameters(dependant: Dependant) -> set[str]:
    own = {each.alias for each in dependant.query_params}
    return own.union(*map(_query_parameters, dependant.dependencies))


READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


Service = TypeVar("Service")


def the(service: type[Service]) -> Any:
    """The dependency of an endpoint on a service of the gateway, for an annotation.

    Args:
        service: Its class.
    """

    def found(request: Request) -> Service:
        return request.app.state.by_class[service]

    return Depends(found)


def asks_who(dependant: Dependant) -> bool:
    """Whether an endpoint needs a token."""
    return dependant.call is identify or any(map(asks_who, dependant.dependencies))


FIELD: Final = "csrf"
"""Name of the hidden field."""
HEADER: Final = "x-csrf-token"
"""Name of the header that scripts send it in."""
_CONTEXT: Final = b"docflow form "


def csrf_token(session: str) -> str:
    """The token that forms of a session carry.

    Only a client that can read the session's cookie can make it; alone it is useless.

    Args:
        session: Value of the session cookie.
    """
    salt = secrets.token_hex(8)
    return f"{salt}.{_mac(session, salt)}"


def csrf_valid(session: str, token: str | None) -> bool:
    """Whether a token was made for this session."""
    salt, dot, mac = (token or "").partition(".")
    return bool(dot) and hmac.compare_digest(
        mac.encode(errors="replace"), _mac(session, salt).encode()
    )


def _mac(session: str, salt: str) -> str:
    # The cookie is random: only its owner knows it. A salt per page keeps compressed answers from
    # giving it away.
    key = session.encode(errors="replace")
    return hmac.new(key, _CONTEXT + salt.encode(errors="replace"), hashlib.sha256).hexdigest()
