"""OpenID Connect: the authorization code flow with PKCE, against one provider.

Sources: OpenID Connect Core 1.0, Discovery 1.0 and RP-Initiated Logout 1.0; RFC 6749, RFC 7636
(PKCE), RFC 9207 (`iss` of an answer).
"""

import asyncio
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, cast
from urllib.parse import quote, urlencode, urlsplit

import httpx
from authlib.oauth2 import rfc7636
from authlib.oauth2.rfc6749 import parameters
from joserfc import jws, jwt
from joserfc.errors import JoseError

from adapters.ports.access import Session
from workers.shared.gateway.http.auth import Unauthorised, header_of
from workers.shared.gateway.http.keys import (
    ANSWER_SECONDS,
    LAST,
    TRY_AGAIN_AFTER,
    BoundedTransport,
    KeysUnavailable,
    PublicKeys,
    decoded,
    fetch_json,
)
from workers.shared.gateway.http.sessions import session_for
from workers.shared.services.identity import Identity
from workers.shared.settings.gateway import PUBLIC_KEYS
from workers.shared.settings.sign_in import EVERYONE, DeclaredProvider

logger = logging.getLogger(__name__)

ATTEMPT_SECONDS: Final = 600
"""A person signs in at the provider within this time."""
_LONGEST_SUBJECT: Final = 200
_LONGEST_TEXT: Final = 320
_LONGEST_HINT: Final = 4_000
"""Characters of an ID token that fit into the address of a sign-out."""
_MOST_GROUPS: Final = 10_000
_SECRET_BYTES: Final = 32
_LAST_SECOND: Final = 1 << 40
_LEEWAY: Final = 30
"""Seconds that clocks may differ."""
_BASIC: Final = "client_secret_basic"
# The library says nothing of its types.
_PARAMETERS: Final[Any] = parameters
_PKCE: Final[Any] = rfc7636

Reason = Literal["lost", "late", "denied", "invalid"]
"""Why somebody is not signed in: nothing is known of the attempt, or it took too long; the provider
did not let them in; what the provider said is not valid."""


