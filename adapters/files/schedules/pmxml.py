"""PMXML, Primavera's XML export (root element `APIBusinessObjects`).

Objects that several projects share stand below the root, the others within their `Project`. An
element of `BaselineProject` describes an older state and is not read. The file is parsed once,
as a stream; its records wait in temporary files, so that they can be read in the order needed.
"""

import marshal
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, NoReturn
from xml.parsers import expat

from adapters.files.schedules import records as kinds
from adapters.files.schedules.records import Record
from adapters.files.schedules.values import TEXT_LENGTH
from adapters.ports import UnreadableDocument

DEPTH = 64
"""Nesting of elements; Primavera's own exports stay below 10."""
TOKEN_BYTES = 8 << 20
"""A tag or text that the parser has to hold in one piece."""
FILE_BYTES = 8 << 30
PARTS = 10_000
"""Codes and user-defined fields of one object."""
GATHERED = 4 << 20
"""Characters of the working times of one calendar."""
_BLOCK = 1 << 16
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
    kinds.CalendarRecord, "id=ObjectId name=Name type=Type hours_per_day=HoursPerDay"
)._replace(gathered={"DayOfWeek": "\nday ", "Date": "\ndate ", "Start": " ", "Finish": "-"})
_CONTAINERS = frozenset(
    {
        *("StandardWorkWeek", "StandardWorkHours", "WorkTime"),
        *("HolidayOrExceptions", "HolidayOrException"),
    }
)
"""Elements of a calendar that hold nothing but others."""
_PROJECT = _element(
    kinds.ProjectRecord,
    "id=ObjectId code=Id name=Name wbs=WBSObjectId data_date=DataDate"
    " planned_start=PlannedStartDate finish=ScheduledFinishDate|FinishDate"
    " must_finish=MustFinishByDate",
)
_ELEMENTS = {
    "Calendar": _CALENDAR,
    "WBS": _element(
        kinds.WbsRecord,
        "id=ObjectId parent=ParentObjectId code=Code name=Name sequence=SequenceNumber",
    ),
    "UnitOfMeasure": _element(kinds.UnitRecord, "id=ObjectId abbreviation=Abbreviation name=Name"),
    "Resource": _element(
        kinds.ResourceRecord,
        "id=ObjectId code=Id name=Name type=ResourceType unit=UnitOfMeasureObjectId",
    ),
    "Role": _element(kinds.RoleRecord, "id=ObjectId code=Id"),
    "Activity": _element(
        kinds.ActivityRecord,
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
        kinds.RelationshipRecord,
        "predecessor=PredecessorActivityObjectId successor=SuccessorActivityObjectId"
        " predecessor_project=PredecessorProjectObjectId"
        " successor_project=SuccessorProjectObjectId type=Type lag=Lag",
    ),
    "ResourceAssignment": _element(
        kinds.AssignmentRecord,
        "activity=ActivityObjectId resource=ResourceObjectId role=RoleObjectId"
        " planned_units=PlannedUnits actual_units=ActualUnits remaining_units=RemainingUnits"
        " planned_cost=PlannedCost actual_cost=ActualCost remaining_cost=RemainingCost",
    ),
    "ActivityCodeType": _element(kinds.CodeTypeRecord, "id=ObjectId name=Name"),
    "ActivityCode": _element(
        kinds.CodeValueRecord, "id=ObjectId value=CodeValue description=Description"
    ),
    "UDFType": _element(
        kinds.UdfTypeRecord, "id=ObjectId name=Title data_type=DataType subject=SubjectArea"
    ),
}
_CODE = _element(kinds.ActivityCodeRecord, "code_type=TypeObjectId code_value=ValueObjectId")
_UDF = _element(
    kinds.UdfValueRecord,
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
            if kind is kinds.RelationshipRecord:
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
        self._parser.buffer_size = _BLOCK
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
        while block := file.read(_BLOCK):
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
