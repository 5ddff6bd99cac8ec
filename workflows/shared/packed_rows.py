"""Rows as the text that databases take, made by columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final, overload

from workflows.shared.fields import DECIMAL_PLACES, ColumnKind

NULL: Final = "\x1f"
"""Stands for an absent value: no cell that is read by columns holds a control character."""


class NotPlain(Exception):
    """A table, or what follows of it, is to be read row by row."""


class CellForm(Enum):
    """What is made of the text of a cell."""

    TEXT = auto()
    """Nothing."""
    DECIMAL = auto()
    """The same number with six places."""
    COMMA = auto()
    """The same for a number with a decimal comma."""
    INTEGER = auto()
    """The same whole number."""
    PADDED = auto()
    """The same whole number with ten digits, so that texts sort as numbers do."""


@dataclass(frozen=True, slots=True)
class ColumnText:
    """Where the text of one column comes from.

    Attributes:
        position: Of its column in the file; None: it has none.
        form: What is made of the cells.
        changed: Cells of which something else is made, and what; few.
        constant: The text of every row, where the file has no column.
        numbered: It holds which occurrence of its key each row is.
    """

    position: int | None
    form: CellForm = CellForm.TEXT
    changed: Mapping[str, str] = field(default_factory=dict[str, str])
    constant: str = ""
    numbered: bool = False


_STEP: Final = Decimal(1).scaleb(-DECIMAL_PLACES)
_VALUES: Final[Mapping[ColumnKind, Callable[[str], Any]]] = MappingProxyType(
    {
        ColumnKind.TEXT: str,
        ColumnKind.CODE: str,
        ColumnKind.CHOICE: str,
        ColumnKind.DECIMAL: Decimal,
        ColumnKind.INTEGER: int,
        ColumnKind.DATE: date.fromisoformat,
        ColumnKind.MAIL: str,
        ColumnKind.PLACE: int,
        ColumnKind.DURATION: int,
        ColumnKind.ENTITY: str,
        ColumnKind.BOOLEAN: "True".__eq__,
        ColumnKind.TIME: time.fromisoformat,
        ColumnKind.TIMESTAMP: datetime.fromisoformat,
        ColumnKind.MONEY: Decimal,
        ColumnKind.PHONE: str,
    }
)


def text_of(value: Any) -> str:
    """The text of a value in a line: what SQLite keeps, and PostgreSQL reads as the same."""
    match value:
        case None:
            return NULL
        case Decimal():
            # Adding zero makes zero of minus zero.
            return format(value.quantize(_STEP, ROUND_HALF_UP) + 0, "f")
        case date():
            return value.isoformat()
        case _:
            return str(value)


class PackedRows(Sequence[tuple[Any, ...]]):
    """Rows of one table, valid, storable, unique by natural key and sorted by it.

    Args:
        scope: Values of the columns that all rows share, the first ones.
        kinds: What the other columns hold, those of the natural key first.
        lines: Their texts between tabs, behind them the number of the row's line; sorted.
        zero_led: Some code of a key begins with a zero.
    """

    def __init__(
        self,
        scope: tuple[str, ...],
        kinds: tuple[ColumnKind, ...],
        lines: Sequence[str],
        *,
        zero_led: bool,
    ) -> None:
        self.scope = scope
        self.lines = lines
        self.zero_led = zero_led
        self._kinds = kinds
        self._readers = [_VALUES[kind] for kind in kinds]

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> "PackedRows": ...
    def __getitem__(self, index: int | slice) -> "tuple[Any, ...] | PackedRows":
        if isinstance(index, int):
            return self._values(self.lines[index])
        return PackedRows(self.scope, self._kinds, self.lines[index], zero_led=self.zero_led)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self._values, self.lines)

    def texts(self) -> list[str | None]:
        """The texts of all rows but those of the scope, row by row, each with its line's number."""
        joined = "\t".join(self.lines)
        texts: list[Any] = joined.split("\t")
        return [None if text == NULL else text for text in texts] if NULL in joined else texts

    def _values(self, line: str) -> tuple[Any, ...]:
        texts = line.split("\t")[:-1]
        values = zip(self._readers, texts, strict=True)
        return (*self.scope, *(None if text == NULL else read(text) for read, text in values))


class PackedLines(Sequence[int]):
    """The line numbers of packed rows.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: PackedRows) -> None:
        self._lines = rows.lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, int):
            return _number_of(self._lines[index])
        return list(map(_number_of, self._lines[index]))


def _number_of(line: str) -> int:
    return int(line[line.rindex("\t") + 1 :])
