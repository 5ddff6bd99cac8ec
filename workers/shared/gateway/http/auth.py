"""Bearer tokens: JSON Web Tokens of your identity provider, or of a shared key."""

import base64
import hmac
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import httpx
from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import Key, OctKey

from adapters.ports.access import PREFIX, USE_NOTED_EACH, ApiToken, hash_of
from workers.shared.errors import SettingsError
from workers.shared.gateway.http.keys import PublicKeys, decoded
from workers.shared.services.identity import ROLES, Identity
from workers.shared.settings.gateway import SHARED_KEY, TokenSettings

if TYPE_CHECKING:
    from adapters.database.access import SqlApiTokens

LONGEST_TOKEN: Final = 16_384
"""Characters."""
_LONGEST_SUBJECT: Final = 200
_MOST_ORGANISATIONS: Final = 1000
_LARGEST_ID: Final = 2**53
"""Of an organisation: the largest number that every reader of JSON keeps."""
_DIGITS: Final = 20
_PROGRAM_TOKENS_LAST: Final = 5.0
"""Seconds after which a program's token is read again, so that a revoked one is refused."""
_MOST_PROGRAM_TOKENS: Final = 1_000
"""Read and kept at once."""
_DIGITS_ONLY: Final = re.compile(r"[1-9][0-9]{0,18}")


class Unauthorised(Exception):
    """There is no token, or it is not valid; the message says why without repeating it.

    Attributes:
        challenge: Value of the `WWW-Authenticate` header (RFC 6750, section 3).
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.challenge = "Bearer" if missing else 'Bearer error="invalid_token"'


@dataclass(frozen=True, slots=True)
class Verified:
    """What a token that is good says."""

    who: Identity
    expires_at: float | None = None
    """Seconds of the epoch; None: never."""
    token_id: int | None = None
    """Number of a program's token."""


