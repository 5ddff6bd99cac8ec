"""Who is signed in: a browser keeps a random text, and the database what it stands for."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from adapters.database.sessions import SqlSessions
from adapters.ports.access import USE_NOTED_EACH, Session
from workers.shared.gateway.http.auth import Tokens, Unauthorised
from workers.shared.gateway.http.requests import COOKIE, embedded_token
from workers.shared.services.identity import ROLES, Identity
from workers.shared.services.sessions import LINK, is_over
from workers.shared.settings.gateway import GatewaySettings
from workers.shared.settings.sign_in import SignInSettings

_SECRET_BYTES: Final = 32
_NOBODY: Final = "sign in to see this page"
_OVER: Final = "the session has ended; sign in again"
_LINK_OVER: Final = "the link has expired or was used; ask for a new one"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person with a session."""

    who: Identity
    secret: str
    """Value of the session cookie."""
    session: Session


class Sessions:
    """Begins sessions, finds the one of a request, and ends them.

    Args:
        store: Where they are; all gateways share it.
        tokens: Verifies what people paste.
        settings: How long they last, and by which address people come.
        providers: Title of each identity provider that is declared, by name.
        now: The clock.
    """

    def __init__(
        self,
        store: SqlSessions,
        tokens: Tokens,
        settings: GatewaySettings,
        providers: Mapping[str, str] = MappingProxyType({}),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._lasts: SignInSettings = settings.sign_in
        self._public = settings.public_url or ""
        self.providers = providers
        self._now = now

    @property
    def latest(self) -> datetime:
        """When a session that begins now ends in any case."""
        return self._now() + timedelta(hours=self._lasts.hours)

    async def of_token(self, text: str) -> Session:
        """Who has a token, or a link that nobody has used; a link is used up by it.

        Raises:
            Unauthorised: It is not valid.
            KeysUnavailable: It cannot be checked at the moment.
            PortError: The database is not available.
        """
        if text.startswith(LINK):
            session = await self._store.take_link(text, self._now())
            if session is None:
                raise Unauthorised(_LINK_OVER)
            return replace(session, expires_at=self.latest)
        verified = await self._tokens.verify(text)
        if verified.who.upload is not None:
            raise Unauthorised("an upload token is for an embedded importer, not for a session")
        who, latest = verified.who, self.latest
        if verified.expires_at is not None and verified.expires_at < latest.timestamp():
            latest = datetime.fromtimestamp(verified.expires_at, UTC)
        return session_for(who, latest, token_id=verified.token_id)

    async def begin(self, request: Request, answer: Response, session: Session) -> None:
        """Sign a person in, in the place of whoever was before.

        Args:
            request: Of the browser.
            answer: Takes the cookie.
            session: What they may do; it ends no later than all sessions.
        """
        if before := self.secret_of(request):
            await self._store.end(before)
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), self._now()
        latest = min(session.expires_at, self.latest)
        await self._store.add(replace(session, expires_at=latest), secret, now)
        answer.set_cookie(
            self._name(request),
            secret,
            httponly=True,
            samesite="strict",
            secure=self.is_https(request),
            path="/",
        )

    async def end(self, request: Request, answer: Response) -> None:
        """Sign a person out, here and on every gateway."""
        if secret := self.secret_of(request):
            await self._store.end(secret)
        answer.delete_cookie(
            self._name(request),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.is_https(request),
        )

    async def find(self, request: Request) -> SignedIn:
        """Who sends a request.

        Raises:
            Unauthorised: There is no session, or it is over.
            PortError: The database is not available.
        """
        known: SignedIn | None = getattr(request.state, "signed_in", None)
        if known is None:
            token = embedded_token(request)
            known = request.state.signed_in = (
                await self._find(self.secret_of(request))
                if token is None
                else await self._embedded(token)
            )
        return known

    async def _embedded(self, token: str) -> SignedIn:
        verified = await self._tokens.verify(token)
        # No other token opens a page.
        if verified.who.upload is None:
            raise Unauthorised("sign in to see this page", missing=True)
        return SignedIn(verified.who, token, session_for(verified.who, self.latest))

    async def _find(self, secret: str | None) -> SignedIn:
        if secret is None:
            raise Unauthorised(_NOBODY, missing=True)
        session, now = await self._store.find(secret), self._now()
        if session is None or is_over(session, self._lasts, now):
            raise Unauthorised(_OVER)
        if session.provider is not None and session.provider not in self.providers:
            raise Unauthorised(_OVER)
        if session.token_id is None:
            who = _identity(session)
        else:
            # One that was revoked meanwhile opens nothing.
            who = (await self._tokens.still_valid(session.token_id)).who
        if session.seen_at is not None and now - session.seen_at > USE_NOTED_EACH:
            await self._store.note_use(secret, now)
        return SignedIn(who, secret, session)

    def secret_of(self, request: Request) -> str | None:
        """What the browser keeps; None: nothing."""
        return request.cookies.get(self._name(request)) or None

    def is_https(self, request: Request) -> bool:
        """Whether people use https; a proxy may terminate TLS."""
        return self._public.startswith("https://") or request.url.scheme == "https"

    def _name(self, request: Request) -> str:
        # Browsers let no other host, and no plain HTTP, set a cookie whose name begins so.
        return f"__Host-{COOKIE}" if self.is_https(request) else COOKIE


def session_for(
    who: Identity,
    expires_at: datetime,
    *,
    provider: str | None = None,
    token_id: int | None = None,
    id_token: str | None = None,
) -> Session:
    """What is kept of a person who signs in."""
    return Session(
        subject=who.subject,
        organisations=who.organisations,
        roles=tuple(who.roles),
        roles_in={id: tuple(roles) for id, roles in who.roles_in.items()},
        name=who.name,
        email=who.email,
        expires_at=expires_at,
        provider=provider,
        token_id=token_id,
        id_token=id_token,
    )


def _identity(session: Session) -> Identity:
    return Identity(
        session.subject,
        session.organisations,
        frozenset(session.roles).intersection(ROLES),
        name=session.name,
        email=session.email,
        roles_in={
            id: frozenset(roles).intersection(ROLES) for id, roles in session.roles_in.items()
        },
    )
