"""What people see in a review, and the forms of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from activities.spreadsheets.records import SpreadsheetRow
from activities.spreadsheets.review_rules import (
    ChangeEffect,
    ReviewCell,
    ReviewColumn,
    ReviewOperationView,
    ReviewOverview,
    ReviewRow,
)
from workers.shared.gateway.pages.renderer import N_, counted, gettext, localised
from workers.shared.gateway.pages.site import Form
from workers.shared.services.errors import Refused
from workers.shared.services.identity import Identity
from workers.spreadsheets.review_files import RowFilter
from workers.spreadsheets.service import SpreadsheetService
from workers.spreadsheets.upload_form import refused_if_invalid
from workflows.spreadsheets.reviews import (
    OPERATION,
    CellValue,
    Constant,
    Exclude,
    Join,
    Move,
    Notation,
    NotationName,
    Operation,
    Replace,
    SetCells,
    Split,
    UndoOperation,
)

_NOTATIONS: Mapping[str, str] = {
    NotationName.DAY_FIRST: N_("dates with the day first"),
    NotationName.MONTH_FIRST: N_("dates with the month first"),
    NotationName.DECIMAL_COMMA: N_("numbers with a decimal comma"),
    NotationName.DECIMAL_POINT: N_("numbers with a decimal point"),
    NotationName.HOURS_MINUTES: N_("hours and minutes"),
    NotationName.MINUTES_SECONDS: N_("minutes and seconds"),
}


def operation_words(
    operation: Operation, headers: Mapping[int, str], fields: Mapping[str, str]
) -> str:
    """What an operation is about, and what it does, without values of cells.

    Args:
        operation: The operation.
        headers: Id of each column to its header.
        fields: Name of each field to its title.
    """
    about, done = _parts(operation, headers, fields)
    return f"{about}: {done}"


def _parts(
    operation: Operation, headers: Mapping[int, str], fields: Mapping[str, str]
) -> tuple[str, str]:
    def column(id: int) -> str:
        return headers.get(id) or gettext("column %(number)s", number=id)

    def field(name: str) -> str:
        return localised(fields.get(name, name))

    match operation:
        case SetCells(cells=[cell]):
            place = {"row": cell.row, "column": column(cell.column)}
            return gettext("row %(row)s, %(column)s", **place), gettext("corrected")
        case SetCells(cells=cells):
            return counted("%(count)s cell", "%(count)s cells", len(cells)), gettext("corrected")
        case Replace(column=id):
            return column(id), gettext("text replaced")
        case Constant(column=int(id), value=""):
            return column(id), gettext("set empty")
        case Constant(column=int(id), blanks=blanks):
            return column(id), gettext("blank cells filled") if blanks else gettext("filled")
        case Constant(field=name):
            return field(str(name)), gettext("filled")
        case Split(column=id, fields=(first, second)):
            parts = {"first": field(first), "second": field(second)}
            return column(id), gettext("split into %(first)s and %(second)s", **parts)
        case Join(columns=(one, other), field=name):
            both = gettext("%(one)s and %(other)s", one=column(one), other=column(other))
            return both, gettext("joined as %(field)s", field=field(name))
        case Move(column=id, field=name):
            return column(id), gettext("moved to %(field)s", field=field(name))
        case Notation(column=id, notation=notation):
            return column(id), gettext("read as %(what)s", what=localised(_NOTATIONS[notation]))
        case Exclude(rows=rows, back=back):
            done = gettext("taken in again") if back else gettext("left out")
            if len(rows) == 1:
                return gettext("row %(row)s", row=rows[0]), done
            return counted("%(count)s row", "%(count)s rows", len(rows)), done
        case UndoOperation(version=version):
            return gettext("change %(version)s", version=version), gettext("taken back")


LONGEST: Final = 2_000
"""Characters of a cell that can be corrected in place."""
_OUT: Final = "out"
_SEEN: Final = TypeAdapter(dict[str, str | bool])


@dataclass(frozen=True, slots=True)
class RowsPlace:
    """A page of the rows, or of those that a filter leaves."""

    wanted: RowFilter = RowFilter.ALL
    column: int | None = None
    """With `PROBLEMS`: only rows with a problem in this column."""
    page: int = 0

    @property
    def name(self) -> str:
        """As a button names it."""
        return f"{self.wanted}:{self.column or ''}:{self.page}"

    @property
    def query(self) -> str:
        """Of its address."""
        wanted = {"rows": self.wanted.value, "page": self.page}
        return urlencode(wanted | ({"column": self.column} if self.column else {}))


FIRST_ROWS: Final = RowsPlace()


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a person changed in the grid, beside what it showed."""

    cells: Mapping[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    """Row and column to the new text."""
    left_out: tuple[int, ...] = ()
    taken_in: tuple[int, ...] = ()

    def without(self, saved: Sequence[Operation]) -> "Corrected":
        """What is left when some of the operations are saved."""
        left = self
        for each in saved:
            match each:
                case SetCells():
                    left = replace(left, cells={})
                case Exclude(back=True):
                    left = replace(left, taken_in=())
                case Exclude():
                    left = replace(left, left_out=())
                case _:
                    pass
        return left

    def operations(self) -> list[Operation]:
        """As the review takes them.

        Raises:
            Refused: A cell is too long.
        """
        found: list[Operation] = []
        if self.cells:
            with refused_if_invalid():
                values = [
                    CellValue(row=row, column=column, value=text or None)
                    for (row, column), text in self.cells.items()
                ]
                found.append(SetCells(cells=tuple(values)))
        if self.left_out:
            found.append(Exclude(rows=self.left_out))
        if self.taken_in:
            found.append(Exclude(rows=self.taken_in, back=True))
        return found


def corrected(form: Form) -> Corrected:
    """What of the grid is not as it was shown.

    Raises:
        Refused: The form is not one of ours.
    """
    cells: dict[tuple[int, int], str] = {}
    left_out: list[int] = []
    taken_in: list[int] = []
    for row, seen in _seen(form):
        for column, before in seen.items():
            if column == _OUT:
                is_out = f"{_OUT}-{row}" in form.fields
                if is_out != bool(before):
                    (left_out if is_out else taken_in).append(row)
                continue
            text = form.fields.get(f"cell-{row}-{column}")
            # A browser takes line breaks out of what stands in one line.
            if text is not None and _in_line(text) != _in_line(before):
                cells[row, int(column)] = text.strip()
    return Corrected(cells, tuple(left_out), tuple(taken_in))


def in_words(operation: Operation) -> str:
    """What a form has corrected by an operation of the grid."""
    match operation:
        case SetCells(cells=cells):
            return counted("%(count)s cell corrected", "%(count)s cells corrected", len(cells))
        case Exclude(rows=rows, back=back):
            if back:
                return counted(
                    "%(count)s row taken in again", "%(count)s rows taken in again", len(rows)
                )
            return counted("%(count)s row left out", "%(count)s rows left out", len(rows))
        case _:
            return gettext("a column changed")


def key_of(form: Form, operation: Operation) -> str | None:
    """Idempotency key of an operation that a form requests: sending it twice changes rows once."""
    if not (own := form.text("key", 40)):
        return None
    return f"{own}/{hashlib.sha256(operation.model_dump_json().encode()).hexdigest()}"


def place_of(text: str) -> RowsPlace | None:
    """The rows that a button names; None: it names none."""
    name, _, rest = text.partition(":")
    column, _, page = rest.partition(":")
    if name not in set(RowFilter) or not page.isascii() or not page.isdecimal():
        return None
    is_column = column.isascii() and column.isdecimal()
    return RowsPlace(RowFilter(name), int(column) if is_column else None, int(page))


def operation_of(form: Form) -> Operation:
    """The change of a column that a form describes, or carries.

    Raises:
        Refused: It is incomplete.
    """
    try:
        with refused_if_invalid():
            return _described(form)
    except Refused as error:
        said = gettext("the change is incomplete: %(problems)s", problems=error)
        raise Refused(said) from None


def _described(form: Form) -> Operation:
    if carried := form.fields.get("operation"):
        return OPERATION.validate_json(carried)
    given: dict[str, Any]
    match kind := form.text("kind"):
        case "REPLACE":
            given = {
                "column": form.whole("column"),
                "find": form.fields.get("find", ""),
                "put": form.fields.get("put", ""),
                "whole": "whole" in form.fields,
                "case": "case" in form.fields,
            }
        case "CONSTANT":
            what, _, name = form.text("into").partition(":")
            given = {what: int(name) if what == "column" and name.isdecimal() else name}
            given |= {
                "value": form.fields.get("value", ""),
                "blanks": "blanks" in form.fields,
            }
        case "SPLIT":
            fields = (form.text("first"), form.text("second"))
            given = {"column": form.whole("column"), "fields": fields}
            given |= {"separator": _separator(form), "last": "last" in form.fields}
        case "JOIN":
            columns = (form.whole("column"), form.whole("other"))
            given = {"columns": columns, "field": form.text("field")}
            given |= {"separator": _separator(form)}
        case "MOVE":
            given = {"column": form.whole("column"), "field": form.text("field")}
        case "CLEAR":
            kind, given = "CONSTANT", {"column": form.whole("column"), "value": ""}
        case "NOTATION":
            given = {"column": form.whole("column"), "notation": form.text("notation")}
        case _:
            given = {}
    return OPERATION.validate_python({"kind": kind, **given})


def _separator(form: Form) -> str:
    return form.fields.get("separator", "") or " "


def _seen(form: Form) -> list[tuple[int, Mapping[str, str | bool]]]:
    found: list[tuple[int, Mapping[str, str | bool]]] = []
    for name, text in form.fields.items():
        prefix, _, row = name.partition("-")
        if prefix != "seen" or not row.isascii() or not row.isdecimal():
            continue
        try:
            seen = _SEEN.validate_json(text)
        except ValidationError as error:
            raise Refused(gettext("the form cannot be read; load the page again")) from error
        found.append((int(row), {key: it for key, it in seen.items() if _is_column(key)}))
    return found


def _is_column(key: str) -> bool:
    return key == _OUT or (key.isascii() and key.isdecimal())


def _in_line(text: str | bool) -> str:
    return str(text).replace("\r", "").replace("\n", "").strip()


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
    outcome: ChangeEffect


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
    """The rows before they are written: a page of them, for a browser without scripts too."""
    uuid, place = row.uuid, request.place
    context = await around(service, who, row)
    columns: Sequence[ReviewColumn] = context["columns"]
    headers = {each.id: each.header for each in columns}
    size = min(_ROWS, max(_FEWEST, _CELLS // max(len(columns), 1)))
    version, found = await service.review.rows(
        who, uuid, wanted=place.wanted, column=place.column, page=place.page, size=size
    )
    last = max((found.total - 1) // size, 0)
    if place.page > last:
        place = replace(place, page=last)
        version, found = await service.review.rows(
            who, uuid, wanted=place.wanted, column=place.column, page=last, size=size
        )
    fields: Mapping[str, str] = context["fields"]
    remembered = await service.review.remembered(who, uuid)
    state = context["state"] | {"filter": place.wanted, "column": place.column}
    return context | {
        "version": version,
        "state": state,
        "form_key": uuid4().hex,
        "grid": [_grid_row(each, columns, request.kept) for each in found.items],
        "elsewhere": _elsewhere(request.kept, found.items, headers),
        "pending": bool(request.kept.operations()),
        "place": place,
        "last": last,
        "notations": NOTATIONS,
        "remembered": [
            (
                operation_words(each.operation, headers, fields),
                OPERATION.dump_json(each.operation).decode(),
                each.why,
            )
            for each in remembered
        ],
        "proposed": request.proposed and _proposed(request.proposed, headers, fields),
    }


async def around(service: SpreadsheetService, who: Identity, row: SpreadsheetRow) -> dict[str, Any]:
    """What stands around the rows: figures, columns and the newest changes."""
    overview = await service.review.overview(who, row.uuid)
    operations = await service.review.operations(who, row.uuid, size=_CHANGES)
    fields = {each.name: each.title for each in await service.fields(who, row.uuid)}
    headers = {each.id: each.header for each in overview.columns}
    return {
        "version": overview.version,
        "review": overview,
        "columns": overview.columns,
        "fields": fields,
        "missing": [fields.get(name, name) for name in overview.missing],
        "changes": [
            Change(
                each.version,
                operation_words(each.operation, headers, fields),
                each.by,
                each.at,
                each.changed_cells,
                each.undone_by is None,
                each.undone_by is not None,
            )
            for each in operations.items
        ],
        "more_changes": operations.total > _CHANGES,
        "state": _state(overview, operations.items, who),
    }


def _state(
    overview: ReviewOverview, changes: Sequence[ReviewOperationView], who: Identity
) -> dict[str, Any]:
    """What the script of the grid knows of a review."""
    return {
        "version": overview.version,
        "may_write": who.may_write and overview.is_open,
        "columns": [
            {
                "id": each.id,
                "header": each.header,
                "title": localised(each.title or ""),
                "problems": each.problems,
            }
            for each in overview.columns
        ],
        "counts": {
            RowFilter.ALL: overview.rows,
            RowFilter.PROBLEMS: overview.wrong,
            RowFilter.EXCLUDED: overview.excluded,
        },
        # The newest last, as they are taken back.
        "own": [
            each.version
            for each in reversed(changes)
            if each.by == who.subject
            and each.undone_by is None
            and not isinstance(each.operation, UndoOperation)
        ],
    }


async def proposed(
    service: SpreadsheetService, who: Identity, uuid: str, change: Proposed
) -> dict[str, Any]:
    """A change that was looked at, in words and figures."""
    overview = await service.review.overview(who, uuid)
    fields = {each.name: each.title for each in await service.fields(who, uuid)}
    return _proposed(change, {each.id: each.header for each in overview.columns}, fields)


def _elsewhere(
    kept: Corrected, rows: Sequence[ReviewRow], headers: Mapping[int, str]
) -> Sequence[str]:
    """Corrections of a form that was not taken, of rows that another page shows by now."""
    here = {row.line for row in rows}
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
    return {
        "words": operation_words(proposed.operation, headers, fields),
        "effect": proposed.outcome,
        # A column that fills another field keeps its cells.
        "does_something": proposed.outcome.changed_cells or isinstance(proposed.operation, Move),
        "json": OPERATION.dump_json(proposed.operation).decode(),
        "headers": headers,
    }


def hint_of(cell: ReviewCell) -> str:
    """What stood in the file, and who corrected it; "" if it stands there still."""
    if cell.corrected_by is None:
        return ""
    before = f"“{cell.original}”" if cell.original else gettext("blank")
    return gettext("Was %(before)s; corrected by %(who)s", before=before, who=cell.corrected_by)


def _grid_row(row: ReviewRow, columns: Sequence[ReviewColumn], kept: Corrected) -> GridRow:
    number = row.line
    cells: list[GridCell] = []
    for cell, column in zip(row.cells, columns, strict=True):
        seen = cell.value or ""
        text = kept.cells.get((number, cell.column), seen)
        cells.append(
            GridCell(
                cell.column,
                column.title or column.header,
                text,
                seen,
                cell.problem or "",
                cell.remark or "",
                hint_of(cell),
                len(seen) >= min(LONGEST, 500),
            )
        )
    is_out = row.excluded is not None
    selected = number in kept.left_out or (is_out and number not in kept.taken_in)
    seen = {str(cell.column): cell.seen for cell in cells if not cell.is_long}
    return GridRow(
        number,
        row.problems,
        row.excluded or "",
        selected,
        cells,
        json.dumps({**seen, "out": is_out}, ensure_ascii=False),
    )