class SignInFailed(Exception):
    """Somebody was not signed in; the message is for the log.

    Attributes:
        reason: What to tell them.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


class ProviderUnavailable(Exception):
    """The provider does not answer, or not as OpenID Connect says."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A person who was sent to a provider, as their browser keeps it.

    It is not signed: it says which answer their browser waits for, so who changes it in their own
    browser loses their own attempt.
    """

    provider: str
    state: str
    nonce: str
    verifier: str
    next: str
    """Path to continue at."""
    begun: float
    """Seconds of the epoch."""

    def text(self) -> str:
        """As a cookie."""
        return quote(json.dumps(asdict(self)), safe="")

    @classmethod
    def read(cls, fields: object) -> "Attempt":
        """Read what a browser kept.

        Raises:
            ValueError: It is no attempt.
        """
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        known = cast("dict[str, Any]", fields)
        names = ("provider", "state", "nonce", "verifier", "next")
        texts = [known.get(name) for name in names]
        begun = known.get("begun")
        if not all(isinstance(each, str) and each and each.isascii() for each in texts):
            raise ValueError("a text is missing")
        if not isinstance(begun, int | float) or not 0 <= begun < _LAST_SECOND:
            raise ValueError("a moment is missing")
        return cls(**{name: known[name] for name in names}, begun=begun)


@dataclass(frozen=True, slots=True)
class _Metadata:
    """What a provider says of itself."""

    authorize: str
    token: str
    userinfo: str | None
    end_session: str | None
    basic: bool
    """It takes the client's secret as HTTP's basic authentication has it."""
    keys: PublicKeys


class OidcProvider:
    """A provider that people sign in with.

    Args:
        declared: What the installation says of it.
        transport: How it is asked; the network when None.
        clock: Seconds, for the age of what was fetched.
        now: Seconds of the epoch.
    """

    def __init__(
        self,
        declared: DeclaredProvider,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = declared.name
        self.title = declared.declared.title
        self._all = declared
        self._own = declared.declared
        self._transport = transport
        self._clock = clock
        self._now = now
        self._known: _Metadata | None = None
        self._fetched = 0.0
        self._not_before = clock()
        self._fetching = asyncio.Lock()

    async def check(self) -> None:
        """See whether the provider answers, and as it is declared.

        Raises:
            ProviderUnavailable: It does not; the message says what to change.
        """
        await self._discover()

    async def begin(self, next: str) -> tuple[str, Attempt]:
        """Where to send a person, and what their browser keeps meanwhile.

        Raises:
            ProviderUnavailable: The provider does not answer.
        """
        metadata = await self._metadata()
        attempt = Attempt(
            provider=self.name,
            state=secrets.token_urlsafe(_SECRET_BYTES),
            nonce=secrets.token_urlsafe(_SECRET_BYTES),
            verifier=secrets.token_urlsafe(_SECRET_BYTES),
            next=next,
            begun=self._now(),
        )
        address = _PARAMETERS.prepare_grant_uri(
            metadata.authorize,
            self._own.client_id,
            "code",
            redirect_uri=self._all.callback,
            scope=" ".join(self._own.scopes),
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=_PKCE.create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
        )
        return address, attempt

    async def finish(
        self, attempt: Attempt | None, answer: Mapping[str, str], expires_at: datetime
    ) -> Session:
        """Read the answer of the provider.

        Args:
            attempt: What the browser kept; None: nothing.
            answer: Parameters of the address that the provider sent the browser to.
            expires_at: When the session ends.

        Returns:
            The person, with the roles of their groups; they may have none.

        Raises:
            SignInFailed: They are not signed in.
            ProviderUnavailable: The provider does not answer.
        """
        if attempt is None or attempt.provider != self.name:
            raise SignInFailed("lost", "the browser has not begun to sign in here")
        if not hmac.compare_digest(attempt.state.encode(), answer.get("state", "").encode()):
            raise SignInFailed("lost", "the answer has another state")
        if not 0 <= self._now() - attempt.begun <= ATTEMPT_SECONDS:
            raise SignInFailed("late", "the attempt has expired")
        if answer.get("iss", self._own.issuer) != self._own.issuer:
            raise SignInFailed("invalid", "another provider answered")
        if "error" in answer or not answer.get("code"):
            raise SignInFailed("denied", f"the provider says {answer.get('error', 'nothing')!r}")
        metadata = await self._metadata()
        said = await self._exchange(metadata, answer["code"], attempt.verifier)
        id_token = said.get("id_token")
        if not isinstance(id_token, str):
            raise SignInFailed("invalid", "the provider sent no ID token")
        claims = await self._claims(metadata, id_token, attempt.nonce)
        if any(_claim(claims, name) is None for name in self._wanted()):
            further = await self._userinfo(metadata, said.get("access_token"), claims["sub"])
            claims = {**further, **claims}
        hint = id_token if len(id_token) <= _LONGEST_HINT else None
        who = self._identity(claims)
        return session_for(who, expires_at, provider=self.name, id_token=hint)

    async def sign_out_address(self, id_token: str | None) -> str | None:
        """Where a person signs out of the provider as well; None: nowhere, or it is away."""
        try:
            address = (await self._metadata()).end_session
        except ProviderUnavailable:
            return None
        if address is None:
            return None
        given = {
            "client_id": self._own.client_id,
            "post_logout_redirect_uri": f"{self._all.address}/sign-in",
        }
        given |= {} if id_token is None else {"id_token_hint": id_token}
        return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(given)}"

    async def _ask(self, request: httpx.Request, auth: httpx.Auth | None = None) -> httpx.Response:
        """Ask the provider.

        Raises:
            ProviderUnavailable: It does not answer, or says that it cannot.
        """
        client = httpx.AsyncClient(
            transport=BoundedTransport(self._transport), timeout=ANSWER_SECONDS
        )
        try:
            async with asyncio.timeout(ANSWER_SECONDS), client:
                answer = await client.send(request, auth=auth)
        except (httpx.HTTPError, TimeoutError) as error:
            raise ProviderUnavailable(f"{request.url}: {type(error).__name__}") from error
        if answer.is_server_error:
            raise ProviderUnavailable(f"{request.url} answers with {answer.status_code}")
        return answer

    async def _exchange(self, metadata: _Metadata, code: str, verifier: str) -> dict[str, Any]:
        """What the provider gives for a code."""
        own, secret = self._own, self._all.secret
        further: dict[str, Any] = {"code": code, "code_verifier": verifier}
        auth: httpx.Auth | None = None
        if secret is not None and metadata.basic:
            # RFC 6749, 2.3.1: each is encoded before the two are put together.
            auth = httpx.BasicAuth(quote(own.client_id, safe=""), quote(secret, safe=""))
        else:
            further["client_id"] = own.client_id
            further |= {} if secret is None else {"client_secret": secret}
        body = _PARAMETERS.prepare_token_request(
            "authorization_code", "", redirect_uri=self._all.callback, **further
        )
        form = {
            "content-type": "application/x-www-form-urlencoded",
            "accept": "application/json",
        }
        request = httpx.Request("POST", metadata.token, headers=form, content=body)
        answer = await self._ask(request, auth)
        said = _object(answer)
        if not answer.is_success:
            # Its description may repeat what was sent.
            raise SignInFailed("invalid", f"the code was refused: {said.get('error')!r}")
        return said

    async def _claims(self, metadata: _Metadata, id_token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token that was made for this attempt."""
        try:
            header = header_of(id_token)
            # Neither `none` nor a shared key: whoever has the client's secret could sign.
            if header.get("alg") not in PUBLIC_KEYS:
                raise SignInFailed("invalid", f"an ID token cannot be {header.get('alg')!r}")
            key = await metadata.keys.key(header.get("kid"))
            if key is None:
                raise SignInFailed("invalid", "the ID token has a key that is not published")
            claims = decoded(id_token, key, jws.JWSRegistry(algorithms=[str(header["alg"])]))
            jwt.JWTClaimsRegistry(
                now=lambda: int(self._now()),
                leeway=_LEEWAY,
                iss={"essential": True, "value": self._own.issuer},
                aud={"essential": True, "value": self._own.client_id},
                exp={"essential": True},
                iat={"essential": True},
                sub={"essential": True},
                nonce={"essential": True, "value": nonce},
            ).validate(claims)
        except KeysUnavailable as error:
            raise ProviderUnavailable(str(error)) from error
        except (JoseError, Unauthorised, ValueError, TypeError) as error:
            raise SignInFailed("invalid", f"the ID token is not valid: {error}") from error
        if claims.get("azp", self._own.client_id) != self._own.client_id:
            raise SignInFailed("invalid", "the ID token was made for another client")
        return claims

    async def _userinfo(
        self, metadata: _Metadata, access_token: object, subject: str
    ) -> dict[str, Any]:
        """What the provider says of a person beside the ID token."""
        if metadata.userinfo is None or not isinstance(access_token, str):
            return {}
        bearer = {"authorization": f"Bearer {access_token}"}
        answer = await self._ask(httpx.Request("GET", metadata.userinfo, headers=bearer))
        claims = _object(answer) if answer.is_success else {}
        if claims.get("sub") != subject:
            raise SignInFailed("invalid", "the provider answered about another person")
        return claims

    def _wanted(self) -> Sequence[str]:
        own = self._own.claims
        return own.subject, own.name, own.email, own.groups

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        own = self._own.claims
        subject = _text(claims, own.subject)
        if subject is None or len(subject) > _LONGEST_SUBJECT:
            raise SignInFailed("invalid", f"claim {own.subject} is no text of 1 to 200 characters")
        given = _claim(claims, own.groups)
        listed = [given] if isinstance(given, str) else given
        groups = cast("list[object]", listed)[:_MOST_GROUPS] if isinstance(listed, list) else []
        roles, roles_in = set[str](), dict[int, set[str]]()
        for name in {EVERYONE, *(each for each in groups if isinstance(each, str))}:
            if (grant := self._own.groups.get(name)) is None:
                continue
            if not grant.organisations:
                roles.update(grant.roles)
            for id in grant.organisations:
                roles_in.setdefault(id, set()).update(grant.roles)
        everywhere = self._all.organisations if roles else ()
        return Identity(
            f"{self.name}:{subject}",
            organisations=tuple(dict.fromkeys([*sorted(roles_in), *everywhere])),
            roles=frozenset(roles),
            roles_in={id: frozenset(each) for id, each in roles_in.items()},
            name=_text(claims, own.name),
            email=_text(claims, own.email),
        )

    async def _metadata(self) -> _Metadata:
        """What the provider says of itself, of the last hour if it answers."""
        async with self._fetching:
            now = self._clock()
            if self._known is not None and now - self._fetched <= LAST:
                return self._known
            if now >= self._not_before:
                try:
                    self._known, self._fetched = await self._discover(), now
                    return self._known
                except ProviderUnavailable as error:
                    self._not_before = self._clock() + TRY_AGAIN_AFTER
                    logger.warning("identity provider %s: %s", self.name, error)
            if self._known is None:
                raise ProviderUnavailable(f"{self._own.issuer} does not answer")
            return self._known

    async def _discover(self) -> _Metadata:
        url = f"{self._own.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = await fetch_json(url, self._transport)
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            raise ProviderUnavailable(f"{url}: {type(error).__name__}: {error}") from error
        said = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if said.get("issuer") != self._own.issuer:
            raise ProviderUnavailable(
                f"{url}: it calls its issuer {said.get('issuer')!r}; write that as `issuer`"
            )
        methods = said.get("token_endpoint_auth_methods_supported", [_BASIC])
        address = self._address(said, "jwks_uri")
        keys = self._known and self._known.keys
        if keys is not None and keys.url != address:
            keys = None
        return _Metadata(
            authorize=self._address(said, "authorization_endpoint"),
            token=self._address(said, "token_endpoint"),
            userinfo=self._further(said, "userinfo_endpoint"),
            end_session=self._further(said, "end_session_endpoint"),
            basic=not isinstance(methods, list) or _BASIC in methods,
            keys=keys or PublicKeys(address, self._transport, self._clock),
        )

    def _further(self, said: Mapping[str, Any], name: str) -> str | None:
        return self._address(said, name) if said.get(name) is not None else None

    def _address(self, said: Mapping[str, Any], name: str) -> str:
        address = said.get(name)
        schemes = ("https",) if self._own.issuer.startswith("https:") else ("https", "http")
        if not isinstance(address, str) or urlsplit(address).scheme not in schemes:
            raise ProviderUnavailable(f"{self._own.issuer} has no usable {name}")
        return address


def _object(answer: httpx.Response) -> dict[str, Any]:
    """What an answer says; nothing if it is no object."""
    try:
        said: object = answer.json()
    except ValueError:
        return {}
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path through objects, such as `realm_access.roles`."""
    if name in claims or "." not in name:
        return claims.get(name)
    found: Any = claims
    for part in name.split("."):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = _claim(claims, name)
    return (
        value[:_LONGEST_TEXT] if isinstance(value, str) and value and value.isprintable() else None
    )
