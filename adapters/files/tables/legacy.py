"""XLS and ODS, read in a process of its own whose memory and time are limited.

The library that reads them builds whole sheets in memory and can be made to abort its process;
neither may harm a worker.
"""

import json
import os
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import IO, Any, cast

from adapters.files import limits, sandbox
from adapters.files.failures import Bounds, Wording
from adapters.files.tables.formats import TableFormat
from adapters.ports.documents import Book, Row, Table
from adapters.ports.errors import PortError, UnreadableDocument
from workflows.shared.cells import Cell, Length, Merge, SheetInfo, Signed, Uncalculated

_CHILD = "adapters.files.tables.legacy_child"
_MOST_FRAME_BYTES = 64 * limits.MB


@contextmanager
def open_legacy(path: Path, kind: TableFormat, sheet: str | None = None) -> Generator[Table]:
    """Open one sheet of an XLS or ODS file.

    Args:
        path: The file.
        kind: What it holds.
        sheet: Sheet name; when absent the first sheet that holds anything, a hidden one only
            where no visible one does.

    Raises:
        UnreadableDocument: The file is damaged or hostile, too large, or has no such sheet.
    """
    with _child(path, kind, "rows", sheet or "") as frames:
        name, date1904, *marks = next(frames)
        table = Table(
            kind.value, name, None, lambda: _rows(frames, marks, table), date1904=date1904
        )
        yield table


def open_legacy_book(path: Path, kind: TableFormat) -> Book:
    """An XLS or ODS file with its sheets, each read by a process of its own.

    Raises:
        UnreadableDocument: The file is damaged or hostile, or too large.
    """

    def table(sheet: str) -> Table:
        found = Table(kind.value, sheet, None, lambda: rows(found), date1904=date1904)
        return found

    def rows(found: Table) -> Iterator[Row]:
        with _child(path, kind, "rows", found.sheet or "") as frames:
            _, _, *marks = next(frames)
            yield from _rows(frames, marks, found)

    sheets, date1904 = _sheets(path, kind)
    return Book(sheets, table)


def legacy_sheets(path: Path, kind: TableFormat) -> list[SheetInfo]:
    """The sheets of an XLS or ODS file in its order.

    Raises:
        UnreadableDocument: The file is damaged or hostile, or too large.
    """
    sheets, _ = _sheets(path, kind)
    return sheets


def _sheets(path: Path, kind: TableFormat) -> tuple[list[SheetInfo], bool]:
    """The sheets, and whether day numbers count from 1904."""
    with _child(path, kind, "sheets") as frames:
        date1904, *sheets = next(frames)
        return [SheetInfo(*each) for each in sheets], date1904


@contextmanager
def _child(
    path: Path, kind: TableFormat, task: str, sheet: str = ""
) -> Generator[Iterator[list[Any]]]:
    size = path.stat().st_size
    if size > limits.LEGACY_FILE_BYTES:
        raise UnreadableDocument(
            f"the {kind.value.upper()} file has {size:,} bytes; at most"
            f" {limits.LEGACY_FILE_BYTES:,} are read of this format: save it as XLSX"
        )
    limit = [str(limits.LEGACY_MEMORY_BYTES), str(limits.LEGACY_CPU_SECONDS)]
    child = sandbox.start(_CHILD, *limit, kind.value, task, str(path.absolute()), sheet)
    assert child.stdout is not None
    try:
        yield _frames(child, child.stdout, kind)
    finally:
        sandbox.stop(child)


def _rows(frames: Iterator[list[Any]], marks: list[Any], table: Table) -> Iterator[Row]:
    table.is_hidden, hidden, hidden_rows, *merges = marks
    table.hidden_columns.update(hidden)
    table.merges.extend(Merge(*each) for each in merges)
    waiting = hidden_rows[::-1]
    for frame in frames:
        for line, cells in frame:
            while waiting and waiting[-1][1] < line:
                waiting.pop()
            if waiting and waiting[-1][0] <= line:
                table.hidden_rows.append(line)
            yield line, [_cell(value) for value in cells]


def _cell(value: Any) -> Cell:
    """Dates cross the pipe as arrays, formulas without a result as arrays of one text, numbers with
    a sign as pairs, and lengths of time as pairs of a text and a blank."""
    if not isinstance(value, list):
        return value
    parts = cast("list[Any]", value)
    if len(parts) == 1:
        return Uncalculated(parts[0])
    if len(parts) == 2:
        return Length(parts[0]) if isinstance(parts[0], str) else Signed(*parts)
    return datetime(*parts) if len(parts) > 3 else date(*parts)  # type: ignore[arg-type]


def _frames(
    child: subprocess.Popen[bytes], pipe: IO[bytes], kind: TableFormat
) -> Iterator[list[Any]]:
    """Frames of the child: names of sheets, then rows, then the end."""
    fault = ""
    try:
        while body := sandbox.read_frame(pipe, _MOST_FRAME_BYTES):
            tag, content = _frame(body, kind)
            if tag == "end":
                return
            if tag == "unreadable":
                raise UnreadableDocument(content)
            if tag == "fault":
                fault = str(content)
            else:
                yield content
    except sandbox.FrameTooLong:
        raise UnreadableDocument(
            f"some rows of the {kind.value.upper()} file hold more than"
            f" {_MOST_FRAME_BYTES:,} bytes; save it as XLSX and send that"
        ) from None
    raise _failure(child.wait(), fault, kind)


def _frame(body: bytes, kind: TableFormat) -> tuple[str, Any]:
    """One frame; a file that has taken over the child must not reach this process by it.

    Raises:
        UnreadableDocument: It is none.
    """
    try:
        tag, content = json.loads(body)
    except (ValueError, RecursionError):
        raise _failure(os.EX_PROTOCOL, "", kind) from None
    return str(tag), content


def _failure(code: int, fault: str, kind: TableFormat) -> PortError:
    bounds = Bounds(
        memory_bytes=limits.LEGACY_MEMORY_BYTES,
        cpu_seconds=limits.LEGACY_CPU_SECONDS,
        seconds=limits.LEGACY_SECONDS,
    )
    advice = "save it as XLSX and send that"
    words = Wording(noun=f"{kind.value.upper()} file", when_slow=advice, when_damaged=advice)
    return words.failure(code, fault.encode(), bounds)
