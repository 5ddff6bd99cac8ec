"""The process that reads one XLS or ODS file: `python -m adapters.files.tables.legacy_child`.

Arguments: memory limit in bytes, processor time in seconds, 'sheets' or 'rows', path, sheet name
or ''. Writes frames to standard output, each a marshalled pair of ('sheets', names),
('rows', [(line, cells), ...]), ('unreadable', message) or ('end', None). For 'rows' the only name
is that of the sheet that is read.
"""

import marshal
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

from adapters.files import limits, sandbox

_CELLS_IN_FRAME = 5_000
_EXACT = 10**15


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
            _send("sheets", workbook.sheet_names[: limits.SHEETS])
        else:
            _read(workbook, wanted)
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


def _read(workbook: "CalamineWorkbook", wanted: str) -> None:
    sheet = _choose(workbook, wanted)
    if sheet.width > limits.COLUMNS:
        raise _Refused(
            f"the sheet is {sheet.width:,} columns wide; at most {limits.COLUMNS:,} are read"
        )
    _send("sheets", [sheet.name])
    frame: list[tuple[int, list[Any]]] = []
    size = 0
    for line, cells in _rows(sheet):
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
    sheets = (workbook.get_sheet_by_name(name) for name in names)
    return next((sheet for sheet in sheets if sheet.height), workbook.get_sheet_by_index(0))


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
