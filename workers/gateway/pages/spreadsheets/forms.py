"""Forms of the mapping pages: what was chosen, what of it is new, and what has changed meanwhile.

A choice travels as text: "" nothing yet, "-" left out, "+" created, a field's name for a column,
`id:name` of a candidate for a value. The form also carries what it showed (`seen`), so that a
person's own choices can be distinguished from changes by others since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import ValidationError

from contracts.spreadsheets import (
    CellDecision,
    ColumnDecision,
    FieldName,
    MappingStatus,
)
from workers.services.errors import Refused, TooLarge

OPEN: Final = ""
LEFT_OUT: Final = "-"
CREATE: Final = "+"
_LARGEST: Final = 1_000_000
"""Bytes of a form; one with 256 columns has about 30,000."""
_MOST_FIELDS: Final = 2_000
_FORM: Final = "application/x-www-form-urlencoded"


class Column(Protocol):
    """What a choice about a column is compared with."""

    @property
    def id(self) -> int: ...
    @property
    def header(self) -> str: ...
    @property
    def target(self) -> FieldName | None: ...
    @property
    def status(self) -> MappingStatus: ...


class Cell(Protocol):
    """What a choice about a value is compared with."""

    @property
    def id(self) -> int: ...
    @property
    def target_id(self) -> int | None: ...
    @property
    def target_name(self) -> str | None: ...
    @property
    def create(self) -> bool: ...
    @property
    def status(self) -> MappingStatus: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose for one column or value."""

    chosen: str
    seen: str
    """What the page showed."""

    @property
    def changed(self) -> bool:
        """The person chose something else than the page showed."""
        return meaning(self.chosen) != meaning(self.seen)


class Form:
    """A submitted form; the last of several values of a name counts."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def text(self, name: str, most: int = 300) -> str:
        """A value without surrounding blanks.

        Raises:
            Refused: It is longer than any that a page sends.
        """
        value = self._fields.get(name, "").strip()
        if len(value) > most:
            raise Refused(f"“{name}” is too long: at most {most} characters")
        return value

    def whole(self, name: str) -> int | None:
        """A whole number; None when it was left blank.

        Raises:
            Refused: It is not one.
        """
        value = self.text(name, 20)
        if not value:
            return None
        if not value.isascii() or not value.isdecimal():
            raise Refused(f"“{value}” is not a whole number")
        return int(value)

    def choices(self, kind: str) -> dict[int, Choice]:
        """Choices by id of column or value.

        Args:
            kind: `column` or `value`.
        """
        found: dict[int, Choice] = {}
        for name, seen in self._fields.items():
            prefix, _, key = name.partition("-")
            if prefix != f"seen_{kind}" or not key.isascii() or not key.isdecimal():
                continue
            found[int(key)] = Choice(self._fields.get(f"{kind}-{key}", seen), seen)
        return found


async def read_form(request: Request) -> Form:
    """Read a submitted form, of bounded size.

    Raises:
        Refused: It is not a form.
        TooLarge: It is larger than any of ours.
    """
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise Refused("this page takes forms only")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise TooLarge("the form is too large")
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError as error:
        raise Refused("the form cannot be read") from error
    return Form(dict(pairs))


def shown_column(column: Column) -> str:
    """The choice for what a column means now."""
    return LEFT_OUT if column.status is MappingStatus.IGNORED else column.target or OPEN


def shown_cell(cell: Cell) -> str:
    """The choice for what a value means now."""
    if cell.status is MappingStatus.IGNORED:
        return LEFT_OUT
    if cell.create:
        return CREATE
    if cell.target_id is not None:
        return f"{cell.target_id}:{cell.target_name or ''}"
    return OPEN


def column_decisions(
    columns: Sequence[Column], choices: Mapping[int, Choice]
) -> Sequence[ColumnDecision]:
    """What the choices change in the columns.

    Raises:
        Refused: A choice is none that a page offers.
    """
    decisions: list[ColumnDecision] = []
    for column in columns:
        choice = choices.get(column.id)
        if choice is None or not choice.changed:
            continue
        if choice.chosen in (OPEN, shown_column(column)):
            continue
        if choice.chosen == LEFT_OUT:
            decisions.append(ColumnDecision(id=column.id, ignore=True))
        else:
            decisions.append(_column_decision(column.id, choice.chosen))
    return decisions


def taken_away(columns: Sequence[Column], decisions: Sequence[ColumnDecision]) -> tuple[str, ...]:
    """Headers of columns that lose their field to another one without an explicit choice."""
    decided = {decision.id for decision in decisions}
    wanted = {decision.target for decision in decisions if decision.target}
    return tuple(
        column.header for column in columns if column.target in wanted and column.id not in decided
    )


def cell_decisions(cells: Sequence[Cell], choices: Mapping[int, Choice]) -> Sequence[CellDecision]:
    """What the choices change in the values.

    Raises:
        Refused: A choice is none that a page offers.
    """
    decisions: list[CellDecision] = []
    for cell in cells:
        choice = choices.get(cell.id)
        if choice is None or not choice.changed:
            continue
        if meaning(choice.chosen) in (OPEN, meaning(shown_cell(cell))):
            continue
        decisions.append(_cell_decision(cell.id, meaning(choice.chosen)))
    return decisions


def chosen_name(choice: str) -> str:
    """Name of the candidate that was chosen."""
    return choice.partition(":")[2]


def _column_decision(id: int, field: str) -> ColumnDecision:
    try:
        return ColumnDecision(id=id, target=field)
    except ValidationError as error:
        raise _unknown_choice() from error


def _cell_decision(id: int, chosen: str) -> CellDecision:
    if chosen == LEFT_OUT:
        return CellDecision(id=id, ignore=True)
    if chosen == CREATE:
        return CellDecision(id=id, create=True)
    try:
        return CellDecision(id=id, target_id=int(chosen))
    except ValueError as error:
        raise _unknown_choice() from error


def _unknown_choice() -> Refused:
    return Refused("a choice is not one of those on the page; load it again")


def meaning(choice: str) -> str:
    """A choice without the name that only people need."""
    return choice.partition(":")[0]
