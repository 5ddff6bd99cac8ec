"""The process that reads one XLS or ODS file: `python -m adapters.files.tables.legacy_child`.

Arguments: memory limit in bytes, processor time in seconds, 'sheets', 'rows' or 'ods-rows', path,
sheet name or ''. Writes frames to standard output, each a marshalled pair:
('sheets', [(name, hidden), ...]), ('sheet', [name, *merges]), ('rows', [(line, cells), ...]),
('unreadable', message) or ('end', None).
"""

import marshal
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

from adapters.files import limits, sandbox

_CELLS_IN_FRAME = 5_000
_EXACT = 10**15
_ODS_ROWS = "ods-rows"

_Texts = dict[tuple[int, int], str]
"""What cells show, by line and column."""


class _Refused(Exception):
    """The file can be read, but not as it was asked for."""


def main() -> None:
    """Read the file that the arguments name."""
    memory, seconds, task, path, wanted = sys.argv[1:]
    sandbox.limit(int(memory), int(seconds))
    # The library is native code: it is loaded within the limits.
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        workbook = CalamineWorkbook.from_path(path)
        if task == "sheets":
            sheets = workbook.sheets_metadata[: limits.SHEETS]
            _send("sheets", [(sheet.name, sheet.name in _hidden(workbook)) for sheet in sheets])
        else:
            _read(workbook, wanted, Path(path) if task == _ODS_ROWS else None)
    except PasswordError:
        _send("unreadable", "the file is protected by a password; remove it and send again")
    except _Refused as error:
        _send("unreadable", str(error))
    except (CalamineError, ValueError, OverflowError, MemoryError) as error:
        _send(
            "unreadable", f"the file is damaged or cut off ({error}); save it as XLSX and send it"
        )
    else:
        _send("end", None)


def _read(workbook: "CalamineWorkbook", wanted: str, ods: Path | None) -> None:
    sheet = _choose(workbook, wanted)
    if sheet.width > limits.COLUMNS:
        raise _Refused(
            f"the sheet is {sheet.width:,} columns wide; at most {limits.COLUMNS:,} are read"
        )
    texts, merges = ({}, _merges(sheet)) if ods is None else _ods_marks(ods, sheet.name)
    _send("sheet", [sheet.name, *merges])
    frame: list[tuple[int, list[Any]]] = []
    size = 0
    for line, cells in _marked(_rows(sheet), texts):
        frame.append((line, cells))
        size += len(cells)
        if size >= _CELLS_IN_FRAME:
            _send("rows", frame)
            frame = []
            size = 0
    _send("rows", frame)


def _choose(workbook: "CalamineWorkbook", wanted: str) -> "CalamineSheet":
    names = workbook.sheet_names
    if not names:
        raise _Refused("the workbook has no sheet")
    if wanted:
        for name in names:
            if name.casefold() == wanted.strip().casefold():
                return workbook.get_sheet_by_name(name)
        listed = ", ".join(repr(name) for name in names[:20])
        raise _Refused(f"the workbook has no sheet {wanted!r}; it has {listed}")
    visible_first = sorted(names, key=_hidden(workbook).__contains__)
    sheets = (workbook.get_sheet_by_name(name) for name in visible_first)
    filled = (sheet for sheet in sheets if sheet.height)
    return next(filled, None) or workbook.get_sheet_by_name(visible_first[0])


def _hidden(workbook: "CalamineWorkbook") -> set[str]:
    from python_calamine import SheetVisibleEnum

    sheets = workbook.sheets_metadata
    return {sheet.name for sheet in sheets if sheet.visible is not SheetVisibleEnum.Visible}


def _merges(sheet: "CalamineSheet") -> list[tuple[int, int, int, int]]:
    """First and last line, from 1, first and last column, from 0."""
    ranges = (sheet.merged_cell_ranges or [])[: limits.MERGES]
    return [(top + 1, bottom + 1, left, right) for (top, left), (bottom, right) in ranges]


def _ods_marks(path: Path, sheet: str) -> tuple[_Texts, list[tuple[int, int, int, int]]]:
    # It takes long to load, and XLS files do not need it.
    from adapters.files.tables.ods_marks import read_marks
    from adapters.ports import UnreadableDocument

    try:
        marks = read_marks(path, sheet)
    except UnreadableDocument as error:
        raise _Refused(str(error)) from error
    return marks.texts, marks.merges


def _marked(
    rows: Iterator[tuple[int, list[Any]]], texts: _Texts
) -> Iterator[tuple[int, list[Any]]]:
    """Rows with what their cells show, where the library drops it."""
    by_line: dict[int, dict[int, str]] = {}
    for (line, column), text in texts.items():
        by_line.setdefault(line, {})[column] = text
    for line, cells in rows:
        for column, text in by_line.get(line, {}).items():
            cells.extend([None] * (column + 1 - len(cells)))
            cells[column] = text
        yield line, cells


def _rows(sheet: "CalamineSheet") -> Iterator[tuple[int, list[Any]]]:
    if sheet.start is None:
        return
    # The library skips the columns before the first that is used, but not the rows.
    left: list[Any] = [None] * sheet.start[1]
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [_plain(value) for value in row]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield line, left + cells


def _plain(value: Any) -> Any:
    """A value that `marshal` takes: dates as tuples, times as text, integral floats as int."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and -_EXACT < value < _EXACT else value
    if isinstance(value, datetime):
        return (*value.timetuple()[:6], value.microsecond)
    if isinstance(value, date):
        return value.timetuple()[:3]
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return None if value == "" else value


def _send(kind: str, content: Any) -> None:
    body = marshal.dumps((kind, content))
    try:
        sandbox.write_frame(sys.stdout.buffer, body)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain about the pipe either.
        sys.stdout = None
        sys.exit(0)


if __name__ == "__main__":
    main()
