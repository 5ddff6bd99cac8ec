"""The process that reads one XLS or ODS file: `python -m adapters.files.tables.legacy_child`.

Arguments: memory limit in bytes, processor time in seconds, format, 'sheets' or 'rows', path, sheet
name or ''. Writes frames to standard output, each a pair in JSON:
('sheets', [date1904, (name, hidden), ...]),
('sheet', [name, date1904, is hidden, hidden columns, hidden rows, *merges]),
('rows', [(line, cells), ...]), ('unreadable', message), ('fault', a `Fault` in JSON) or
('end', None).
"""

import io
import json
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

from adapters.files import landlock, limits, sandbox
from adapters.files.faults import ended_by
from adapters.files.tables.marks import Marks, TooManyMarks
from workflows.shared.cells import shown_number

_CELLS_IN_FRAME = 5_000
_EXACT = 10**15
_ENCODER = json.JSONEncoder(check_circular=False, separators=(",", ":"))
_ODS = "ods"


class _Refused(Exception):
    """The file can be read, but not as it was asked for."""


def main() -> None:
    """Read the file that the arguments name."""
    memory, seconds, kind, task, name, wanted = sys.argv[1:]
    path = Path(name)
    sandbox.limit(int(memory), int(seconds), limits.LEGACY_SECONDS, file=0)
    landlock.confine((*landlock.system_folders(), path), ())
    # The library is native code: it is loaded within the limits.
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    from adapters.files.compound import DamagedCompound, with_own_workbook

    try:
        if kind == _ODS:
            _check_cells(path)
        renamed = None if kind == _ODS else with_own_workbook(path)
        workbook = (
            CalamineWorkbook.from_path(name)
            if renamed is None
            else CalamineWorkbook.from_filelike(io.BytesIO(renamed))
        )
        date1904 = kind != _ODS and _has_1904_days(path)
        if task == "sheets":
            sheets = workbook.sheets_metadata[: limits.SHEETS]
            found = [(sheet.name, sheet.name in _hidden(workbook)) for sheet in sheets]
            _send("sheets", [date1904, *found])
        else:
            _read(workbook, wanted, path, kind, date1904)
    except PasswordError:
        _send("unreadable", "the file is protected by a password; remove it and send again")
    except (_Refused, TooManyMarks) as error:
        _send("unreadable", str(error))
    except (CalamineError, DamagedCompound) as error:
        _send(
            "unreadable", f"the file is damaged or cut off ({error}); save it as XLSX and send it"
        )
    except SystemExit:
        # `_send` has ended this.
        raise
    except BaseException as error:
        # The library ends with exceptions that are no `Exception`.
        code, fault = ended_by(error)
        _send("fault", fault.decode())
        sys.exit(code)
    else:
        _send("end", None)


def _check_cells(path: Path) -> None:
    """Refuse an ODS file whose sheets repeat few cells into many, before they are cells."""
    from adapters.files.tables import marks as ods_marks
    from adapters.ports.errors import UnreadableDocument

    try:
        ods_marks.check_cells(path)
    except UnreadableDocument as error:
        raise _Refused(str(error)) from error


def _read(workbook: "CalamineWorkbook", wanted: str, path: Path, kind: str, date1904: bool) -> None:
    sheet = _choose(workbook, wanted)
    if sheet.width > limits.COLUMNS:
        raise _Refused(
            f"the sheet is {sheet.width:,} columns wide; at most {limits.COLUMNS:,} are read"
        )
    marks = _marks(workbook, sheet, path, kind)
    merges = _merges(sheet) if kind != _ODS else marks.merges
    hidden = (sheet.name in _hidden(workbook), sorted(marks.hidden), sorted(marks.hidden_rows))
    _send("sheet", [sheet.name, date1904, *hidden, *merges])
    frame: list[tuple[int, list[Any]]] = []
    size = 0
    for line, cells in _marked(_rows(sheet), marks):
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


def _has_1904_days(path: Path) -> bool:
    from adapters.files.tables.marks import has_1904_days

    return has_1904_days(path)


def _marks(workbook: "CalamineWorkbook", sheet: "CalamineSheet", path: Path, kind: str) -> Marks:
    # They take a while to load, and no file needs both.
    if kind != _ODS:
        from adapters.files.tables import marks as xls_marks

        names = [each.name for each in workbook.sheets_metadata]
        return xls_marks.read_xls_marks(path, names.index(sheet.name))
    from adapters.files.tables import marks as ods_marks
    from adapters.ports.errors import UnreadableDocument

    try:
        return ods_marks.read_ods_marks(path, sheet.name)
    except UnreadableDocument as error:
        raise _Refused(str(error)) from error


def _marked(rows: Iterator[tuple[int, list[Any]]], marks: Marks) -> Iterator[tuple[int, list[Any]]]:
    """Rows with what their cells show, where the library drops it."""
    by_line: dict[int, dict[int, Any]] = {}
    for (line, column), shown in marks.cells.items():
        by_line.setdefault(line, {})[column] = shown
    waiting = sorted(by_line, reverse=True)
    for line, cells in rows:
        while waiting and waiting[-1] < line:
            above = waiting.pop()
            yield above, _with_marks([], by_line[above])
        if waiting and waiting[-1] == line:
            cells = _with_marks(cells, by_line[waiting.pop()])
        yield line, cells
    for line in reversed(waiting):
        yield line, _with_marks([], by_line[line])


def _with_marks(cells: list[Any], shown: dict[int, Any]) -> list[Any]:
    for column, value in shown.items():
        cells.extend([None] * (column + 1 - len(cells)))
        cells[column] = _plain(value)
    return cells


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
    """A value that JSON takes: dates as arrays, times as text, integral floats as int, lengths of
    time as pairs."""
    if isinstance(value, float):
        value = shown_number(value)
        return int(value) if value.is_integer() and -_EXACT < value < _EXACT else value
    if isinstance(value, datetime):
        return (*value.timetuple()[:6], value.microsecond)
    if isinstance(value, date):
        return value.timetuple()[:3]
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        return (f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}", "")
    return None if value == "" else value


def _send(kind: str, content: Any) -> None:
    body = _ENCODER.encode((kind, content)).encode()
    try:
        sandbox.write_frame(sys.stdout.buffer, body)
    except BrokenPipeError:
        # The reader has seen enough; the interpreter must not complain about the pipe either.
        sys.stdout = None
        sys.exit(0)


if __name__ == "__main__":
    main()
