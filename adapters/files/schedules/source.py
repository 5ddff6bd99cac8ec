"""Primavera files, opened by what they hold: XER and PMXML.

XER, the tab-separated export of Primavera P6: one header, tables of rows, one end mark.

    ERMHDR  version  date ...
    %T      table
    %F      field names
    %R      values
    %E

Lines end where the exporter's text fields had line breaks, too: a line without a mark continues
the row before it, and two DEL characters are a line break within a text. Row values that are
missing at the end are empty. Tables come in no fixed order.

PMXML, Primavera's XML export (root element `APIBusinessObjects`).

Objects that several projects share stand below the root, the others within their `Project`. An
element of `BaselineProject` describes an older state and is not read. The file is parsed once,
as a stream; its records wait in temporary files, so that they can be read in the order needed.
"""

import codecs
import marshal
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, NoReturn
from xml.parsers import expat

from adapters.files.encodings import FALLBACK, find_encoding
from adapters.files.schedules import records
from adapters.files.schedules.records import (
    TEXT_LENGTH,
    Record,
)
from adapters.ports.errors import UnreadableDocument

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
    records.ProjectRecord: (
        "PROJECT",
        "proj_id proj_short_name - - last_recalc_date plan_start_date scd_end_date plan_end_date",
    ),
    records.CalendarRecord: (
        "CALENDAR",
        "clndr_id proj_id clndr_name clndr_type day_hr_cnt clndr_data",
    ),
    records.WbsRecord: (
        "PROJWBS",
        "wbs_id proj_id parent_wbs_id wbs_short_name wbs_name seq_num proj_node_flag",
    ),
    records.UnitRecord: ("UMEASURE", "unit_id unit_abbrev unit_name"),
    records.ResourceRecord: ("RSRC", "rsrc_id rsrc_short_name rsrc_name rsrc_type unit_id"),
    records.RoleRecord: ("ROLES", "role_id role_short_name"),
    records.ActivityRecord: (
        "TASK",
        "task_id proj_id task_code task_name task_type status_code wbs_id clndr_id"
        " target_drtn_hr_cnt remain_drtn_hr_cnt - complete_pct_type phys_complete_pct"
        " act_work_qty act_equip_qty remain_work_qty remain_equip_qty"
        " target_start_date target_end_date act_start_date act_end_date"
        " early_start_date early_end_date late_start_date late_end_date"
        " total_float_hr_cnt cstr_type cstr_date",
    ),
    records.RelationshipRecord: (
        "TASKPRED",
        "pred_task_id task_id pred_proj_id proj_id pred_type lag_hr_cnt",
    ),
    records.AssignmentRecord: (
        "TASKRSRC",
        "proj_id task_id rsrc_id role_id target_qty act_reg_qty act_ot_qty remain_qty"
        " target_cost act_reg_cost act_ot_cost remain_cost",
    ),
    records.CodeTypeRecord: ("ACTVTYPE", "actv_code_type_id actv_code_type"),
    records.CodeValueRecord: ("ACTVCODE", "actv_code_id short_name actv_code_name"),
    records.ActivityCodeRecord: ("TASKACTV", "proj_id task_id actv_code_type_id actv_code_id"),
    records.UdfTypeRecord: (
        "UDFTYPE",
        "udf_type_id udf_type_label logical_data_type table_name",
    ),
    records.UdfValueRecord: (
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


DEPTH = 64
"""Nesting of elements; Primavera's own exports stay below 10."""
TOKEN_BYTES = 8 << 20
"""A tag or text that the parser has to hold in one piece."""
FILE_BYTES = 8 << 30
PARTS = 10_000
"""Codes and user-defined fields of one object."""
GATHERED = 4 << 20
"""Characters of the working times of one calendar."""
_XML_BLOCK = 1 << 16
_BATCH = 500


class _Element(NamedTuple):
    """How the children of an element fill a record."""

    kind: type[NamedTuple]
    places: dict[str, int]
    """Child element to place in the record."""
    spare: dict[str, int]
    """Children that count only when the ones above are empty."""
    gathered: Mapping[str, str] = MappingProxyType({})
    """Children, at any depth, of which the last field keeps all, each behind its mark."""


def _element(kind: type[NamedTuple], fields: str) -> _Element:
    """Describe an element; `fields` are `place=Child` or `place=Child|SpareChild`."""
    places: dict[str, int] = {}
    spare: dict[str, int] = {}
    for field in fields.split():
        name, _, children = field.partition("=")
        child, _, other = children.partition("|")
        places[child] = kind._fields.index(name)
        if other:
            spare[other] = kind._fields.index(name)
    return _Element(kind, places, spare)


_CALENDAR = _element(
    records.CalendarRecord, "id=ObjectId name=Name type=Type hours_per_day=HoursPerDay"
)._replace(gathered={"DayOfWeek": "\nday ", "Date": "\ndate ", "Start": " ", "Finish": "-"})
_CONTAINERS = frozenset(
    {
        *("StandardWorkWeek", "StandardWorkHours", "WorkTime"),
        *("HolidayOrExceptions", "HolidayOrException"),
    }
)
"""Elements of a calendar that hold nothing but others."""
_PROJECT = _element(
    records.ProjectRecord,
    "id=ObjectId code=Id name=Name wbs=WBSObjectId data_date=DataDate"
    " planned_start=PlannedStartDate finish=ScheduledFinishDate|FinishDate"
    " must_finish=MustFinishByDate",
)
_ELEMENTS = {
    "Calendar": _CALENDAR,
    "WBS": _element(
        records.WbsRecord,
        "id=ObjectId parent=ParentObjectId code=Code name=Name sequence=SequenceNumber",
    ),
    "UnitOfMeasure": _element(
        records.UnitRecord, "id=ObjectId abbreviation=Abbreviation name=Name"
    ),
    "Resource": _element(
        records.ResourceRecord,
        "id=ObjectId code=Id name=Name type=ResourceType unit=UnitOfMeasureObjectId",
    ),
    "Role": _element(records.RoleRecord, "id=ObjectId code=Id"),
    "Activity": _element(
        records.ActivityRecord,
        "id=ObjectId code=Id name=Name type=Type status=Status wbs=WBSObjectId"
        " calendar=CalendarObjectId original_duration=PlannedDuration"
        " remaining_duration=RemainingDuration fraction_complete=PercentComplete"
        " planned_start=PlannedStartDate planned_finish=PlannedFinishDate"
        " actual_start=ActualStartDate actual_finish=ActualFinishDate"
        " early_start=EarlyStartDate|RemainingEarlyStartDate"
        " early_finish=EarlyFinishDate|RemainingEarlyFinishDate"
        " late_start=LateStartDate|RemainingLateStartDate"
        " late_finish=LateFinishDate|RemainingLateFinishDate total_float=TotalFloat"
        " constraint_type=PrimaryConstraintType constraint_date=PrimaryConstraintDate",
    ),
    "Relationship": _element(
        records.RelationshipRecord,
        "predecessor=PredecessorActivityObjectId successor=SuccessorActivityObjectId"
        " predecessor_project=PredecessorProjectObjectId"
        " successor_project=SuccessorProjectObjectId type=Type lag=Lag",
    ),
    "ResourceAssignment": _element(
        records.AssignmentRecord,
        "activity=ActivityObjectId resource=ResourceObjectId role=RoleObjectId"
        " planned_units=PlannedUnits actual_units=ActualUnits remaining_units=RemainingUnits"
        " planned_cost=PlannedCost actual_cost=ActualCost remaining_cost=RemainingCost",
    ),
    "ActivityCodeType": _element(records.CodeTypeRecord, "id=ObjectId name=Name"),
    "ActivityCode": _element(
        records.CodeValueRecord, "id=ObjectId value=CodeValue description=Description"
    ),
    "UDFType": _element(
        records.UdfTypeRecord, "id=ObjectId name=Title data_type=DataType subject=SubjectArea"
    ),
}
_CODE = _element(records.ActivityCodeRecord, "code_type=TypeObjectId code_value=ValueObjectId")
_UDF = _element(
    records.UdfValueRecord,
    "type=TypeObjectId text=TextValue|IndicatorValue number=DoubleValue|CostValue"
    " date=StartDateValue|FinishDateValue",
)
_UDF.spare.update(IntegerValue=_UDF.places["DoubleValue"], CodeValue=_UDF.places["TextValue"])
_UDF_OWNERS = frozenset({"Activity", "WBS", "Resource", "Project"})


@contextmanager
def open_pmxml(path: Path) -> Generator["PmxmlRecords"]:
    """Open a PMXML file and read its records into temporary files beside it.

    Raises:
        UnreadableDocument: Not well-formed, hostile, or another kind of XML.
    """
    with ExitStack() as stack:
        spools = _Spools(stack, path.parent)
        reader = _Reader(spools)
        with path.open("rb") as file:
            reader.parse(file)
        spools.flush()
        yield PmxmlRecords(spools, reader.project_ids)


class PmxmlRecords:
    """Records of a PMXML file; `Records`."""

    format = "pmxml"
    guessed_encoding: str | None = None

    def __init__(self, spools: "_Spools", project_ids: list[str]) -> None:
        self._spools = spools
        self._project_ids = project_ids

    def rows(self, kind: type[Record]) -> Iterator[Record]:
        """Records of one kind in the order of the file."""
        place = kind._fields.index("project") if "project" in kind._fields else None
        for owner, values in self._spools.read(kind):
            project = self._project_ids[owner] if owner is not None else ""
            if place is not None:
                values[place] = project
            if kind is records.RelationshipRecord:
                values[3] = values[3] or project
                values[4] = values[4] or project
            yield kind._make(values)


class _Spools:
    """A temporary file for each kind of record."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._waiting: dict[str, list[tuple[int | None, list[Any]]]] = {}

    def write(self, kind: type[NamedTuple], owner: int | None, values: list[Any]) -> None:
        """Put a record aside; `owner` is the number of its project."""
        batch = self._waiting.setdefault(kind.__name__, [])
        batch.append((owner, values))
        if len(batch) >= _BATCH:
            self._flush(kind.__name__)

    def flush(self) -> None:
        """Write down what waits."""
        for name in self._waiting:
            self._flush(name)

    def read(self, kind: type[NamedTuple]) -> Iterator[tuple[int | None, list[Any]]]:
        """Records of a kind in the order in which they came."""
        file = self._files.get(kind.__name__)
        position = 0
        while file is not None:
            # Other readers of this spool may have moved on in between.
            file.seek(position)
            size = int.from_bytes(file.read(4), "big")
            if not size:
                return
            # marshal is safe here: this process wrote the file, which has no name.
            batch = marshal.loads(file.read(size))  # noqa: S302
            position = file.tell()
            yield from batch

    def _flush(self, name: str) -> None:
        batch = self._waiting[name]
        if not batch:
            return
        if name not in self._files:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            self._files[name] = self._stack.enter_context(file)
        data = marshal.dumps(batch)
        self._files[name].write(len(data).to_bytes(4, "big") + data)
        batch.clear()


class _Open:
    """An element that is being read into a record."""

    __slots__ = ("depth", "element", "name", "parts", "values")

    def __init__(self, name: str, element: _Element, depth: int, line: int) -> None:
        self.name = name
        self.element = element
        self.depth = depth
        self.values: list[Any] = [line, *[""] * (len(element.kind._fields) - 1)]
        self.parts: list[tuple[_Element, list[Any]]] = []
        """Its codes and fields: they wait for its id, which may come later."""


class _Reader:
    """Turns the stream of elements into records.

    From the outside: the root, perhaps a project, an object, perhaps one of its codes or fields,
    and a value. What is none of these is skipped with all it holds.
    """

    def __init__(self, spools: _Spools) -> None:
        self.project_ids: list[str] = []
        """Object id of each project by its number; known when the project ends."""
        self._spools = spools
        self._depth = 0
        self._skipped_at = 0
        self._open: list[_Open] = []
        self._child = ""
        """Name of the value that is being read; '' between values."""
        self._text = ""
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _XML_BLOCK
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        self._parser.EntityDeclHandler = _refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def parse(self, file: IO[bytes]) -> None:
        """Read the whole file.

        Raises:
            UnreadableDocument: Not well-formed, hostile, or another kind of XML.
        """
        fed = 0
        while block := file.read(_XML_BLOCK):
            fed += len(block)
            if fed > FILE_BYTES:
                raise UnreadableDocument(f"the file is larger than {FILE_BYTES >> 30} GB")
            self._feed(block, False)
            if fed - max(self._parser.CurrentByteIndex, 0) > TOKEN_BYTES:
                raise UnreadableDocument(f"the XML holds a tag of more than {TOKEN_BYTES:,} bytes")
        self._feed(b"", True)

    def _feed(self, data: bytes, final: bool) -> None:
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            raise UnreadableDocument(f"the XML is damaged or was cut off: {error}") from error
        except (LookupError, ValueError) as error:  # what an odd declared encoding raises
            raise UnreadableDocument(f"the XML declares an invalid encoding: {error}") from error

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise UnreadableDocument(f"the XML nests elements more than {DEPTH} deep")
        if self._skipped_at:
            return
        name = name[name.find(":") + 1 :]
        if self._depth == 1:
            _check_root(name, attributes)
            return
        parent = self._open[-1] if self._open else None
        element = None if self._child else self._describe(name, parent)
        if element is not None:
            line = self._parser.CurrentLineNumber
            self._open.append(_Open(name, element, self._depth, line))
            if element is _PROJECT:
                self.project_ids.append("")
        elif parent is not None and not self._child and _is_value(name, parent.element):
            self._child, self._text = name, ""
        elif parent is not None and parent.element is _CALENDAR and name in _CONTAINERS:
            pass
        else:
            self._skipped_at = self._depth

    def _describe(self, name: str, parent: _Open | None) -> _Element | None:
        """What a child of `parent` is read into, when it is more than a value."""
        if parent is None:
            return _PROJECT if name == "Project" else _ELEMENTS.get(name)
        if name == "Code":
            return _CODE if parent.name == "Activity" else None
        if name == "UDF":
            return _UDF if parent.name in _UDF_OWNERS else None
        return _ELEMENTS.get(name) if parent.element is _PROJECT else None

    def _characters(self, data: str) -> None:
        # One character more than a text may have shows the reader that it was longer.
        if self._child and len(self._text) <= TEXT_LENGTH:
            self._text = (self._text + data)[: TEXT_LENGTH + 1]

    def _end(self, _name: str) -> None:
        if self._skipped_at:
            if self._depth == self._skipped_at:
                self._skipped_at = 0
        elif self._child:
            self._take_value(self._open[-1])
        elif self._open and self._open[-1].depth == self._depth:
            self._close(self._open.pop())
        self._depth -= 1

    def _take_value(self, parent: _Open) -> None:
        child, text = self._child, self._text.strip()
        self._child = ""
        if not text:
            return
        if mark := parent.element.gathered.get(child):
            parent.values[-1] += mark + text
            if len(parent.values[-1]) > GATHERED:
                raise UnreadableDocument("a calendar of the file never ends")
            return
        place = parent.element.places.get(child)
        if place is not None:
            parent.values[place] = text
        else:
            place = parent.element.spare[child]
            parent.values[place] = parent.values[place] or text

    def _close(self, closed: _Open) -> None:
        owner = len(self.project_ids) - 1 if self._in_project(closed) else None
        if closed.element is _CODE or closed.element is _UDF:
            parts = self._open[-1].parts
            if len(parts) >= PARTS:
                raise UnreadableDocument(f"an object has more than {PARTS:,} codes and fields")
            parts.append((closed.element, closed.values))
            return
        own_id = closed.values[closed.element.kind._fields.index("id")] if closed.parts else ""
        for element, values in closed.parts:
            owned_by = "activity" if element is _CODE else "owner"
            values[element.kind._fields.index(owned_by)] = own_id
            self._spools.write(element.kind, owner, values)
        if closed.element is _PROJECT:
            self.project_ids[-1] = closed.values[_PROJECT.places["ObjectId"]]
        self._spools.write(closed.element.kind, owner, closed.values)

    def _in_project(self, closed: _Open) -> bool:
        return closed.element is _PROJECT or bool(self._open and self._open[0].element is _PROJECT)


def _is_value(name: str, element: _Element) -> bool:
    return name in element.places or name in element.spare or name in element.gathered


def _check_root(name: str, attributes: dict[str, str]) -> None:
    if name == "APIBusinessObjects":
        return
    advice = "export the schedule from Primavera as XML or XER"
    if "schemas.microsoft.com/project" in " ".join(attributes.values()):
        raise UnreadableDocument(f"the file is Microsoft Project XML; {advice}")
    raise UnreadableDocument(
        f"the file is XML, but not Primavera XML (root {name[:80]!r}); {advice}"
    )


def _refuse_doctype(*_: object) -> NoReturn:
    raise UnreadableDocument(
        "the XML declares a document type, which no Primavera export does; export it again"
    )
