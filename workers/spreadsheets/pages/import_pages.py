"""Pages of imports: the list, a new one, one import with its panels."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from activities.spreadsheets.column_matching import reads_like_a_row
from activities.spreadsheets.records import Difference, ImportFilter, ImportSorting, SpreadsheetRow
from activities.spreadsheets.value_store import ValueFilter
from workers.shared.gateway.pages.preferences import preferences_of
from workers.shared.gateway.pages.renderer import (
    N_,
    counted,
    gettext,
    is_fragment,
    localised,
    number,
)
from workers.shared.gateway.pages.site import Alert, Site, Visitor
from workers.shared.services.identity import Identity
from workers.spreadsheets.pages import labels, review_panel
from workers.spreadsheets.pages.mapping import (
    FIRST,
    LEAST,
    Choice,
    Target,
    Trail,
    ValuePlace,
    column_lines,
    value_lines,
)
from workers.spreadsheets.pages.review_panel import (
    FIRST_REVIEW,
    FIRST_ROWS,
    ReviewRequest,
    RowsPlace,
)
from workers.spreadsheets.queries import FieldView
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.service import SpreadsheetService
from workflows.spreadsheets.decisions import missing_fields
from workflows.spreadsheets.mappings import (
    FINAL,
    CellMapping,
    Layout,
    Outcome,
    SpreadsheetState,
    TypeName,
    UndoState,
)
from workflows.spreadsheets.names import QUESTIONS
from workflows.spreadsheets.reviews import REVIEW

_PAGE_SIZE: Final = 20


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Which imports the page shows.

    Attributes:
        wanted: Which of them, and in which order.
        mine: Only those that the visitor has uploaded.
    """

    wanted: ImportFilter
    mine: bool

    def address(self, **changes: object) -> str:
        """The list with something changed, ready for a further parameter; "" takes it out."""
        wanted = self.wanted
        shown: dict[str, object] = {
            "q": wanted.text,
            "state": wanted.state and wanted.state.value,
            "type": wanted.import_type,
            "context": wanted.context_id,
            "mine": "true" if self.mine else "",
            "sort": "" if wanted.sorting is ImportSorting.NEWEST else wanted.sorting.value,
        }
        kept = {name: value for name, value in (shown | changes).items() if value}
        return f"/uploads?{urlencode(kept)}{'&' if kept else ''}"

    @property
    def is_narrowed(self) -> bool:
        """Whether imports are left out."""
        wanted = self.wanted
        return bool(
            self.mine or wanted.text or wanted.state or wanted.import_type or wanted.context_id
        )


class ImportListPage:
    """Imports, a page at a time."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        q: Annotated[str, Query(max_length=200)] = "",
        state: SpreadsheetState | None = None,
        type: TypeName | None = None,
        context: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        mine: bool = False,
        sort: ImportSorting = ImportSorting.NEWEST,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Imports of the visitor's organisations."""
        visitor = await self._site.visitor(request)
        who = preferences_of(request).narrowed(visitor.who)
        by = who.subject if mine else None
        wanted = ImportFilter(state, type, context, by, q.strip(), sort)
        found = await self._service.list(who, wanted, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "imports.html",
            found=found,
            place=ListPlace(wanted, mine),
            sortings=_SORTINGS,
            contexts=await self._service.context_names(visitor.who, found.items),
            page=page,
            size=_PAGE_SIZE,
            titles={each.name: each.title for each in await self._service.types()},
        )


_SORTINGS: Final = {
    ImportSorting.NEWEST: N_("Newest first"),
    ImportSorting.OLDEST: N_("Oldest first"),
    ImportSorting.FILENAME: N_("By file name"),
}


VALUES_PAGE: Final = 25
ROWS_PAGE: Final = 50
_TRAIL: Final = 100
"""Decisions that are looked through for who changed something."""


_TARGETS: Final = 3
"""Fields whose lists are shown at once."""


@dataclass(frozen=True, slots=True)
class Each:
    """Values that one answer can be given for."""

    count: int
    field: FieldView | None
    """Whose values all of them are; None: of several."""


