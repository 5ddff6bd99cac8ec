"""Signing in and out."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast
from urllib.parse import unquote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from adapters.database.access import SqlAudit
from adapters.ports.access import Act, Actor, Session
from workers.shared.gateway.http.auth import Unauthorised
from workers.shared.gateway.http.keys import KeysUnavailable
from workers.shared.gateway.http.oidc import (
    ATTEMPT_SECONDS,
    Attempt,
    OidcProvider,
    ProviderUnavailable,
    Reason,
    SignInFailed,
)
from workers.shared.gateway.http.requests import SignInRates
from workers.shared.gateway.pages.renderer import N_, gettext, localised
from workers.shared.gateway.pages.site import (
    PageRoute,
    Site,
    read_form,
    safe_redirect_path,
    sentence_of,
)
from workers.shared.services.errors import Forbidden, NotFound, ServiceUnavailable, TooManyRequests
from workers.shared.services.sessions import LINK

logger = logging.getLogger(__name__)

_START: Final = "/"
_LONGEST_NEXT: Final = 1_000
_COOKIE: Final = "docflow_sign_in"
"""Holds what a browser waits for from a provider; the provider's answer brings it along."""
_FAILED: Final[Mapping[Reason, tuple[int, str]]] = {
    "lost": (
        400,
        N_("This sign-in was not begun in this browser, or you began another one. Try again."),
    ),
    "late": (400, N_("The sign-in took too long. Try again.")),
    "denied": (403, N_("%(provider)s did not let you in.")),
    "invalid": (
        403,
        N_(
            "docflow cannot accept what %(provider)s answered. Try again; if that does not help, "
            "tell the people who run docflow."
        ),
    ),
}


