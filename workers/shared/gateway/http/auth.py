"""Bearer tokens: JSON Web Tokens of your identity provider, or of a shared key."""

import asyncio
import base64
import hmac
import json
import math
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import httpx
from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning
from joserfc.jwk import Key, KeySet, OctKey

from adapters.ports.access import PREFIX, USE_NOTED_EACH, ApiToken, hash_of
from workers.shared.errors import SettingsError
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
_LARGEST_KEY_SET: Final = 1 << 20
"""Bytes of an answer with public keys."""
_FETCH_AGAIN_AFTER: Final = 30.0
"""Seconds between two fetches of public keys, whatever key ids tokens name."""
_TRY_AGAIN_AFTER: Final = 5.0
"""The same after a fetch that failed."""
_PROGRAM_TOKENS_LAST: Final = 5.0
"""Seconds after which a program's token is read again, so that a revoked one is refused."""
_MOST_PROGRAM_TOKENS: Final = 1_000
"""Read and kept at once."""
_DIGITS_ONLY: Final = re.compile(r"[1-9][0-9]{0,18}")
_KEYS_LAST: Final = 3600.0
"""Seconds after which public keys are fetched again, so that a revoked one is dropped."""


class Unauthorised(Exception):
    """There is no token, or it is not valid; the message says why without repeating it.

    Attributes:
        challenge: Value of the `WWW-Authenticate` header (RFC 6750, section 3).
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.challenge = "Bearer" if missing else 'Bearer error="invalid_token"'


class KeysUnavailable(Exception):
    """The identity provider's public keys cannot be fetched."""


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

    async def identify(self, text: str) -> Identity:
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
        if token.revoked_at is not None:
            raise Unauthorised("the token was revoked; get a new one")
        if token.expires_at is not None and token.expires_at <= datetime.now(UTC):
            raise Unauthorised("the token has expired; get a new one")
        if self._clock() - self._noted.get(token.id, -math.inf) > USE_NOTED_EACH.total_seconds():
            self._noted[token.id] = self._clock()
            await self._store.note_use(token.id)
        own, roles = token.organisation_id, frozenset(token.roles).intersection(ROLES)
        return Identity(
            f"{token.name} (token {token.id})",
            organisations=() if own is None else (own,),
            roles=roles if own is None else frozenset(),
            name=token.name,
            by="token",
            roles_in={} if own is None else {own: roles},
        )

    async def _found(self, id: int) -> tuple[ApiToken, str] | None:
        at, found = self._read.get(id, (None, None))
        if at is not None and self._clock() - at < _PROGRAM_TOKENS_LAST:
            return found
        found = await self._store.find(id)
        if len(self._read) >= _MOST_PROGRAM_TOKENS:
            self._read.clear()
        self._read[id] = (self._clock(), found)
        return found


class Tokens:
    """Verifies tokens and returns their owner.

    Public keys are a copy of what the provider publishes; every gateway fetches its own.
    """

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
        self._transport = transport
        self._clock = clock
        self._public: Sequence[Key] = ()
        self._fetched: float | None = None
        self._not_before = clock()
        self._fetching = asyncio.Lock()

    async def identify(self, token: str) -> Identity:
        """Check a token and read it.

        Raises:
            Unauthorised: It is malformed, forged, expired, or not meant for docflow.
            KeysUnavailable: It cannot be checked, as no public keys can be had.
            PortError: It is a program's, and the database is not available.
        """
        _refuse_long(token)
        if self._programs is not None and token.startswith(PREFIX):
            return await self._programs.identify(token)
        if _header(token).get("alg") != self._settings.algorithm:
            raise Unauthorised(f"the token is not valid: it must be {self._settings.algorithm}")
        try:
            key = self._shared or await self._public_key(token)
            claims = self._read(token, key)
            self._expected().validate(claims)
        except ExpiredTokenError as error:
            raise Unauthorised("the token has expired; get a new one") from error
        # The library meets members of odd types with a TypeError.
        except (JoseError, ValueError, TypeError) as error:
            raise Unauthorised(f"the token is not valid: {error}") from error
        return _identity(claims)

    def _read(self, token: str, key: Key) -> dict[str, Any]:
        with warnings.catch_warnings():
            # Providers still sign with EdDSA; the library would have its new name, Ed25519.
            warnings.simplefilter("ignore", SecurityWarning)
            return jwt.decode(token, key, registry=self._registry).claims

    def _expected(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            leeway=self._settings.leeway,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience},
            exp={"essential": True},
            sub={"essential": True},
        )

    async def _public_key(self, token: str) -> Key:
        kid = _header(token).get("kid")
        key = self._known(kid)
        if key is None or self._fetched is None or self._clock() - self._fetched > _KEYS_LAST:
            await self._fetch()
            key = self._known(kid)
        if key is None:
            raise Unauthorised("the token is signed with a key that its issuer does not publish")
        return key

    def _known(self, kid: Any) -> Key | None:
        if kid is None and len(self._public) == 1:
            return self._public[0]
        return next((key for key in self._public if key.kid == kid), None)

    async def _fetch(self) -> None:
        """Fetch the public keys, unless that has just been tried."""
        async with self._fetching:
            if self._clock() < self._not_before:
                if self._fetched is None:
                    raise KeysUnavailable("the keys of the identity provider could not be fetched")
                return
            try:
                published = await self._download()
                keys = KeySet.import_key_set(cast("Any", published)).keys
            except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
                self._not_before = self._clock() + _TRY_AGAIN_AFTER
                if self._fetched is not None:
                    # Keys of an hour ago are better than refusing every caller.
                    return
                raise KeysUnavailable(
                    "the keys of the identity provider cannot be fetched"
                ) from error
            # A symmetric key that is published by mistake is not a secret.
            self._public = [key for key in keys if key.key_type != "oct"]
            self._fetched = self._clock()
            self._not_before = self._fetched + _FETCH_AGAIN_AFTER

    async def _download(self) -> object:
        assert self._settings.jwks_url is not None
        async with (
            httpx.AsyncClient(transport=self._transport, timeout=5) as client,
            client.stream("GET", self._settings.jwks_url) as answer,
        ):
            answer.raise_for_status()
            body = bytearray()
            async for block in answer.aiter_bytes():
                body += block
                if len(body) > _LARGEST_KEY_SET:
                    raise ValueError("too many keys")
        return httpx.Response(200, content=bytes(body)).json()


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


def _header(token: str) -> Mapping[str, Any]:
    """The unverified header of a token: its algorithm and key."""
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
