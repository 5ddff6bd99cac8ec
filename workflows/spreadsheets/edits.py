"""Corrections of a review, applied to the rows of a file.

Each operation sees the rows as those before it have left them. Operations that were taken back are
left out; those after them stay, and apply to what is there then.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from workflows.shared import notations
from workflows.shared.cells import Cell, cell_text, is_filled
from workflows.shared.errors import RuleViolation
from workflows.spreadsheets.mappings import COLUMNS, ColumnMapping, MappingStatus
from workflows.spreadsheets.reviews import (
    Constant,
    Exclude,
    Join,
    Move,
    Notation,
    NotationName,
    Replace,
    ReviewOperation,
    SetCells,
    Split,
    UndoOperation,
    active_operations,
)

_DATES: Final = MappingProxyType(
    {
        NotationName.DAY_FIRST: notations.Notation.DAY_FIRST,
        NotationName.MONTH_FIRST: notations.Notation.MONTH_FIRST,
    }
)
_NUMBERS: Final = MappingProxyType(
    {
        NotationName.DECIMAL_COMMA: notations.Notation.COMMA,
        NotationName.DECIMAL_POINT: notations.Notation.POINT,
    }
)
_NOTATIONS: Final = MappingProxyType({**_DATES, **_NUMBERS})
_SHORT_TIME: Final = re.compile(r"([0-9]{1,3}):([0-5]?[0-9])", re.ASCII)
_HEADER_CHARACTERS: Final = 200

Edit = Callable[[int, list[Cell]], None]
"""Changes the cells of the row with this number, in place."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A cell that operations have changed.

    Attributes:
        column: Id of its column.
        before: As it stood in the file.
        after: As it is now.
        by: Who changed it last.
        at: When.
    """

    column: int
    before: Cell
    after: Cell
    by: str
    at: datetime


class Edits:
    """What a review makes of the rows of a file.

    Args:
        columns: Columns of the file, as they were confirmed.
        operations: Every applied operation, by version.
        titles: Field to what people call it, for columns that operations make.

    Attributes:
        columns: Columns of the file and those that operations have made.
        excluded: Row that is left out, and who decided it.
        reasons: Row that is left out, and why, as far as that is said.
        made: Version to ids of the columns that its operation has made.
        steps: The operations that change cells, and how, in their order.
        notations: Id of each column whose dates or numbers are to be read so: what cannot be stays
            as it is, and is not to be read in another way.

    Raises:
        RuleViolation: An operation names a column that there is not, or makes too many.
    """

    def __init__(
        self,
        columns: Sequence[ColumnMapping],
        operations: Sequence[ReviewOperation] = (),
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._titles = titles
        self._width = 1 + max((column.index for column in columns), default=-1)
        self._known = {column.id: column for column in columns}
        self.made: dict[int, list[int]] = {}
        self.notations: dict[int, notations.Notation] = {}
        self._made = 0
        self.steps: list[tuple[ReviewOperation, Edit]] = []
        self._rows: set[int] | None = set()
        self.excluded: dict[int, str] = {}
        self.reasons: dict[int, str] = {}
        counts = {each.version for each in active_operations(operations)}
        for each in operations:
            self._take(each, counts=each.version in counts)
        self.columns: tuple[ColumnMapping, ...] = tuple(
            sorted(self._known.values(), key=lambda column: column.index)
        )
        self._total = self._width + self._made

    def __bool__(self) -> bool:
        return bool(self.steps or self.excluded)

    def cells(self, row: int, cells: Sequence[Cell]) -> Sequence[Cell]:
        """The cells of a row as they are now."""
        if not self.may_change(row):
            return cells
        changed = self.padded(cells)
        for _, edit in self.steps:
            edit(row, changed)
        return changed

    @property
    def edited_rows(self) -> Set[int] | None:
        """The only rows whose cells operations change; None: any."""
        return self._rows

    def may_change(self, row: int) -> bool:
        """Whether an operation may concern a row."""
        return bool(self.steps) and (self._rows is None or row in self._rows)

    def corrections(self, row: int, cells: Sequence[Cell]) -> list[Correction]:
        """The cells of a row that are not as they stood in the file, by column."""
        before, now = self.padded(cells), self.padded(cells)
        found: dict[int, ReviewOperation] = {}
        for operation, edit in self.steps:
            earlier = list(now)
            edit(row, now)
            found |= {i: operation for i in range(self._total) if not same(earlier[i], now[i])}
        return [
            Correction(i + 1, before[i], now[i], found[i].by, found[i].at)
            for i in sorted(found)
            if not same(before[i], now[i]) and i + 1 not in self.made.get(found[i].version, ())
        ]

    def column(self, id: int) -> ColumnMapping:
        """A column of the file, or one that an operation has made.

        Raises:
            RuleViolation: There is none of this id.
        """
        if id not in self._known:
            raise RuleViolation(f"there is no column {id} in this import")
        return self._known[id]

    def padded(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of a row with a place for those of every column."""
        kept = list(cells[: self._width])
        return kept + [None] * (self._total - len(kept))

    def _take(self, each: ReviewOperation, *, counts: bool) -> None:
        """Take an operation; one that was taken back keeps the places of its columns."""
        match each.operation:
            case SetCells() as change:
                made, edit = 0, self._setting(change) if counts else None
            case Replace() as change:
                made, edit = 0, self._replacing(change) if counts else None
            case Constant(column=None) as change:
                made, edit = 1, self._filling(change) if counts else None
            case Constant() as change:
                made, edit = 0, self._filling(change) if counts else None
            case Split() as change:
                made, edit = 2, self._splitting(change) if counts else None
            case Join() as change:
                made, edit = 1, self._joining(change) if counts else None
            case Move() as change:
                made, edit = 0, None
                if counts:
                    self._move(change)
            case Notation() as change:
                made, edit = 0, self._reading(change) if counts else None
                if counts and (chosen := _NOTATIONS.get(change.notation)) is not None:
                    self.notations[change.column] = chosen
            case Exclude() as change:
                made, edit = 0, None
                if counts:
                    self._exclude(change, each.by)
            case UndoOperation():
                made, edit = 0, None
        first = self._width + self._made + 1
        self.made[each.version] = list(range(first, first + made))
        self._made += made
        if edit is None:
            return
        self.steps.append((each, edit))
        if not isinstance(each.operation, SetCells):
            self._rows = None
        elif self._rows is not None:
            self._rows |= {cell.row for cell in each.operation.cells}

    def _exclude(self, change: Exclude, by: str) -> None:
        for row in change.rows:
            if change.back:
                self.excluded.pop(row, None)
                self.reasons.pop(row, None)
            elif row not in self.excluded:
                self.excluded[row] = by
                if change.reason:
                    self.reasons[row] = change.reason

    def _setting(self, change: SetCells) -> Edit:
        wanted: dict[int, list[tuple[int, Cell]]] = {}
        for cell in change.cells:
            place = self.column(cell.column).index
            wanted.setdefault(cell.row, []).append((place, cell.value or None))

        def edit(row: int, cells: list[Cell]) -> None:
            for place, value in wanted.get(row, ()):
                cells[place] = value

        return edit

    def _replacing(self, change: Replace) -> Edit:
        place = self.column(change.column).index
        pattern = re.compile(re.escape(change.find), re.NOFLAG if change.case else re.IGNORECASE)

        def edit(row: int, cells: list[Cell]) -> None:
            cell = cells[place]
            if cell is None:
                return
            text = cell_text(cell)
            if change.whole:
                if pattern.fullmatch(text.strip()):
                    cells[place] = change.put or None
                return
            changed = pattern.sub(lambda found: change.put, text)
            if changed != text:
                cells[place] = changed or None

        return edit

    def _filling(self, change: Constant) -> Edit:
        if change.column is not None:
            place = self.column(change.column).index
        else:
            assert change.field is not None
            [place] = self._make((self._titles.get(change.field, change.field),), (change.field,))

        def edit(row: int, cells: list[Cell]) -> None:
            if not change.blanks or not is_filled(cells[place]):
                cells[place] = change.value or None

        return edit

    def _splitting(self, change: Split) -> Edit:
        source = self.column(change.column)
        first, second = self._make((f"{source.header} (1)", f"{source.header} (2)"), change.fields)
        place, separator = source.index, None if change.separator == " " else change.separator

        def edit(row: int, cells: list[Cell]) -> None:
            text = cell_text(cells[place]).strip()
            split = text.rsplit if change.last else text.split
            parts = [part.strip() for part in split(separator, 1)]
            cells[first] = parts[0] or None if parts else None
            cells[second] = parts[1] or None if len(parts) > 1 else None

        return edit

    def _joining(self, change: Join) -> Edit:
        sources = [self.column(id) for id in change.columns]
        [target] = self._make((" + ".join(each.header for each in sources),), (change.field,))
        places = [each.index for each in sources]

        def edit(row: int, cells: list[Cell]) -> None:
            texts = [cell_text(cells[place]).strip() for place in places]
            cells[target] = change.separator.join(filter(None, texts)) or None

        return edit

    def _reading(self, change: Notation) -> Edit:
        place = self.column(change.column).index
        read = reader_of(change.notation)

        def edit(row: int, cells: list[Cell]) -> None:
            cell = cells[place]
            if isinstance(cell, str) and cell.strip():
                cells[place] = read(cell)

        return edit

    def _move(self, change: Move) -> None:
        column = self.column(change.column)
        self._free((change.field,))
        self._known[column.id] = column.model_copy(
            update={"target": change.field, "status": MappingStatus.MANUAL_MATCHED}
        )

    def _free(self, fields: Collection[str]) -> None:
        """Have no column fill these fields any more."""
        for id, column in self._known.items():
            if column.target in fields:
                self._known[id] = column.model_copy(
                    update={"target": None, "status": MappingStatus.IGNORED}
                )

    def _make(self, headers: Sequence[str], fields: Sequence[str]) -> list[int]:
        """Make columns that fill these fields, which no other column fills any more; places."""
        if len(set(fields)) < len(fields):
            raise RuleViolation("both parts cannot fill the same field; choose two")
        self._free(fields)
        first = self._width + self._made
        places = list(range(first, first + len(headers)))
        if places[-1] >= COLUMNS:
            raise RuleViolation(f"an import has at most {COLUMNS} columns")
        for place, header, field in zip(places, headers, fields, strict=True):
            self._known[place + 1] = ColumnMapping(
                id=place + 1,
                index=place,
                header=header[:_HEADER_CHARACTERS],
                target=field,
                status=MappingStatus.MANUAL_MATCHED,
                confidence=1,
            )
        return places


