"""XER, the tab-separated export of Primavera P6: one header, tables of rows, one end mark.

    ERMHDR  version  date ...
    %T      table
    %F      field names
    %R      values
    %E

Lines end where the exporter's text fields had line breaks, too: a line without a mark continues
the row before it, and two DEL characters are a line break within a text. Row values that are
missing at the end are empty. Tables come in no fixed order.
"""

import codecs
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, NamedTuple

from adapters.files.encodings import FALLBACK, find_encoding
from adapters.files.schedules import records as kinds
from adapters.files.schedules.records import Record
from adapters.ports import UnreadableDocument

LINE_BYTES = 4 << 20
"""A line longer than this is not a schedule; calendars, the longest, have some 100 KB."""
ROW_BYTES = 8 << 20
"""A row with its continuation lines."""
ROW_LINES = 10_000
FIELDS = 1_000
"""Fields of a table."""
TABLES = 10_000
"""Tables of a file."""
_BLOCK = 1 << 20
_MARKS = frozenset({b"%T", b"%F", b"%R", b"%E"})
_AFTER_MARK = frozenset({b"\t", b"\r", b"\n", b""})
_LINE_BREAK = "\x7f\x7f"

_ODD_CODECS = frozenset({"unicode-escape", "raw-unicode-escape", "punycode", "idna", "undefined"})

_TABLES: dict[type[NamedTuple], tuple[str, str]] = {
    kinds.ProjectRecord: (
        "PROJECT",
        "proj_id proj_short_name - - last_recalc_date plan_start_date scd_end_date plan_end_date",
    ),
    kinds.CalendarRecord: (
        "CALENDAR",
        "clndr_id proj_id clndr_name clndr_type day_hr_cnt clndr_data",
    ),
    kinds.WbsRecord: (
        "PROJWBS",
        "wbs_id proj_id parent_wbs_id wbs_short_name wbs_name seq_num proj_node_flag",
    ),
    kinds.UnitRecord: ("UMEASURE", "unit_id unit_abbrev unit_name"),
    kinds.ResourceRecord: ("RSRC", "rsrc_id rsrc_short_name rsrc_name rsrc_type unit_id"),
    kinds.RoleRecord: ("ROLES", "role_id role_short_name"),
    kinds.ActivityRecord: (
        "TASK",
        "task_id proj_id task_code task_name task_type status_code wbs_id clndr_id"
        " target_drtn_hr_cnt remain_drtn_hr_cnt - complete_pct_type phys_complete_pct"
        " act_work_qty act_equip_qty remain_work_qty remain_equip_qty"
        " target_start_date target_end_date act_start_date act_end_date"
        " early_start_date early_end_date late_start_date late_end_date"
        " total_float_hr_cnt cstr_type cstr_date",
    ),
    kinds.RelationshipRecord: (
        "TASKPRED",
        "pred_task_id task_id pred_proj_id proj_id pred_type lag_hr_cnt",
    ),
    kinds.AssignmentRecord: (
        "TASKRSRC",
        "proj_id task_id rsrc_id role_id target_qty act_reg_qty act_ot_qty remain_qty"
        " target_cost act_reg_cost act_ot_cost remain_cost",
    ),
    kinds.CodeTypeRecord: ("ACTVTYPE", "actv_code_type_id actv_code_type"),
    kinds.CodeValueRecord: ("ACTVCODE", "actv_code_id short_name actv_code_name"),
    kinds.ActivityCodeRecord: ("TASKACTV", "proj_id task_id actv_code_type_id actv_code_id"),
    kinds.UdfTypeRecord: (
        "UDFTYPE",
        "udf_type_id udf_type_label logical_data_type table_name",
    ),
    kinds.UdfValueRecord: (
        "UDFVALUE",
        "proj_id udf_type_id fk_id udf_text udf_number udf_date",
    ),
}
"""Table of each kind, and its fields in the order of the record; `-` where XER has none."""


class _Segment(NamedTuple):
    """A stretch of rows of one table."""

    offset: int
    """Byte at which its first row begins."""
    line: int
    """Number of that line."""
    fields: tuple[str, ...]


