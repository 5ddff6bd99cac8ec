"""The page of one import: steps, the panel of its state, and what keeps it up to date."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from adapters.database.spreadsheets.views import SpreadsheetRow
from contracts.spreadsheets import FINAL, Outcome, SpreadsheetState, UndoState
from contracts.spreadsheets.reviews import REVIEW
from workers.gateway.pages.language import counted, gettext, localised, number
from workers.gateway.pages.renderer import is_fragment
from workers.gateway.pages.site import Alert, Site, Visitor
from workers.gateway.spreadsheets.pages import labels, panels, review_panel
from workers.gateway.spreadsheets.pages.forms import Choice
from workers.gateway.spreadsheets.pages.review_forms import FIRST_ROWS, RowsPlace
from workers.gateway.spreadsheets.pages.review_panel import FIRST_REVIEW, ReviewRequest
from workers.gateway.spreadsheets.pages.value_place import FIRST, ValuePlace
from workers.services.spreadsheets.pace import pace_of
from workers.services.spreadsheets.review_rows import RowFilter
from workers.services.spreadsheets.service import SpreadsheetService

_WORKING: Final = "1s"
_WAITING: Final = "4s"
_EDITED: Final = ("columns", "values", "review")
"""Panels that hold choices of a person: they are never replaced while a person edits them."""


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What of an import is to be shown, and how."""

    values: ValuePlace = FIRST
    """Which of the values."""
    outcome: Outcome | None = None
    """Which rows; None: all."""
    review: ReviewRequest = FIRST_REVIEW
    """Which rows of a review."""
    page: int = 0
    choices: Mapping[int, Choice] | None = None
    """Of a form that was not taken."""
    alert: Alert | None = None
    focus: str = ""
    """`panel`: what comes next is there, and the focus goes to its heading."""
    announcement: str = ""
    """For screen readers, when the focus stays where it was."""
    confirmed: int | None = None
    """Version of the columns that were confirmed just now."""
    undoing: bool = False
    """An undo was asked for just now, and may not have begun."""


@dataclass(frozen=True, slots=True)
class Live:
    """How a page asks whether anything has changed."""

    every: str
    """Interval; "" when nothing can change any more."""
    query: str
    """What it shows now."""


