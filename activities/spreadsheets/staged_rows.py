"""Staged rows: one line of JSON each, readable from any row on.

A line is `[number, cell, cell, ...]`: the row's number as the user's program shows it, then its
cells. A date is `{"d":"2024-02-29"}`, a date with time `{"t":"2024-02-29T13:45:00"}`, a formula
without a result `{"f":"=A1"}`; every other cell is what JSON makes of it, so that each comes back
as it was read.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from domain.spreadsheets.validation import SourceRow
from domain.tabular.rows import Cell, Uncalculated, is_filled

T = TypeVar("T")

_TAGGED: Final = frozenset({date, datetime, Uncalculated})
_MARKS: Final = (b'{"d":', b'{"t":', b'{"f":')
_BUFFER: Final = 1 << 20


def staged_line(number: int, cells: Sequence[Cell]) -> bytes:
    """A row as it is staged.

    Half a surrogate pair, which some encodings let through and none can write, becomes U+FFFD.
    """
    if not _TAGGED.isdisjoint(map(type, cells)):
        cells = cast("Sequence[Cell]", [_tagged(cell) for cell in cells])
    try:
        return to_json([number, *cells]) + b"\n"
    except PydanticSerializationError:
        return to_json([number, *map(_mended, cells)]) + b"\n"


def is_blank(cells: Iterable[Cell]) -> bool:
    """Whether a row holds nothing visible."""
    return not any(map(is_filled, cells))


def _tagged(cell: Cell) -> Cell | dict[str, str]:
    if isinstance(cell, datetime):
        return {"t": cell.isoformat()}
    if isinstance(cell, Uncalculated):
        return {"f": str(_mended(cell))}
    return {"d": cell.isoformat()} if isinstance(cell, date) else cell


def _mended(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    return cell.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _untagged(cell: Any) -> Cell:
    ((tag, text),) = cell.items()
    if tag == "f":
        return Uncalculated(text)
    return datetime.fromisoformat(text) if tag == "t" else date.fromisoformat(text)


class StagedRows:
    """Reads staged rows; blocking, and bounded in memory.

    To be closed; may be passed from thread to thread, one at a time.

    Attributes:
        position: Byte behind the row that was read last.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=_BUFFER)
        self.position = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, offset: int = 0) -> Iterator[SourceRow]:
        """Rows from the one that begins at byte `offset` on."""
        self._file.seek(offset)
        self.position = offset
        for line in self._file:
            row = _row(line, self.position)
            self.position += len(line)
            yield row

    def at(self, offsets: Iterable[int]) -> Iterator[SourceRow]:
        """The rows that begin at these bytes."""
        for offset in offsets:
            self._file.seek(offset)
            line = self._file.readline()
            self.position = offset + len(line)
            yield _row(line, offset)

    def pick(self, wanted: Iterable[tuple[int, T]]) -> Iterator[tuple[SourceRow, T]]:
        """Rows by number, each with what was given along; numbers rise."""
        self._file.seek(0)
        self.position = 0
        numbers = iter(wanted)
        asked = next(numbers, None)
        for line in self._file:
            number = int(line[1 : line.find(b",")])
            while asked is not None and asked[0] < number:
                asked = next(numbers, None)
            if asked is None:
                return
            begins = self.position
            self.position += len(line)
            if asked[0] == number:
                yield _row(line, begins), asked[1]


def rows_of(block: bytes) -> Iterator[SourceRow]:
    """The rows of a piece of a staged file."""
    if _holds_tags(block):
        for line in block.splitlines():
            yield _row(line, 0)
        return
    # Without tags a block is read at once; no line break stands within a line.
    lines = b",".join(block.splitlines())
    for number, *cells in cast("list[list[Any]]", from_json(b"[%b]" % lines, cache_strings="keys")):
        yield SourceRow(number, 0, cells)


def _holds_tags(lines: bytes) -> bool:
    # Quotes inside a text are escaped, so that a mark is never part of one.
    return any(mark in lines for mark in _MARKS)


def _row(line: bytes, offset: int) -> SourceRow:
    # Most texts are met once in a file: nothing is gained by looking for their like.
    number, *cells = cast("list[Any]", from_json(line, cache_strings="keys"))
    if _holds_tags(line):
        for place, cell in enumerate(cells):
            if type(cell) is dict:
                cells[place] = _untagged(cell)
    return SourceRow(number, offset, cells)
