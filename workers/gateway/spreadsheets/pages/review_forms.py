"""Forms of the review: which rows they show, cells that were corrected, changes of columns."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from contracts.spreadsheets.reviews import OPERATION, CellValue, Exclude, Operation, SetCells
from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import counted, gettext
from workers.services.errors import Refused
from workers.services.spreadsheets.review_rows import RowFilter
from workers.services.spreadsheets.upload_form import problems_of

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
        try:
            if self.cells:
                values = [
                    CellValue(row=row, column=column, value=text or None)
                    for (row, column), text in self.cells.items()
                ]
                found.append(SetCells(cells=tuple(values)))
        except ValidationError as error:
            raise Refused(problems_of(error)) from None
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
    given: dict[str, Any]
    try:
        if carried := form.fields.get("operation"):
            return OPERATION.validate_json(carried)
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
            case "NOTATION":
                given = {"column": form.whole("column"), "notation": form.text("notation")}
            case _:
                given = {}
        return OPERATION.validate_python({"kind": kind, **given})
    except ValidationError as error:
        raise Refused(
            gettext("the change is incomplete: %(problems)s", problems=problems_of(error))
        ) from None


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
