"""Forms of the mapping pages: what was chosen, what of it is new, and what has changed meanwhile.

A choice travels as text: "" nothing yet, "-" left out, "+" created, a field's name for a column,
`id:name` of a candidate for a value. The form also carries what it showed (`seen`), so that a
person's own choices can be distinguished from changes by others since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import ValidationError

from contracts.spreadsheets import (
    CellDecision,
    ColumnDecision,
    FieldName,
    MappingStatus,
)
from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import gettext
from workers.services.errors import Refused

OPEN: Final = ""
LEFT_OUT: Final = "-"
CREATE: Final = "+"
KEPT: Final = "+"
"""Of a row that is imported although it looks like none."""


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


def choices_of(form: Form, kind: str) -> dict[int, Choice]:
    """Choices of a form by id of column or value.

    Args:
        form: As it was sent.
        kind: `column` or `value`.
    """
    found: dict[int, Choice] = {}
    for name, seen in form.fields.items():
        prefix, _, key = name.partition("-")
        if prefix != f"seen_{kind}" or not key.isascii() or not key.isdecimal():
            continue
        found[int(key)] = Choice(form.fields.get(f"{kind}-{key}", seen), seen)
    return found


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
    return Refused(gettext("a choice is not one of those on the page; load it again"))


def meaning(choice: str) -> str:
    """A choice without the name that only people need."""
    return choice.partition(":")[0]