class Comparison:
    """The rows of a file as two lists of operations leave them; what both begin with is done once.

    Args:
        before: Corrections of the one.
        after: Corrections of the other, of the same file and with all columns of `before`.
    """

    def __init__(self, before: Edits, after: Edits) -> None:
        self._before, self._after = before, after
        self._shared: list[Edit] = []
        for (one, _), (other, edit) in zip(before.steps, after.steps, strict=False):
            if one.version != other.version:
                break
            self._shared.append(edit)
        shared = len(self._shared)
        self._rests = [[edit for _, edit in each.steps[shared:]] for each in (before, after)]

    def cells(self, row: int, cells: Sequence[Cell]) -> tuple[Sequence[Cell], Sequence[Cell]]:
        """The cells of a row before and after; the same object where nothing has touched them."""
        if not (self._before.may_change(row) or self._after.may_change(row)):
            return cells, cells
        shared = self._after.padded(cells)
        for edit in self._shared:
            edit(row, shared)
        return _edited(row, shared, self._rests[0]), _edited(row, shared, self._rests[1])


def _edited(row: int, cells: list[Cell], edits: Sequence[Edit]) -> list[Cell]:
    if not edits:
        return cells
    changed = [*cells]
    for edit in edits:
        edit(row, changed)
    return changed


def same(one: Cell, other: Cell) -> bool:
    """Whether two cells are the same: 1 and True are not."""
    return type(one) is type(other) and one == other


def reader_of(name: NotationName) -> Callable[[str], Cell]:
    """Reads a text in a notation; one that cannot be read so stays as it is."""
    if name in _DATES:
        return lambda text: _date(text, _DATES[name])
    if name in _NUMBERS:
        return lambda text: _number(text, _NUMBERS[name])
    form = "{}:{}:00" if name is NotationName.HOURS_MINUTES else "0:{}:{}"

    def time(text: str) -> Cell:
        parts = _SHORT_TIME.fullmatch(text.strip())
        return form.format(parts[1], parts[2].zfill(2)) if parts else text

    return time


def _date(text: str, notation: notations.Notation) -> Cell:
    try:
        return notations.read_date(text.strip(), notation)
    except notations.Unreadable:
        return text


def _number(text: str, notation: notations.Notation) -> Cell:
    try:
        value = notations.read_number(text.strip(), notation)
    except notations.Unreadable:
        return text
    return int(value) if value == value.to_integral_value() else float(value)