@dataclass(frozen=True, slots=True)
class ClientState:
    """The state that a page reports as shown."""

    revision: int
    version: int
    panel: str
    quarter: int
    confirmed: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Another person has changed the import."""

    title: str
    sentence: str


class ImportPage:
    """Shows an import in whatever state it is."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        uuid: str,
        show: Annotated[str, Query(pattern="^(open|all)$")] = "open",
        outcome: Outcome | None = None,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        field: Annotated[str, Query(max_length=64)] = "",
        text: Annotated[str, Query(max_length=200)] = "",
        rows: RowFilter = RowFilter.ALL,
        column: Annotated[int | None, Query(ge=1, le=256)] = None,
    ) -> Response:
        """The whole page."""
        visitor = await self._site.visitor(request)
        values = ValuePlace(show, page, field, text)
        review = ReviewRequest(RowsPlace(rows, column, page))
        view_request = ViewRequest(values, outcome, review, page)
        return await self.answer(request, visitor, uuid, view_request)

    async def answer(
        self,
        request: Request,
        visitor: Visitor,
        uuid: str,
        view_request: ViewRequest,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """The page, or to a script the part of it that changes."""
        row = await self._service.get(visitor.who, uuid)
        panel = panel_of(row, view_request.confirmed)
        context = await self._context(visitor, row, panel, view_request)
        template = "import_part.html" if is_fragment(request) else "import.html"
        return self._site.page(request, visitor, template, status, headers, **context)

    async def done(
        self, request: Request, visitor: Visitor, uuid: str, view_request: ViewRequest | None = None
    ) -> Response:
        """Answer a form that was taken."""
        view_request = view_request or ViewRequest(focus="panel")
        if is_fragment(request):
            return await self.answer(request, visitor, uuid, view_request)
        place = view_request.review.place
        query = view_request.values.query if place == FIRST_ROWS else place.query
        return RedirectResponse(f"/imports/{uuid}?{query}", 303)

    async def live(
        self,
        request: Request,
        uuid: str,
        revision: int,
        version: int,
        panel: str,
        quarter: int = -1,
        confirmed: int | None = None,
    ) -> Response:
        """What has changed since a page was made; no change is an empty answer."""
        visitor = await self._site.visitor(request)
        client = ClientState(revision, version, panel, quarter, confirmed)
        row = await self._service.get(visitor.who, uuid)
        if row.revision == client.revision:
            return Response(status_code=204)
        now = panel_of(row, confirmed)
        if now != client.panel and client.panel not in _EDITED:
            headers = {"HX-Retarget": "#import", "HX-Reswap": "outerHTML"}
            view_request = ViewRequest(announcement=self._news(row, now), confirmed=confirmed)
            return await self.answer(request, visitor, uuid, view_request, headers=headers)
        if now == "done":
            headers = {"HX-Retarget": "#import", "HX-Reswap": "outerHTML"}
            return await self.answer(request, visitor, uuid, ViewRequest(), headers=headers)
        return await self._changes(request, visitor, row, now, client)

    async def _changes(
        self,
        request: Request,
        visitor: Visitor,
        row: SpreadsheetRow,
        panel: str,
        client: ClientState,
    ) -> Response:
        notice = None
        if client.panel in _EDITED and (panel != client.panel or row.version != client.version):
            notice = await self._notice(visitor, row, panel, client)
        quarter = _quarter(row)
        is_news = panel == "processing" and quarter != client.quarter
        announcement = self._news(row, panel) if is_news else ""
        if notice is not None:
            announcement = f"{notice.title}. {notice.sentence}"
        return self._site.page(
            request,
            visitor,
            "live.html",
            row=row,
            panel=panel,
            waiting=_waiting_for(row),
            pace=pace_of(row, datetime.now(UTC)),
            live=_live(row, client.panel if notice else panel, row.version, client.confirmed),
            notice=notice,
            announcement=announcement,
        )

    async def _notice(
        self, visitor: Visitor, row: SpreadsheetRow, panel: str, client: ClientState
    ) -> Notice:
        records = await self._service.decisions(visitor.who, row.uuid, size=1)
        by = records.items[0].by if records.items else gettext("Another person")
        if panel != client.panel:
            return Notice(
                gettext("%(who)s has continued this import", who=by),
                gettext(
                    "What you see here is no longer up to date. Your choices are still on this "
                    "page, but cannot be saved."
                ),
            )
        title = gettext("%(who)s has changed the mappings meanwhile", who=by)
        if panel == "review":
            title = gettext("%(who)s has changed the rows meanwhile", who=by)
        return Notice(
            title,
            gettext(
                "Your choices are still here. When you save, you see both, and nothing is "
                "overwritten."
            ),
        )

    def _news(self, row: SpreadsheetRow, panel: str) -> str:
        if panel == "processing":
            return gettext(
                "%(done)s of %(total)s rows processed",
                done=number(row.counts.done),
                total=number(row.total),
            )
        state = localised(labels.STATES[row.state].text)
        if panel == "done":
            return gettext("The import has ended: %(state)s", state=state)
        if panel == "review":
            return gettext("The rows wait for you.")
        if panel in _EDITED:
            return gettext("%(state)s wait for you", state=state)
        return state

    async def _context(
        self, visitor: Visitor, row: SpreadsheetRow, panel: str, view_request: ViewRequest
    ) -> dict[str, Any]:
        titles = {each.name: each.title for each in self._service.types()}
        context: dict[str, Any] = {
            "row": row,
            "title": labels.type_title(row.import_type, titles),
            "panel": panel,
            "problem": view_request.alert,
            "focus": view_request.focus,
            "announcement": view_request.announcement,
            "waiting": _waiting_for(row),
            "pace": pace_of(row, datetime.now(UTC)),
            "heading": _heading(row),
        }
        version = row.version
        match panel:
            case "columns":
                context |= await panels.columns(
                    self._service, visitor.who, row, view_request.choices
                )
                version = context["version"]
            case "values":
                context |= await panels.values(
                    self._service,
                    visitor.who,
                    row,
                    view_request.choices,
                    view_request.values,
                )
                version = context["version"]
            case "review":
                context |= await review_panel.review(
                    self._service, visitor.who, row, view_request.review
                )
                version = context["version"]
            case "done":
                context |= await panels.done(
                    self._service, visitor.who, row, view_request.outcome, view_request.page
                )
            case "gone":
                context["can_undo"] = panels.can_undo(row)
            case _:
                pass
        live = _live(row, panel, version, view_request.confirmed, undoing=view_request.undoing)
        return context | {"live": live}


def panel_of(row: SpreadsheetRow, confirmed: int | None = None) -> str:
    """What is shown of an import: the template `panel_….html`.

    Args:
        row: The import.
        confirmed: Version of the columns that a person has confirmed; as long as nothing comes
            after it the rest of the file is being read, and the run waits for no person.
    """
    if row.purged_at is not None:
        return "gone"
    if row.state in FINAL:
        return "done"
    if row.waiting_since is not None and row.reason:
        return "stuck"
    if row.state is SpreadsheetState.PROCESSING:
        return "processing"
    if row.waiting_since is None:
        return "reading"
    if row.state is SpreadsheetState.COLUMN_MAPPING:
        return "reading" if row.version == confirmed else "columns"
    return "review" if row.step == REVIEW else "values"


def _live(
    row: SpreadsheetRow, panel: str, version: int, confirmed: int | None, *, undoing: bool = False
) -> Live:
    # Polling, not server-sent events: without HTTP/2 a browser has six connections per site for
    # all of its tabs, and a seventh open import would hang.
    undoing = undoing or row.undo_state is UndoState.RUNNING
    every = _WORKING if panel in ("reading", "processing", "done") else _WAITING
    if panel == "gone" or (panel == "done" and not undoing):
        every = ""
    shown: dict[str, str | int] = {
        "revision": row.revision,
        "version": version,
        "panel": panel,
        "quarter": _quarter(row),
    }
    if confirmed is not None:
        shown["confirmed"] = confirmed
    return Live(every, urlencode(shown))


def _quarter(row: SpreadsheetRow) -> int:
    """How far the rows have come, in steps worth announcing."""
    return 4 * row.counts.done // row.total if row.total else -1


def _waiting_for(row: SpreadsheetRow) -> str:
    match row.state:
        case SpreadsheetState.UPLOADED:
            return gettext("Reading the top of the file …")
        case SpreadsheetState.COLUMN_MAPPING:
            return gettext("Reading the rows …")
        case SpreadsheetState.CELL_MAPPING:
            return gettext("Collecting the values …")
        case _:
            return gettext("Working …")


def _heading(row: SpreadsheetRow) -> str:
    """What the panel of a step without a person, or of the end, is called."""
    match row.state:
        case SpreadsheetState.COMPLETED if row.dry_run:
            return gettext("Every row is checked; nothing was written")
        case SpreadsheetState.COMPLETED:
            return counted("All done: %(count)s row", "All done: %(count)s rows", row.counts.done)
        case SpreadsheetState.FAILED:
            return gettext("The import has failed")
        case SpreadsheetState.CANCELLED:
            return gettext("The import was cancelled")
        case SpreadsheetState.TERMINATED:
            return gettext("The run of the import was terminated")
        case _:
            return gettext("docflow is reading the file")
