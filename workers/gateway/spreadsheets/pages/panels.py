"""What the panels of an import show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adapters.database.spreadsheets.views import SpreadsheetRow, ValueFilter
from contracts.spreadsheets import FINAL, CellMapping, Layout, Outcome, UndoState
from domain.spreadsheets.bibs import QUESTIONS
from domain.spreadsheets.header import reads_like_a_row
from domain.spreadsheets.missing import missing_fields
from workers.gateway.spreadsheets.pages import labels
from workers.gateway.spreadsheets.pages.forms import Choice
from workers.gateway.spreadsheets.pages.lines import Trail, column_lines, value_lines
from workers.gateway.spreadsheets.pages.value_place import LEAST, ValuePlace
from workers.services.identity import Identity
from workers.services.spreadsheets.choices import FieldView
from workers.services.spreadsheets.service import SpreadsheetService

VALUES_PAGE: Final = 25
ROWS_PAGE: Final = 50
_TRAIL: Final = 100
"""Decisions that are looked through for who changed something."""


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
        each.name: FieldView(each.name, each.title, False, each.resolver, True, ())
        for each in QUESTIONS.values()
    }
    lines = value_lines(items, fields, choices or {}, await _trail(service, who, row, choices))
    return {
        "version": found.version,
        "lines": lines,
        "questions": await service.questions(who, row.uuid),
        "open": row.values_open,
        "total": row.values_total,
        "pending": any(line.is_changed for line in lines),
        "place": place,
        "least": LEAST,
        "last": last,
        "fields": await _value_fields(service, who, row, place, fields),
        "each": await _each(service, who, row, place, fields),
    }


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
    if undo is not None and undo.counts.left_alone:
        conflicts = await service.undo_conflicts(who, row.uuid, size=ROWS_PAGE)
    summary = await service.summary(who, row.uuid)
    results = await service.results(who, row.uuid, outcome=outcome, page=page, size=ROWS_PAGE)
    return {
        "summary": summary,
        "counts": {outcome: getattr(summary.counts, outcome.lower()) for outcome in Outcome},
        "results": results,
        "shown": await service.result_rows.read(row, [each.line for each in results.items]),
        "outcome": outcome,
        "page": page,
        "size": ROWS_PAGE,
        "undo": undo,
        "conflicts": conflicts,
        "can_undo": can_undo(row),
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