def xer_encoding(head: bytes) -> str | None:
    """Recognise an XER file by its first bytes.

    Returns:
        The encoding that a byte order mark or zero bytes prove; '' when nothing is proved; None
        when it is not an XER file.
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
        (b"", ""),
    ):
        if head.startswith(mark + "ERMHDR".encode(encoding or "ascii")):
            return encoding
    return None


@contextmanager
def open_xer(path: Path, encoding: str | None) -> Generator["XerRecords"]:
    """Open an XER file and find its tables.

    Args:
        path: The file; its folder takes a temporary copy when the encoding is not an extension
            of ASCII.
        encoding: Code page; when None, it is found as that of a table is.

    Raises:
        UnreadableDocument: Cut off, not in that encoding, or no XER file at all.
    """
    found = _checked_encoding(encoding or find_encoding(path) or FALLBACK)
    guessed = None if encoding or found.startswith("utf") else found
    if _extends_ascii(found):
        yield XerRecords(path, found, guessed)
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, buffering=_BLOCK) as copy:
        _transcode(path, found, copy)
        yield XerRecords(Path(copy.name), "utf-8", guessed)


class XerRecords:
    """Records of an XER file; `Records`.

    Keeps where each table begins, and reads a table again whenever it is asked for.

    Attributes:
        guessed_encoding: The code page, if neither the sender nor the file's bytes prove it.
    """

    format = "xer"

    def __init__(self, path: Path, encoding: str, guessed: str | None = None) -> None:
        self.guessed_encoding = guessed
        self._path = path
        self._encoding = encoding
        self._tables = self._index()

    def rows(self, kind: type[Record]) -> Iterator[Record]:
        """Records of one kind in the order of the file."""
        table, names = _TABLES[kind]
        for segment in self._tables.get(table, ()):
            # What the file does not have is read from the empty value after the last field.
            width = len(segment.fields)
            places = {name: place for place, name in reversed(list(enumerate(segment.fields)))}
            pick = itemgetter(*(places.get(name, width) for name in names.split()))
            for line, row in self._rows(segment):
                missing = width + 1 - len(row)
                if missing > 0:
                    row += [""] * missing
                else:
                    row[width] = ""
                yield kind._make((line, *pick(row)))

    def _rows(self, segment: _Segment) -> Iterator[tuple[int, list[str]]]:
        """Line and values of each row, continuation lines joined."""
        parts: list[bytes] = []
        begin = size = 0
        for line, raw in self._lines(segment.offset, segment.line):
            mark = _mark(raw)
            if mark is None:
                if parts:
                    parts.append(raw)
                    size += len(raw)
                    if size > ROW_BYTES or len(parts) > ROW_LINES:
                        raise UnreadableDocument(f"the row at line {begin} never ends")
                continue
            if parts:
                yield begin, self._split(parts, begin, len(segment.fields))
            if mark != b"%R":
                return
            parts, begin, size = [raw], line, len(raw)

    def _lines(self, offset: int, line: int) -> Iterator[tuple[int, bytes]]:
        with self._path.open("rb", buffering=_BLOCK) as file:
            file.seek(offset)
            for number, raw in enumerate(iter(partial(file.readline, LINE_BYTES), b""), line):
                if len(raw) >= LINE_BYTES:
                    raise UnreadableDocument(f"line {number} is longer than {LINE_BYTES:,} bytes")
                yield number, raw

    def _split(self, parts: list[bytes], line: int, width: int) -> list[str]:
        """Values without the mark; what goes beyond the fields stays in one piece."""
        data = b"\n".join([part.rstrip(b"\r\n") for part in parts])
        try:
            text = data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise UnreadableDocument(
                f"the row at line {line} is not {self._encoding}: set schedule_config.encoding to"
                " the code page of the machine that wrote the file (latin-1 reads anything)"
            ) from error
        if "\0" in text:
            raise UnreadableDocument(f"the row at line {line} holds NUL characters")
        return text.replace(_LINE_BREAK, "\n").split("\t", width + 1)[1:]

    def _index(self) -> dict[str, list[_Segment]]:
        """Find the tables, and the end mark."""
        tables: dict[str, list[_Segment]] = {}
        table, last, offset = "", b"", 0
        for line, raw in self._lines(0, 1):
            offset += len(raw)
            mark = _mark(raw)
            if mark is None:
                continue
            last = mark
            if mark == b"%T":
                table = _ascii(raw[3:])
            elif mark == b"%F" and table:
                fields = tuple(_ascii(raw[3:]).split("\t"))
                if len(fields) > FIELDS:
                    raise UnreadableDocument(f"table {table} has more than {FIELDS:,} fields")
                tables.setdefault(table, []).append(_Segment(offset, line + 1, fields))
                if len(tables) > TABLES or len(tables[table]) > TABLES:
                    raise UnreadableDocument(f"the file has more than {TABLES:,} tables")
        if last != b"%E":
            raise UnreadableDocument(
                "the file was cut off: its end mark (%E) is missing; export or upload it again"
            )
        return tables


def _mark(raw: bytes) -> bytes | None:
    """The mark that a line begins with; None for a line that continues a text."""
    mark = raw[:2]
    if mark in _MARKS and (raw[2:3] in _AFTER_MARK or (mark == b"%E" and not raw[2:].strip())):
        return mark
    return None


def _ascii(raw: bytes) -> str:
    return raw.decode("ascii", errors="replace").strip()


def _checked_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        if name not in _ODD_CODECS:
            # Python has codecs from bytes to bytes as well; trying is the only way to know.
            b"x".decode(name, errors="ignore")
            return name
    except LookupError:
        pass
    raise UnreadableDocument(f"{encoding!r} is not a text encoding; use a code page like cp1252")


def _extends_ascii(encoding: str) -> bool:
    """Whether marks, tabs and line ends are single bytes that no other character contains."""
    every = bytes(range(128))
    try:
        return every.decode(encoding) == every.decode("ascii")
    except UnicodeDecodeError:
        return False


def _transcode(path: Path, encoding: str, target: IO[bytes]) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as source:
        try:
            while block := source.read(_BLOCK):
                target.write(decoder.decode(block).encode())
            target.write(decoder.decode(b"", final=True).encode())
        except UnicodeError as error:
            raise UnreadableDocument(
                f"the file is not {encoding}, or was cut off: {error}"[:300]
            ) from error
    target.flush()
