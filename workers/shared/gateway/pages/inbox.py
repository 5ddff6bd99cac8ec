"""Signing in and out, the page of the inbox, and addresses of all pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

from workers.shared.gateway.http.auth import Tokens, Unauthorised
from workers.shared.gateway.http.hosts import is_own_origin
from workers.shared.gateway.pages.renderer import (
    N_,
    STATIC,
    Templates,
    counted,
    gettext,
    is_fragment,
    localised,
)
from workers.shared.gateway.pages.site import (
    COOKIE,
    Alike,
    PageRoute,
    PipelinePages,
    SignInNeeded,
    Site,
    page_route,
    read_form,
    safe_redirect_path,
)
from workers.shared.services.errors import Forbidden
from workers.shared.services.inbox import Inbox, InboxEntry
from workers.shared.settings.gateway import GatewaySettings

_LONGEST: Final = 3800
"""Characters of a token that fit into a cookie."""
_START: Final = "/"


class SessionPages:
    """A token becomes a session."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request, next: str = _START) -> Response:
        """The sign-in page."""
        return self._form(request, safe_redirect_path(next, _START))

    async def sign_in(self, request: Request) -> Response:
        """Keep a token that is good in a cookie."""
        # Another site must not be able to sign a person in as another user.
        if not self._is_own(request):
            raise Forbidden(gettext("sign in on this site's own page"))
        form = await read_form(request)
        token = form.text("token", 20_000)
        target = safe_redirect_path(form.text("next", 2000), _START)
        if len(token) > _LONGEST:
            return self._form(
                request, target, gettext("The token is too long for a browser's cookie.")
            )
        try:
            visitor = await self._site.identify(token)
        except Unauthorised as error:
            return self._form(request, target, f"{localised(str(error))}.".capitalize())
        if not visitor.who.may_read:
            return self._form(
                request, target, gettext("The token has none of the roles that docflow knows.")
            )
        answer = RedirectResponse(target, 303)
        answer.set_cookie(
            COOKIE,
            token,
            httponly=True,
            samesite="strict",
            secure=self._is_https(request),
            path="/",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Forget the session."""
        visitor = await self._site.visitor(request)
        await self._site.form(request, visitor)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    def _is_own(self, request: Request) -> bool:
        """Whether the form is ours, as the browser says; a program says nothing."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return False
        origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
        return origin is None or is_own_origin(origin, host, self._site.settings.public_url)

    def _is_https(self, request: Request) -> bool:
        """Whether people use https; a proxy may terminate TLS."""
        public = self._site.settings.public_url or ""
        return public.startswith("https://") or request.url.scheme == "https"

    def _form(self, request: Request, next: str, problem: str | None = None) -> Response:
        status = 401 if problem else 200
        return self._site.page(request, None, "sign_in.html", status, problem=problem, next=next)


class ApiPage:
    """The API, to read and to try.

    Args:
        site: The context of the pages.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """The page, for all who reach the gateway."""
        try:
            visitor = await self._site.visitor(request)
        except SignInNeeded:
            visitor = None
        return self._site.page(request, visitor, "api.html")


_FEW: Final = 3
"""So many runs that ask the same stand in one line."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line of the inbox."""

    key: str
    title: str
    kind: str
    state: str
    waiting_since: datetime
    whom: str
    address: str | None
    apart: bool
    """The address is another site's."""
    file: str | None = None
    """The file that it is about, where the title does not say."""
    question: str | None = None
    """What it asks."""
    answer_at: str | None = None
    """Where it is answered."""
    command: str | None = None
    """What shows it and its answers, where no page does."""


class InboxPage:
    """What of all pipelines waits for a person.

    Args:
        site: The context of the pages.
        inbox: What it shows.
        namespace: Of Temporal, for addresses in its user interface.
        pages: Pages of each pipeline that has some, by name.
    """

    def __init__(
        self,
        site: Site,
        inbox: Inbox,
        namespace: str,
        pages: Mapping[str, PipelinePages],
    ) -> None:
        self._site = site
        self._inbox = inbox
        self._namespace = namespace
        self._pages = pages

    async def show(self, request: Request, mine: bool = False) -> Response:
        """Runs of every pipeline that wait for a person; a script gets the table alone.

        With `mine` only those that the visitor has started.
        """
        visitor = await self._site.visitor(request)
        entries = self._lines(await self._inbox.read(visitor.who, mine=mine))
        outages = await self._inbox.outages(visitor.who)
        template = "inbox_entries.html" if is_fragment(request) else "inbox.html"
        return self._site.page(
            request, visitor, template, entries=entries, outages=outages, mine=mine
        )

    def _lines(self, entries: Sequence[InboxEntry]) -> Sequence[Waiting]:
        """One for each run; one for all that are answered together, where the first of them is."""
        alike = {
            entry.workflow_id: found
            for entry in entries
            if (found := self._alike(entry)) is not None
        }
        counts = Counter(alike.values())
        lines: dict[str, Waiting] = {}
        for entry in entries:
            shared = alike.get(entry.workflow_id)
            if shared is None or counts[shared] < _FEW:
                lines[entry.run_id] = self._waiting(entry)
            elif shared.address not in lines:
                lines[shared.address] = self._together(entry, shared, counts[shared])
        return [*lines.values()]

    def _alike(self, entry: InboxEntry) -> Alike | None:
        pages = self._pages.get(entry.pipeline)
        if entry.reason is None or pages is None or pages.alike is None:
            return None
        return pages.alike(entry.document_type, entry.reason)

    def _together(self, first: InboxEntry, shared: Alike, count: int) -> Waiting:
        line = self._waiting(replace(first, reason=shared.question))
        title = counted("%(count)s run for one cause", "%(count)s runs for one cause", count)
        return replace(
            line,
            title=title,
            address=shared.address,
            apart=False,
            file=None,
            command=None,
            answer_at=shared.address,
        )

    def _waiting(self, entry: InboxEntry) -> Waiting:
        pages = self._pages.get(entry.pipeline)
        title = pages.type_titles().get(entry.document_type) if pages else None
        return Waiting(
            key=f"run-{entry.run_id}",
            title=entry.title,
            kind=" · ".join(map(localised, (entry.kind, title or _plain(entry.document_type)))),
            state=_state(entry, pages),
            waiting_since=entry.waiting_since,
            whom=entry.waiting_for or gettext("any operator"),
            address=entry.page or self._temporal(entry),
            apart=entry.page is None,
            file=entry.filename if entry.filename != entry.title else None,
            question=entry.reason,
            command=pages.command(entry.workflow_id)
            if pages and pages.command and entry.page is None
            else None,
            answer_at=_answer_at(entry, pages),
        )

    def _temporal(self, entry: InboxEntry) -> str | None:
        """Page of a run in Temporal's own user interface."""
        base = self._site.settings.temporal_ui
        if base is None:
            return None
        namespace = quote(self._namespace, safe="")
        run = f"{quote(entry.workflow_id, safe='')}/{quote(entry.run_id, safe='')}"
        return f"{base}/namespaces/{namespace}/workflows/{run}"


def _answer_at(entry: InboxEntry, pages: PipelinePages | None) -> str | None:
    if entry.reason is None or entry.page is None or pages is None or not pages.answer_at:
        return None
    return entry.page + pages.answer_at


def _state(entry: InboxEntry, pages: PipelinePages | None) -> str:
    """What a run waits for; one that has ended waits for nothing, and left something."""
    if pages is not None and (title := pages.state_titles.get(entry.state)):
        return localised(title)
    announcement = localised(_plain(entry.state) or N_("Attention"))
    if entry.ended:
        return gettext("%(state)s, not all removed", state=announcement)
    return announcement


def _plain(name: str) -> str:
    """A name in plain words."""
    return name.replace("_", " ").capitalize()


STATIC_ROUTE: Final = "/static/{name:path}"
_FOR_EVER: Final = "public, max-age=31536000, immutable"


def open_site(
    pages: Mapping[str, PipelinePages], tokens: Tokens, settings: GatewaySettings
) -> Site:
    """What all pages share.

    Args:
        pages: Those of each pipeline that has some, by name.
        tokens: Who may see them.
        settings: Of the gateway.
    """
    menu = [entry for each in pages.values() for entry in each.menu]
    start = menu[0].address if menu else "/"
    folders = [each.templates for each in pages.values()]
    names = {name: value for each in pages.values() for name, value in each.names.items()}
    return Site(tokens, settings, Templates(menu, folders, names), start)


def pages_router(
    site: Site,
    pages: Mapping[str, PipelinePages],
    inbox: Inbox,
    *,
    namespace: str,
) -> APIRouter:
    """The pages for people, to be included in the gateway's application.

    Args:
        site: What they share.
        pages: Those of each pipeline that has some, by name.
        inbox: What waits for people.
        namespace: Of Temporal, for links into its user interface.
    """
    session = SessionPages(site)
    routes: list[PageRoute] = [
        ("GET", "/sign-in", session.show),
        ("POST", "/sign-in", session.sign_in),
        ("POST", "/sign-out", session.sign_out),
        ("GET", "/", InboxPage(site, inbox, namespace, pages).show),
        ("GET", "/docs", ApiPage(site).show),
    ]
    for each in pages.values():
        routes += each.routes(site)
    router = APIRouter(route_class=page_route(site), include_in_schema=False)
    for method, path, endpoint in routes:
        router.add_api_route(path, endpoint, methods=[method], response_model=None)
    router.add_api_route(STATIC_ROUTE, static_file, methods=["GET"], response_model=None)
    return router


_FILES: Final = StaticFiles(directory=STATIC, packages=[("fastapi_swagger", "resources")])


async def static_file(request: Request, name: str) -> Response:
    """A style, script or picture of the pages."""
    answer = await _FILES.get_response(name, request.scope)
    answer.headers["Cache-Control"] = _FOR_EVER if "v" in request.query_params else "no-cache"
    return answer