async def columns(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    choices: Mapping[int, Choice] | None,
) -> dict[str, Any]:
    """The mapping of columns."""
    found = await service.columns(who, row.uuid)
    fields = await service.fields(who, row.uuid)
    preview = await service.preview(who, row.uuid)
    missing = missing_fields(found.columns, fields)
    layout = row.layout or Layout()
    trail = await _trail(service, who, row, choices)
    lines = column_lines(found.columns, fields, choices or {}, trail)
    encodings = list(labels.ENCODINGS)
    if layout.encoding and layout.encoding not in encodings:
        encodings.insert(0, layout.encoding)
    return {
        "version": found.version,
        "lines": lines,
        "fields": fields,
        "no_rows": found.are_empty,
        "header_is_row": reads_like_a_row(column.header for column in found.columns),
        "left_out": [column.header for column in found.columns if column.target is None],
        "other_sheets": preview.other_sheets if preview else (),
        "skipped": await service.skipped_rows(who, row.uuid),
        "lines_above": preview.lines_above if preview else (),
        "missing": [field for field in fields if field.name in missing],
        "pending": any(line.is_changed for line in lines),
        "preview": preview,
        "layout": layout,
        "encodings": encodings,
    }


async def values(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    choices: Mapping[int, Choice] | None,
    place: ValuePlace,
) -> dict[str, Any]:
    """The mapping of values; a page of them."""
    wanted = place.wanted
    found = await service.cells(who, row.uuid, wanted, page=place.page, size=VALUES_PAGE)
    last = max((found.total - 1) // VALUES_PAGE, 0)
    if place.page > last:
        found = await service.cells(who, row.uuid, wanted, page=last, size=VALUES_PAGE)
        place = replace(place, page=last)
    items = list(found.items)
    if choices:
        # Others have decided some of them: they are no longer open, but still of interest.
        there = {cell.id for cell in items}
        kept = await chosen_cells(service, who, row.uuid, choices)
        items = [*(cell for cell in kept if cell.id not in there), *items]
    fields = {field.name: field for field in await service.fields(who, row.uuid)}
    fields |= {
        each.name: FieldView(
            name=each.name, title=each.title, required=False, resolver=each.resolver, creates=True
        )
        for each in QUESTIONS.values()
    }
    names = list(dict.fromkeys(each.field for each in items if each.field in fields))
    lines = value_lines(items, fields, choices or {}, await _trail(service, who, row, choices))
    return {
        "version": found.version,
        "lines": lines,
        "questions": await service.questions(who, row.uuid),
        "total": row.values_total,
        "targets": await _targets(service, who, row, names, fields),
        "query": "",
        "pending": any(line.is_changed for line in lines),
        "place": place,
        "least": LEAST,
        "last": last,
        "fields": await _value_fields(service, who, row, place, fields),
        "each": await _each(service, who, row, place, fields),
    }


async def _targets(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    names: Sequence[str],
    fields: Mapping[str, FieldView],
) -> Sequence[Target]:
    """What the values of fields can mean, for those that refer to a list."""
    listed = [each for each in names if each not in QUESTIONS and fields[each].resolver]
    return [
        Target(each, fields[each].title, await service.candidates(who, row.uuid, each))
        for each in listed[:_TARGETS]
    ]


async def _value_fields(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    place: ValuePlace,
    fields: Mapping[str, FieldView],
) -> Sequence[tuple[str, str, int]]:
    """Fields that values can be chosen by: name, title, and how many values there are."""
    counts = await service.cell_counts(who, row.uuid, ValueFilter(status=place.status))
    counts = {place.field: 0, **counts} if place.field else counts
    return [(name, fields[name].title, count) for name, count in counts.items() if name in fields]


async def _each(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    place: ValuePlace,
    fields: Mapping[str, FieldView],
) -> Each | None:
    """What one answer would be for; None: for nothing. Questions are answered by themselves."""
    found = await service.cell_counts(who, row.uuid, place.wanted)
    counts = {name: count for name, count in found.items() if name not in QUESTIONS}
    if not counts:
        return None
    name = place.field or (next(iter(counts)) if len(counts) == 1 else "")
    return Each(sum(counts.values()), fields.get(name))


async def chosen_cells(
    service: SpreadsheetService, who: Identity, uuid: str, choices: Mapping[int, Choice]
) -> Sequence[CellMapping]:
    """The values that a form is about, as they are now."""
    return await service.cells_by_id(who, uuid, sorted(choices)) if choices else ()


async def done(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    outcome: Outcome | None,
    page: int,
) -> dict[str, Any]:
    """Outcome of the rows."""
    undo = await service.undo_view(who, row.uuid)
    conflicts = None
    if undo is not None and undo.left_alone:
        conflicts = await service.undo_conflicts(who, row.uuid, size=ROWS_PAGE)
    summary = await service.summary(who, row.uuid)
    results = await service.result_page(who, row.uuid, outcome, page, ROWS_PAGE)
    differences: dict[int, list[Difference]] = defaultdict(list)
    for each in summary.differences:
        differences[each.line].append(each)
    return {
        "differences": differences,
        "summary": summary,
        "counts": {outcome: getattr(summary, outcome.lower()) for outcome in Outcome},
        "results": results,
        "outcome": outcome,
        "page": page,
        "size": ROWS_PAGE,
        "undo": undo,
        "conflicts": conflicts,
        "can_undo": who.upload is None and can_undo(row),
    }


def can_undo(row: SpreadsheetRow) -> bool:
    """Whether there is something that an undo could take back."""
    written = row.counts.created + row.counts.updated
    undone = row.undo_state in (UndoState.RUNNING, UndoState.UNDONE)
    return row.state in FINAL and not row.dry_run and written > 0 and not undone


async def _trail(
    service: SpreadsheetService,
    who: Identity,
    row: SpreadsheetRow,
    choices: Mapping[int, Choice] | None,
) -> Trail:
    """Needed only to name who was faster."""
    if not choices:
        return Trail(())
    return Trail((await service.decisions(who, row.uuid, size=_TRAIL)).items)


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
        return RedirectResponse(f"/uploads/{uuid}?{query}", 303)

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
            pace=row.pace(datetime.now(UTC)),
            live=_live(row, client.panel if notice else panel, row.version, client.confirmed),
            notice=notice,
            announcement=announcement,
        )

    async def _notice(
        self, visitor: Visitor, row: SpreadsheetRow, panel: str, client: ClientState
    ) -> Notice | None:
        records = await self._service.decisions(visitor.who, row.uuid, size=1)
        own = records.items and records.items[0].by == visitor.who.subject
        if own and panel == client.panel == "review":
            # The grid shows what it has changed, and is refused if another window was faster.
            return None
        by = records.items[0].by if records.items else gettext("Another person")
        if panel != client.panel:
            return Notice(
                gettext("%(who)s has continued this upload", who=by),
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
            return gettext("The upload has ended: %(state)s", state=state)
        if panel == "review":
            return gettext("The rows wait for you.")
        if panel in _EDITED:
            return gettext("%(state)s wait for you", state=state)
        return state

    async def _context(
        self, visitor: Visitor, row: SpreadsheetRow, panel: str, view_request: ViewRequest
    ) -> dict[str, Any]:
        types = {each.name: each for each in await self._service.types()}
        titles = {name: each.title for name, each in types.items()}
        context: dict[str, Any] = {
            "row": row,
            "is_superseded": await self._service.is_superseded(row),
            "title": labels.type_title(row.import_type, titles),
            "panel": panel,
            "problem": view_request.alert,
            "focus": view_request.focus,
            "announcement": view_request.announcement,
            "waiting": _waiting_for(row),
            "pace": row.pace(datetime.now(UTC)),
            "heading": _heading(row),
        }
        version = row.version
        match panel:
            case "columns":
                context |= await columns(self._service, visitor.who, row, view_request.choices)
                version = context["version"]
            case "values":
                context |= await values(
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
                context |= await done(
                    self._service, visitor.who, row, view_request.outcome, view_request.page
                )
            case "gone":
                undo = await self._service.undo_view(visitor.who, row.uuid)
                context |= {"can_undo": can_undo(row), "undo": undo}
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
            return gettext("The upload has failed")
        case SpreadsheetState.CANCELLED:
            return gettext("The upload was cancelled")
        case SpreadsheetState.TERMINATED:
            return gettext("The run of the upload was terminated")
        case _:
            return gettext("docflow is reading the file")
