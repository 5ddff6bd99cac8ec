"""What the panel of a review shows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

from adapters.database.spreadsheets.views import SpreadsheetRow
from contracts.spreadsheets.reviews import OPERATION, NotationName, Operation
from workers.gateway.pages.language import N_, gettext
from workers.gateway.spreadsheets.pages.operation_words import operation_words
from workers.gateway.spreadsheets.pages.review_forms import (
    FIRST_ROWS,
    LONGEST,
    Corrected,
    RowsPlace,
)
from workers.gateway.spreadsheets.review_schemas import (
    ReviewEffectView,
    ReviewRowView,
    effect_view,
    row_views,
)
from workers.services.identity import Identity
from workers.services.spreadsheets.reviews import ChangeOutcome, ReviewColumn
from workers.services.spreadsheets.service import SpreadsheetService

_CELLS: Final = 900
"""Cells of a page, so that its form stays within the fields that are taken."""
_ROWS: Final = 25
_FEWEST: Final = 5
_CHANGES: Final = 20
_EMPTY: Final = Corrected()

NOTATIONS: Final[Mapping[str, str]] = {
    NotationName.DAY_FIRST: N_("Dates: the day comes first (3/4/2026 is in April)"),
    NotationName.MONTH_FIRST: N_("Dates: the month comes first (3/4/2026 is in March)"),
    NotationName.DECIMAL_COMMA: N_("Numbers: a comma before the decimals (1.234,5)"),
    NotationName.DECIMAL_POINT: N_("Numbers: a point before the decimals (1,234.5)"),
    NotationName.HOURS_MINUTES: N_("Times: 3:45 is hours and minutes"),
    NotationName.MINUTES_SECONDS: N_("Times: 3:45 is minutes and seconds"),
}


@dataclass(frozen=True, slots=True)
class Proposed:
    """A change that was looked at, and is not made yet."""

    operation: Operation
    outcome: ChangeOutcome


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """Which rows of a review are to be shown, and what is in progress."""

    place: RowsPlace = FIRST_ROWS
    kept: Corrected = _EMPTY
    """Of a form that was not taken."""
    proposed: Proposed | None = None


FIRST_REVIEW: Final = ReviewRequest()


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell of the grid."""

    column: int
    title: str
    text: str
    """What its input holds."""
    seen: str
    """What the review has."""
    problem: str
    remark: str
    hint: str
    """What stood in the file, and who corrected it."""
    is_long: bool
    """It is too long for an input."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of the grid."""

    number: int
    problems: Sequence[str]
    """Of the row as a whole."""
    left_out_by: str
    is_left_out: bool
    """The page has it selected."""
    cells: Sequence[GridCell]
    seen: str
    """What the form sends back of what it showed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the list, in words."""

    version: int
    words: str
    by: str
    at: Any
    cells: int
    can_undo: bool
    undone: bool


async def review(
    service: SpreadsheetService, who: Identity, row: SpreadsheetRow, request: ReviewRequest
) -> dict[str, Any]:
    """The rows before they are written: a page of them."""
    uuid, place = row.uuid, request.place
    overview = await service.review.overview(who, uuid)
    columns = overview.columns
    size = min(_ROWS, max(_FEWEST, _CELLS // max(len(columns), 1)))
    state, _, found = await service.review.rows(
        who, uuid, wanted=place.wanted, column=place.column, page=place.page, size=size
    )
    last = max((found.total - 1) // size, 0)
    if place.page > last:
        place = replace(place, page=last)
        state, _, found = await service.review.rows(
            who, uuid, wanted=place.wanted, column=place.column, page=last, size=size
        )
    headers, operations = await service.review.operations(who, uuid, size=_CHANGES)
    fields = {each.name: each.title for each in await service.fields(who, uuid)}
    rows = row_views(found.items, [each.column.id for each in columns])
    remembered = await service.review.remembered(who, uuid)
    return {
        "version": state.version,
        "form_key": uuid4().hex,
        "review": overview,
        "counts": state.counts,
        "is_checked": state.counts.checked >= state.version,
        "columns": columns,
        "grid": [_grid_row(each, columns, request.kept) for each in rows],
        "elsewhere": _elsewhere(request.kept, rows, headers),
        "pending": bool(request.kept.operations()),
        "place": place,
        "last": last,
        "found_rows": found.total,
        "fields": fields,
        "notations": NOTATIONS,
        "missing": [fields.get(name, name) for name in overview.missing],
        "changes": [
            Change(
                each.operation.version,
                operation_words(each.operation.operation, headers, fields),
                each.operation.by,
                each.operation.at,
                each.effect.cells,
                each.undone_by is None,
                each.undone_by is not None,
            )
            for each in operations.items
        ],
        "more_changes": operations.total > _CHANGES,
        "remembered": [
            (
                operation_words(each.operation.operation, headers, fields),
                OPERATION.dump_json(each.operation.operation).decode(),
                each.why,
            )
            for each in remembered
        ],
        "proposed": request.proposed and _proposed(request.proposed, headers, fields),
    }


def _elsewhere(
    kept: Corrected, rows: Sequence[ReviewRowView], headers: Mapping[int, str]
) -> Sequence[str]:
    """Corrections of a form that was not taken, of rows that another page shows by now."""
    here = {row.row_number for row in rows}
    return [
        gettext(
            "row %(row)s, %(column)s: %(text)s",
            row=row,
            column=headers.get(column, ""),
            text=text or gettext("blank"),
        )
        for (row, column), text in kept.cells.items()
        if row not in here
    ]


def _proposed(
    proposed: Proposed, headers: Mapping[int, str], fields: Mapping[str, str]
) -> dict[str, Any]:
    effect: ReviewEffectView = effect_view(proposed.outcome)
    return {
        "words": operation_words(proposed.operation, headers, fields),
        "effect": effect,
        "json": OPERATION.dump_json(proposed.operation).decode(),
        "headers": headers,
    }


def _grid_row(row: ReviewRowView, columns: Sequence[ReviewColumn], kept: Corrected) -> GridRow:
    number = row.row_number
    cells: list[GridCell] = []
    for cell, column in zip(row.cells, columns, strict=True):
        seen = cell.value or ""
        hint = ""
        if cell.corrected_by is not None:
            before = f"“{cell.original}”" if cell.original else gettext("blank")
            hint = gettext(
                "Was %(before)s; corrected by %(who)s", before=before, who=cell.corrected_by
            )
        text = kept.cells.get((number, cell.column_id), seen)
        cells.append(
            GridCell(
                cell.column_id,
                column.title or column.column.header,
                text,
                seen,
                cell.problem or "",
                cell.remark or "",
                hint,
                len(seen) >= min(LONGEST, 500),
            )
        )
    is_out = row.excluded_by is not None
    selected = number in kept.left_out or (is_out and number not in kept.taken_in)
    seen = {str(cell.column): cell.seen for cell in cells if not cell.is_long}
    return GridRow(
        number,
        row.problems,
        row.excluded_by or "",
        selected,
        cells,
        json.dumps({**seen, "out": is_out}, ensure_ascii=False),
    )
