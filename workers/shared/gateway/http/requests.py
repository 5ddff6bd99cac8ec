"""What a request asks for and who sends it: preferences, access, cursors, identity."""

import hashlib
import hmac
import secrets
import time
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
        self._rate = _per_minute(per_minute)
        self._quota = _per_minute(of_organisation)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def count(self, who: Identity) -> None:
        """Count a request.

        Raises:
            TooManyRequests: The caller has sent as many as they may.
            QuotaExceeded: Their organisation has.
        """
        rate = self._rate
        if rate is not None and (seconds := await self._refused(rate, who.subject)):
            raise TooManyRequests(
                f"you may send {rate.amount:,} requests a minute; wait and send this one again",
                seconds,
            )
        quota = self._quota
        if quota is None or who.is_operator or not who.organisations:
            return
        organisation = who.organisations[0]
        if seconds := await self._refused(quota, "organisation", str(organisation)):
            raise QuotaExceeded(
                f"organisation {organisation} may send {quota.amount:,} requests a minute "
                "(DOCFLOW_QUOTA_REQUESTS); wait and send this one again",
                seconds,
            )

    async def _refused(self, rate: RateLimitItemPerMinute, *key: str) -> int | None:
        """Count for a key; seconds until it may ask again, if it may not now."""
        if await self._limiter.hit(rate, *key):
            return None
        window = await self._limiter.get_window_stats(rate, *key)
        return max(1, ceil(window.reset_time - time.time()))


def _per_minute(most: int) -> RateLimitItemPerMinute | None:
    return RateLimitItemPerMinute(most) if most else None


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