class ProgramTokens:
    """Verifies the tokens that programs are given; a revoked one is refused within seconds.

    Args:
        store: Where they are.
        clock: Seconds, for the age of what was read.
    """

    def __init__(
        self, store: "SqlApiTokens", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[int, tuple[float, tuple[ApiToken, str] | None]] = {}
        self._noted: dict[int, float] = {}

    async def verify(self, text: str) -> Verified:
        """Check a token and return what it may do.

        Raises:
            Unauthorised: There is none like it, or it has expired or was revoked.
            PortError: The database is not available.
        """
        id, _, secret = text.removeprefix(PREFIX).partition("_")
        found = await self._found(int(id)) if _DIGITS_ONLY.fullmatch(id) else None
        # Compared also if there is none: the time that it takes says nothing.
        token, stored = found or (None, hash_of(""))
        if not hmac.compare_digest(hash_of(secret), stored) or token is None:
            raise Unauthorised("the token is not valid: nobody made it here")
        return await self._checked(token)

    async def still_valid(self, id: int) -> Verified:
        """Check the token of a number, whose text was checked before.

        Raises:
            Unauthorised: It has expired or was revoked.
            PortError: The database is not available.
        """
        found = await self._found(id)
        if found is None:
            raise Unauthorised("the token is not valid: nobody made it here")
        return await self._checked(found[0])

    async def _checked(self, token: ApiToken) -> Verified:
        if token.revoked_at is not None:
            raise Unauthorised("the token was revoked; get a new one")
        if token.expires_at is not None and token.expires_at <= datetime.now(UTC):
            raise Unauthorised("the token has expired; get a new one")
        if self._clock() - self._noted.get(token.id, -math.inf) > USE_NOTED_EACH.total_seconds():
            self._noted[token.id] = self._clock()
            await self._store.note_use(token.id)
        own, roles = token.organisation_id, frozenset(token.roles).intersection(ROLES)
        # A renewed upload token acts as the one before it.
        which = f"token {token.id}" if token.upload is None else f"upload {token.upload.session}"
        who = Identity(
            f"{token.name} ({which})",
            organisations=() if own is None else (own,),
            roles=roles if own is None else frozenset(),
            name=token.name,
            by="token",
            roles_in={} if own is None else {own: roles},
            upload=token.upload,
        )
        return Verified(who, token.expires_at and token.expires_at.timestamp(), token.id)

    async def _found(self, id: int) -> tuple[ApiToken, str] | None:
        at, found = self._read.get(id, (None, None))
        if at is not None and self._clock() - at < _PROGRAM_TOKENS_LAST:
            return found
        found = await self._store.find(id)
        if len(self._read) >= _MOST_PROGRAM_TOKENS:
            self._read.clear()
            self._noted.clear()
        # What is not there may be made in the next moment.
        if found is not None:
            self._read[id] = (self._clock(), found)
        return found


class Tokens:
    """Verifies tokens and returns their owner."""

    def __init__(
        self,
        settings: TokenSettings,
        programs: "SqlApiTokens | None" = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Verify tokens by the settings.

        Args:
            settings: Issuer, audience, algorithm and keys.
            programs: Tokens of programs; None: there are none.
            transport: How public keys are fetched; the network when None.
            clock: Seconds, for the age of public keys.
        """
        self._settings = settings
        self._programs = None if programs is None else ProgramTokens(programs)
        self._registry = jws.JWSRegistry(algorithms=[settings.algorithm])
        self._shared = OctKey.import_key(settings.key) if settings.key else None
        url = settings.jwks_url
        self._public = None if url is None else PublicKeys(url, transport, clock)

    async def identify(self, token: str) -> Identity:
        """Check a token and return its owner, as `verify`."""
        return (await self.verify(token)).who

    async def verify(self, token: str) -> Verified:
        """Check a token and read it.

        Raises:
            Unauthorised: It is malformed, forged, expired, or not meant for docflow.
            KeysUnavailable: It cannot be checked, as no public keys can be had.
            PortError: It is a program's, and the database is not available.
        """
        _refuse_long(token)
        if self._programs is not None and token.startswith(PREFIX):
            return await self._programs.verify(token)
        header = header_of(token)
        if header.get("alg") != self._settings.algorithm:
            raise Unauthorised(f"the token is not valid: it must be {self._settings.algorithm}")
        try:
            claims = decoded(token, await self._key(header.get("kid")), self._registry)
            self._expected().validate(claims)
        except ExpiredTokenError as error:
            raise Unauthorised("the token has expired; get a new one") from error
        # The library meets members of odd types with a TypeError.
        except (JoseError, ValueError, TypeError) as error:
            raise Unauthorised(f"the token is not valid: {error}") from error
        return Verified(_identity(claims), claims["exp"])

    async def still_valid(self, id: int) -> Verified:
        """Check the token of a program again, as `ProgramTokens.still_valid`."""
        if self._programs is None:
            raise Unauthorised("the token is not valid: nobody made it here")
        return await self._programs.still_valid(id)

    async def _key(self, kid: object) -> Key:
        if self._shared is not None:
            return self._shared
        assert self._public is not None
        key = await self._public.key(kid)
        if key is None:
            raise Unauthorised("the token is signed with a key that its issuer does not publish")
        return key

    def _expected(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            leeway=self._settings.leeway,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience},
            exp={"essential": True},
            sub={"essential": True},
        )


def mint_token(
    settings: TokenSettings,
    *,
    subject: str,
    organisations: Sequence[int],
    roles: Sequence[str] = ("mapper",),
    name: str | None = None,
    email: str | None = None,
    lasts: timedelta = timedelta(hours=12),
) -> str:
    """Make a token with the shared key: for development, tests and scripts.

    Raises:
        SettingsError: There is no shared key, a role is unknown, or the token would be refused.
    """
    if settings.key is None:
        raise SettingsError(
            "tokens come from your identity provider (DOCFLOW_JWT_JWKS_URL is set); "
            "only with DOCFLOW_JWT_KEY they can be made here"
        )
    if unknown := sorted(set(roles) - set(ROLES)):
        raise SettingsError(f"unknown role {unknown[0]!r}; known are {', '.join(ROLES)}")
    now = int(time.time())
    claims: dict[str, Any] = {
        "iss": settings.issuer,
        "aud": settings.audience,
        "sub": subject,
        "iat": now,
        "exp": now + int(lasts.total_seconds()),
        "organisations": list(organisations),
        "roles": list(roles),
    }
    claims |= {key: value for key, value in (("name", name), ("email", email)) if value}
    minted = jwt.encode({"alg": SHARED_KEY}, claims, OctKey.import_key(settings.key))
    try:
        _refuse_long(minted)
        _identity(claims)
    except Unauthorised as error:
        raise SettingsError(f"the gateway would refuse this token: {error}") from error
    return minted


def _refuse_long(token: str) -> None:
    if len(token) > LONGEST_TOKEN:
        raise Unauthorised(f"the token is longer than {LONGEST_TOKEN} characters")


def header_of(token: str) -> Mapping[str, Any]:
    """The unverified header of a token: its algorithm and key.

    Raises:
        Unauthorised: It has none.
    """
    first = token.partition(".")[0]
    try:
        header: object = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (ValueError, RecursionError) as error:
        raise Unauthorised("the token is not valid: it has no header") from error
    if not isinstance(header, dict):
        raise Unauthorised("the token is not valid: its header is not an object")
    return cast("Mapping[str, Any]", header)


def _identity(claims: Mapping[str, Any]) -> Identity:
    subject = claims["sub"]
    if not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
        raise Unauthorised(f"claim sub must have 1 to {_LONGEST_SUBJECT} printable characters")
    organisations: object = claims.get("organisations", [])
    if not _are_ids(organisations):
        raise Unauthorised(
            f"claim organisations must be a list of up to {_MOST_ORGANISATIONS} whole numbers "
            f"from 1 to {_LARGEST_ID}"
        )
    roles, roles_in = _roles(claims.get("roles", []))
    return Identity(
        subject=subject,
        organisations=tuple(dict.fromkeys([*cast("list[int]", organisations), *roles_in])),
        roles=roles,
        roles_in=roles_in,
        name=_text(claims, "name"),
        email=_text(claims, "email"),
    )


def _roles(claim: object) -> tuple[frozenset[str], Mapping[int, frozenset[str]]]:
    """Roles everywhere, and those by organisation; words that are no roles of ours are ignored."""
    if _are_words(claim):
        return frozenset(cast("list[str]", claim)).intersection(ROLES), {}
    if isinstance(claim, dict):
        by_id = {_id(key): each for key, each in cast("dict[str, object]", claim).items()}
        if _are_ids([*by_id]) and all(map(_are_words, by_id.values())):
            return frozenset(), {
                id: frozenset(words).intersection(ROLES)
                for id, words in cast("dict[int, list[str]]", by_id).items()
            }
    raise Unauthorised(
        "claim roles must be a list of words, or an object with such a list for each organisation"
    )


def _id(key: str) -> int:
    return int(key) if key.isascii() and key.isdecimal() and len(key) < _DIGITS else 0


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(word, str) for word in cast("list[object]", value)
    )


def _are_ids(value: object) -> bool:
    if not isinstance(value, list):
        return False
    ids = cast("list[object]", value)
    return len(ids) <= _MOST_ORGANISATIONS and all(
        isinstance(id, int) and not isinstance(id, bool) and 0 < id <= _LARGEST_ID for id in ids
    )


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value[:320] if isinstance(value, str) and value and value.isprintable() else None
