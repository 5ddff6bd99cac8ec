"""Rows as lines of text that databases take as they are; values are made where one is asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Any, Final, overload

from domain.tabular.columns import NULL
from domain.tabular.fields import DECIMAL_PLACES, ColumnKind

_STEP: Final = Decimal(1).scaleb(-DECIMAL_PLACES)
_VALUES: Final[Mapping[ColumnKind, Callable[[str], Any]]] = MappingProxyType(
    {
        ColumnKind.TEXT: str,
        ColumnKind.CODE: str,
        ColumnKind.CHOICE: str,
        ColumnKind.DECIMAL: Decimal,
        ColumnKind.INTEGER: int,
        ColumnKind.DATE: date.fromisoformat,
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