class SignInPages:
    """A token, a link or a provider begins a session.

    Args:
        site: The context of the pages.
        providers: Identity providers, by name.
    """

    def __init__(self, site: Site, providers: Mapping[str, OidcProvider]) -> None:
        self._site = site
        self._providers = providers

    async def show(self, request: Request, next: str = _START) -> Response:
        """The sign-in page."""
        return self._site.sign_in(request, _safe(next))

    async def sign_in(self, request: Request) -> Response:
        """Begin a session with a token or a link that is good."""
        # Another site must not be able to sign a person in as another user.
        if not self._site.is_own_form(request):
            raise Forbidden(gettext("sign in on this site's own page"))
        form = await read_form(request)
        token = form.text("token", 20_000)
        target = _safe(form.text("next", 2000))
        if (refused := await self._refused_rate(request, target)) is not None:
            return refused
        try:
            session = await self._site.sessions.of_token(token)
        except Unauthorised as error:
            await self._rates(request).count(request)
            where = request.client.host if request.client else "somewhere"
            logger.warning("nobody was signed in from %s: %s", where, error)
            is_link = token.startswith(LINK)
            over = gettext("the link has expired or was used; ask for a new one")
            problem = sentence_of(over if is_link else localised(str(error)))
            return self._site.sign_in(request, target, 401, problem=problem, by_token=True)
        except KeysUnavailable as error:
            raise ServiceUnavailable(
                gettext("%(problem)s; try again in a moment", problem=error)
            ) from error
        if not _may_read(session):
            await self._note(request, session, 401)
            problem = gettext("The token has none of the roles that docflow knows.")
            return self._site.sign_in(request, target, 401, problem=problem, by_token=True)
        await self._note(request, session, 303)
        answer = RedirectResponse(target, 303)
        await self._site.sessions.begin(request, answer, session)
        return answer

    async def start(self, request: Request, provider: str, next: str = _START) -> Response:
        """To a provider, which sends the browser back to `finish`."""
        found = self._provider(provider)
        target = _safe(next)
        try:
            address, attempt = await found.begin(target)
        except ProviderUnavailable:
            return self._away(request, found, target)
        answer = RedirectResponse(address, 303)
        self._keep(request, answer, attempt.text(), ATTEMPT_SECONDS)
        return answer

    async def finish(self, request: Request, provider: str) -> Response:
        """Begin a session for the person that a provider names."""
        found, attempt = self._provider(provider), self._attempt(request)
        target = _safe(attempt.next) if attempt is not None else _START
        sessions = self._site.sessions
        if (refused := await self._refused_rate(request, target)) is not None:
            return refused
        try:
            session = await found.finish(attempt, request.query_params, sessions.latest)
        except SignInFailed as failed:
            await self._rates(request).count(request)
            logger.warning("nobody was signed in by %s: %s", found.name, failed)
            status, problem = _FAILED[failed.reason]
            said = gettext(problem, provider=found.title)
            return self._forgetting(
                request, self._site.sign_in(request, target, status, problem=said)
            )
        except ProviderUnavailable as error:
            logger.warning("identity provider %s: %s", found.name, error)
            return self._away(request, found, target)
        if not _may_read(session):
            await self._note(request, session, 403)
            return self._forgetting(request, await self._refused(request, found, session, target))
        await self._note(request, session, 303)
        # The browser comes from another site: only a page of ours may ask with the new cookie.
        answer = self._site.page(
            request, None, "continue.html", target=target, leaves=False, back=target
        )
        await sessions.begin(request, answer, session)
        return self._forgetting(request, answer)

    async def sign_out(self, request: Request) -> Response:
        """End the session, and that at the provider."""
        visitor = await self._site.visitor(request)
        await self._site.form(request, visitor)
        session = (await self._site.sessions.find(request)).session
        provider = self._providers.get(session.provider or "")
        if (act := getattr(request.state, "act", None)) is not None:
            act.object = session.provider
        answer: Response = RedirectResponse("/sign-in", 303)
        if provider is not None and (to := await provider.sign_out_address(session.id_token)):
            # A form may lead to this site alone.
            answer = self._site.page(request, None, "continue.html", target=to, leaves=True)
        await self._site.sessions.end(request, answer)
        return answer

    def _provider(self, name: str) -> OidcProvider:
        found = self._providers.get(name)
        if found is None:
            raise NotFound(gettext("there is no such page"))
        return found

    @staticmethod
    def _rates(request: Request) -> SignInRates:
        return cast("SignInRates", request.app.state.sign_ins)

    async def _refused_rate(self, request: Request, target: str) -> Response | None:
        """The page for an address from which too many sign-ins failed; None: there may be one."""
        seconds = await self._rates(request).seconds(request)
        if seconds is None:
            return None
        problem = gettext("Too many sign-ins from your address failed. Try again in a minute.")
        answer = self._site.sign_in(request, target, TooManyRequests.status, problem=problem)
        answer.headers["Retry-After"] = str(seconds)
        return answer

    def _away(self, request: Request, provider: OidcProvider, target: str) -> Response:
        problem = gettext(
            "%(provider)s does not answer at the moment. Try again in a moment, or sign in another "
            "way.",
            provider=provider.title,
        )
        return self._site.sign_in(request, target, 503, problem=problem)

    async def _refused(
        self, request: Request, provider: OidcProvider, session: Session, target: str
    ) -> Response:
        known = session.email or session.name or session.subject
        problem = gettext(
            "%(provider)s knows you as %(who)s, but none of your groups there has a role in "
            "docflow. Ask the people who run docflow which group you need.",
            provider=provider.title,
            who=known,
        )
        # The provider would name the same person again.
        address = await provider.sign_out_address(session.id_token)
        return self._site.sign_in(
            request,
            target,
            403,
            problem=problem,
            title=gettext("You have no role here"),
            link=address and (address, gettext("Use another account")),
        )

    async def _note(self, request: Request, session: Session, status: int) -> None:
        """Note in the audit who signs in, or is refused."""
        by: Actor = "person" if session.token_id is None else "token"
        own = session.organisations
        act = Act(
            session.subject,
            by,
            "signIn",
            organisation_id=own[0] if len(own) == 1 else None,
            object=session.provider,
            from_where=None if request.client is None else request.client.host,
            request_id=request.headers.get("X-Request-Id"),
        )
        audit: SqlAudit = request.app.state.audit
        await audit.begin(act, status)

    def _cookie(self, request: Request) -> str:
        return f"__Host-{_COOKIE}" if self._site.sessions.is_https(request) else _COOKIE

    def _attempt(self, request: Request) -> Attempt | None:
        """What the browser kept when it was sent to a provider; None: nothing of ours."""
        kept = request.cookies.get(self._cookie(request), "")
        try:
            return Attempt.read(json.loads(unquote(kept)))
        except (ValueError, RecursionError):
            return None

    def _keep(self, request: Request, answer: Response, text: str, seconds: int) -> None:
        answer.set_cookie(
            self._cookie(request),
            text,
            max_age=seconds,
            httponly=True,
            # It comes along when the provider sends the browser back.
            samesite="lax",
            secure=self._site.sessions.is_https(request),
            path="/",
        )

    def _forgetting(self, request: Request, answer: Response) -> Response:
        self._keep(request, answer, "", 0)
        return answer


def _safe(next: str) -> str:
    """A path of this site to continue at that fits into a cookie."""
    return safe_redirect_path(next, _START) if len(next) <= _LONGEST_NEXT else _START


def _may_read(session: Session) -> bool:
    return bool(session.roles) or any(session.roles_in.values())


def sign_in_routes(site: Site, providers: Mapping[str, OidcProvider]) -> Sequence[PageRoute]:
    """Addresses of signing in and out."""
    pages = SignInPages(site, providers)
    return (
        ("GET", "/sign-in", pages.show),
        ("POST", "/sign-in", pages.sign_in),
        ("GET", "/sign-in/{provider}", pages.start),
        ("GET", "/sign-in/{provider}/callback", pages.finish),
        ("POST", "/sign-out", pages.sign_out),
    )
