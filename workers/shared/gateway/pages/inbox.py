"""The page of the inbox, and addresses of all pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

from adapters.database.saved_views import SqlSavedViews
from workers.shared.gateway.http.oidc import OidcProvider
from workers.shared.gateway.http.sessions import Sessions
from workers.shared.gateway.pages.preferences import preferences_of
from workers.shared.gateway.pages.renderer import (
    N_,
    STATIC,
    MenuEntry,
    Templates,
    counted,
    gettext,
    is_fragment,
    localised,
)
from workers.shared.gateway.pages.runs import beginnings, run_routes
from workers.shared.gateway.pages.settings import settings_routes
from workers.shared.gateway.pages.sign_in import sign_in_routes
from workers.shared.gateway.pages.site import (
    Alike,
    PageRoute,
    PipelinePages,
    SignInNeeded,
    Site,
    page_route,
)
from workers.shared.services.inbox import Inbox, InboxEntry
from workers.shared.services.run_service import RunService
from workers.shared.services.status_service import StatusService
from workers.shared.settings.gateway import GatewaySettings


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
        who = preferences_of(request).narrowed(visitor.who)
        entries = self._lines(await self._inbox.read(who, mine=mine))
        outages = await self._inbox.outages(visitor.who)
        template = "inbox_entries.html" if is_fragment(request) else "inbox.html"
        return self._site.page(
            request,
            visitor,
            template,
            entries=entries,
            outages=outages,
            mine=mine,
            new=beginnings(self._pages, who),
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
    pages: Mapping[str, PipelinePages], sessions: Sessions, settings: GatewaySettings
) -> Site:
    """What all pages share.

    Args:
        pages: Those of each pipeline that has some, by name.
        sessions: Who is signed in.
        settings: Of the gateway.
    """
    own = [entry for each in pages.values() for entry in each.menu]
    start = own[0].address if own else "/"
    menu = [
        MenuEntry("/overview", N_("Overview"), key="o"),
        MenuEntry("/", N_("Inbox"), key="i"),
        MenuEntry("/runs", N_("Runs"), key="r"),
        *own,
        MenuEntry("/settings", N_("Settings"), key="s"),
    ]
    folders = [each.templates for each in pages.values()]
    names = {name: value for each in pages.values() for name, value in each.names.items()}
    return Site(sessions, settings, Templates(menu, folders, names), start)


def pages_router(
    site: Site,
    pages: Mapping[str, PipelinePages],
    inbox: Inbox,
    runs: RunService,
    status: StatusService | None,
    views: SqlSavedViews,
    providers: Mapping[str, OidcProvider],
    *,
    namespace: str,
) -> APIRouter:
    """The pages for people, to be included in the gateway's application.

    Args:
        site: What they share.
        pages: Those of each pipeline that has some, by name.
        inbox: What waits for people.
        runs: Of all pipelines.
        status: Of the installation; None: only the document is wanted.
        views: Of the list of runs, which people keep.
        providers: That people sign in with, by name.
        namespace: Of Temporal, for links into its user interface.
    """
    routes: list[PageRoute] = [
        *sign_in_routes(site, providers),
        ("GET", "/", InboxPage(site, inbox, namespace, pages).show),
        ("GET", "/docs", ApiPage(site).show),
        *settings_routes(site),
    ]
    # Any further path below /runs is the id of a run.
    for each in pages.values():
        routes += each.routes(site)
    routes += run_routes(site, runs, status, pages, views)
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
