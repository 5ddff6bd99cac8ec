"""Columns and values of a spreadsheet, and what people decide about them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from workflows.shared.contracts import Contract, Person, served


class SpreadsheetState(StrEnum):
    """The life of one spreadsheet; the last four are final."""

    UPLOADED = "UPLOADED"
    COLUMN_MAPPING = "COLUMN_MAPPING"
    CELL_MAPPING = "CELL_MAPPING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"
    """Its run was ended from outside; rows that are in stay in."""


_S = SpreadsheetState

FINAL: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.TERMINATED})

NEXT: Final[Mapping[SpreadsheetState, frozenset[SpreadsheetState]]] = MappingProxyType(
    {
        # A file that turns out damaged fails wherever that shows: it cannot be mapped.
        _S.UPLOADED: frozenset({_S.COLUMN_MAPPING, _S.FAILED, _S.CANCELLED}),
        _S.COLUMN_MAPPING: frozenset({_S.CELL_MAPPING, _S.FAILED, _S.CANCELLED}),
        _S.CELL_MAPPING: frozenset({_S.PROCESSING, _S.FAILED, _S.CANCELLED}),
        _S.PROCESSING: frozenset({_S.CELL_MAPPING, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.TERMINATED: frozenset(),
    }
)
"""Every legal transition of a run; one that is terminated makes none."""


class UndoState(StrEnum):
    """Whether an import's rows were taken back."""

    RUNNING = "RUNNING"
    UNDONE = "UNDONE"
    UNDONE_PARTLY = "UNDONE_PARTLY"
    """Some rows were left alone; it may be requested again, for what is left."""
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"
    """Its run was ended from outside; it may be requested again, and resumes."""


class MappingStatus(StrEnum):
    """How far a column or a value is understood."""

    AUTO_MATCHED = "AUTO_MATCHED"
    MANUAL_MATCHED = "MANUAL_MATCHED"
    UNMATCHED = "UNMATCHED"
    """The API calls it UNRESOLVED."""
    IGNORED = "IGNORED"


class Outcome(StrEnum):
    """Outcome of a row."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"


COLUMNS: Final = 256
"""Columns of one spreadsheet that can be mapped."""
FIELDS: Final = 128
"""Fields of one import type, custom lists included."""
FIELD_TITLE: Final = 80
"""Characters of what people call a field."""
LINES_ABOVE: Final = 30
"""Rows above a header, as far down as it is looked for."""
DECISIONS: Final = 200
"""Value decisions of one update."""
RULES: Final = 20
"""Rules about values of one update."""
OPEN_VALUES: Final = 50
"""Open values that a run names; the rest are counted and stand in the database."""

CANDIDATES: Final = 30
"""Candidates of a field that a run names."""
CANDIDATE_FIELDS: Final = 5
"""Fields whose candidates a run names."""

TypeName = Annotated[
    str, StringConstraints(max_length=40, pattern=r"^([A-Z][A-Z0-9_]*|[a-z][a-z0-9_]*)$")
]
"""An import type: EVENT_PARTICIPANT, MEMBERSHIP, RESULT, or a declared one: `tools`."""
FieldName = Annotated[
    str, StringConstraints(max_length=64, pattern=r"^([A-Z][A-Z0-9_]*|[a-z][a-z0-9_]*)$")
]
"""A field of an import type: FIRST_NAME, `tool_no`."""
LineRanges = Annotated[str, StringConstraints(max_length=200, pattern=r"^[-0-9., ]*$")]
"""The first of some lines, as people read them: `5-9, 14, ...`."""
Header = Annotated[str, StringConstraints(max_length=200)]
CellText = Annotated[str, StringConstraints(max_length=200)]
"""A distinct value as a person sees it."""
GROUNDS: Final = 80
"""Characters of what speaks for a suggestion."""
Grounds = Annotated[str, StringConstraints(max_length=GROUNDS)]
EntityId = Annotated[int, Field(ge=1, le=2**53)]
"""Key of a row in one of the tables that cells refer to; safe for JavaScript."""
QuestionKind = Annotated[str, StringConstraints(max_length=40, pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]
"""What a question is about: MAIL_MISSING."""


class Alternative(Contract):
    """Something a column or a value might mean as well."""

    name: Annotated[
        CellText, served("Field, or display name of the candidate", "EVENT_CATEGORY_NAME")
    ]
    score: Annotated[float, served("How likely it is meant, from 0 to 1", 0.96)] = Field(ge=0, le=1)
    id: Annotated[EntityId | None, served("The candidate; null: a field is meant", 43)] = None
    why: Annotated[Grounds, served("What speaks for it, in words", "left out before")] = ""


Alternatives = Annotated[tuple[Alternative, ...], Field(max_length=3)]


class FieldMetadata(Contract):
    """What a run knows about one field of its import type."""

    name: FieldName
    required: bool = False
    resolver: Annotated[str, StringConstraints(max_length=40)] | None = None
    """Cells refer to rows of another table, found by the resolver of this name."""
    creates: bool = False
    """A person may have a missing candidate created."""
    title: Annotated[str, StringConstraints(max_length=FIELD_TITLE)] = ""
    """As people call it; "" in runs of earlier releases."""
    either: (
        Annotated[str, StringConstraints(max_length=20, pattern=r"^[A-Z][A-Z0-9_]{0,19}$")] | None
    ) = None
    """A file with a column for this other field can do without."""


class ColumnMapping(Contract):
    """One column, and what it means."""

    id: int = Field(ge=1, le=COLUMNS)
    """`index` + 1: stays the same as long as the layout does."""
    index: int = Field(ge=0, lt=16_384)
    """Place in the file's rows, from 0."""
    header: Header
    target: FieldName | None = None
    status: MappingStatus = MappingStatus.UNMATCHED
    confidence: float = Field(default=0, ge=0, le=1)
    why: Grounds = ""
    """Why it matched by itself, or was left out, where its header does not show it."""
    alternatives: Alternatives = ()
    """Suggestions; they never match by themselves."""
    matched: FieldName | None = None
    """What docflow had matched, before a decision about this column or another one."""
    matched_confidence: float = Field(default=0, ge=0, le=1)


class ColumnDecision(Contract):
    """A person's decision about one column; exactly one of the four is set."""

    id: Annotated[int, served("Number of the column", 4)] = Field(ge=1, le=COLUMNS)
    target: Annotated[
        FieldName | None, served("Field that the column fills", "EVENT_CATEGORY_NAME")
    ] = None
    confirm: Annotated[bool, served("The match is right", True)] = False
    ignore: Annotated[bool, served("The column is ignored", True)] = False
    reset: Annotated[
        bool, served("The decision is taken back: the column is as docflow matched it", False)
    ] = False


class OpenValue(Contract):
    """A value without a decision so far."""

    id: Annotated[int, served("Number of it, as answers and requests name it", 4)]
    field: Annotated[FieldName, served("Its field", "EVENT_CATEGORY_NAME")]
    value: Annotated[CellText, served("As it stands in the file", "Oldies")]
    rows: Annotated[int, served("Rows that hold it, as far as they were read", 12)]


class Candidate(Contract):
    """Something that the values of a field may mean."""

    id: Annotated[EntityId, served("Number of it, as answers name it", 43)]
    name: Annotated[CellText, served("As people call it", "Senior (18+)")]


class FieldCandidates(Contract):
    """What the open values of a field may mean."""

    field: FieldName
    total: int = 0
    first: tuple[Candidate, ...] = Field(default=(), max_length=CANDIDATES)
    """By name."""


class CellSummary(Contract):
    """The values of a spreadsheet in figures; each of them stands in the database."""

    total: int = 0
    open: int = 0
    first_open: tuple[OpenValue, ...] = Field(default=(), max_length=OPEN_VALUES)
    candidates: tuple[FieldCandidates, ...] = Field(default=(), max_length=CANDIDATE_FIELDS)
    """Of the fields of `first_open`, as values were collected; an answer about values has none."""


class CandidateLists(Contract):
    """Result of the `candidates` query."""

    fields: tuple[FieldCandidates, ...] = Field(default=(), max_length=CANDIDATE_FIELDS)


class ReviewCounts(Contract):
    """The rows of a review in figures."""

    rows: int = 0
    wrong: int = 0
    """Rows with a problem; excluded ones have none."""
    excluded: int = 0
    checked: int = -1
    """Version for which all rows were checked against each other and against people."""


class CellMapping(Contract):
    """One distinct value of one field, and what it means."""

    id: Annotated[int, served("Number of it, as answers and requests name it", 4)]
    field: Annotated[FieldName, served("Its field", "EVENT_CATEGORY_NAME")]
    value: Annotated[CellText, served("As it stands in the file", "Oldies")]
    status: MappingStatus
    target_id: Annotated[EntityId | None, served("Row that is meant; null: none", 43)] = None
    target_name: Annotated[
        CellText | None,
        served("Name of the row that is meant; null: none", "Masters (40+)"),
    ] = None
    create: Annotated[bool, served("A row of this name is made when rows are processed", False)] = (
        False
    )
    confidence: Annotated[float, served("How sure the match is, from 0 to 1", 0.95)] = Field(
        default=0, ge=0, le=1
    )
    alternatives: Alternatives = ()
    rows: Annotated[int, served("Rows of the file that hold it", 12)] = 0
    question: Annotated[
        QuestionKind | None,
        served("Kind of a question about a person, which have one answer; null: none", "BIRTHDATE"),
    ] = None
    reason: Annotated[
        CellText | None,
        served("Why a person is asked; null: no question is open", "the birthdate differs"),
    ] = None


class CellDecision(Contract):
    """A person's decision about one value; exactly one of the five is set."""

    id: Annotated[int, served("Number of the value", 4)] = Field(ge=1)
    target_id: Annotated[EntityId | None, served("Row that is meant", 43)] = None
    confirm: Annotated[
        bool, served("The match is right; about a person: it is the first alternative", True)
    ] = False
    ignore: Annotated[
        bool, served("The cell counts as empty; about a person: the row is skipped", True)
    ] = False
    create: Annotated[
        bool,
        served("A row of this name is made, if the field allows it; or it is another person", True),
    ] = False
    reset: Annotated[
        bool, served("The decision is taken back: the value is as docflow found it", False)
    ] = False
    for_all: Annotated[
        bool, served("The answer holds for every open question of this kind", False)
    ] = False


class CellRule(Contract):
    """One answer for every value that matches; exactly one of the five is set."""

    field: Annotated[
        FieldName | None,
        served(
            "Field whose values are meant; null: every field, without questions about people. "
            "To create rows or to choose one, name a field.",
            "EVENT_CATEGORY_NAME",
        ),
    ] = None
    text: Annotated[
        CellText, served("Part of the value; case, accents and punctuation do not count", "junior")
    ] = ""
    status: Annotated[
        MappingStatus | None, served("What is decided about the values so far", "UNRESOLVED")
    ] = MappingStatus.UNMATCHED
    """None: whatever it is."""
    question: Annotated[
        QuestionKind | None, served("Of questions about people: this kind only", "MAIL_MISSING")
    ] = None
    min_score: Annotated[
        float,
        served("With `confirm`: values whose match or first alternative scores this at least", 0.9),
    ] = Field(default=0, ge=0, le=1)
    target_id: Annotated[EntityId | None, served("Row that all mean", 43)] = None
    confirm: Annotated[
        bool, served("The match is right; without a match, the first alternative is right", True)
    ] = False
    ignore: Annotated[bool, served("They count as empty", False)] = False
    create: Annotated[bool, served("A row is made for each", False)] = False
    reset: Annotated[bool, served("Decisions are taken back", False)] = False


class Deciding(Contract):
    """Who answers, and what they had seen when they did."""

    by: Person
    expected_version: int | None = Field(default=None, ge=0)
    """Version of the mappings that the answer is based on; None: whatever they are now."""


class ColumnDecisions(Deciding):
    """Input of `update_column_mappings`."""

    decisions: tuple[ColumnDecision, ...] = Field(min_length=1, max_length=COLUMNS)


class CellDecisions(Deciding):
    """Input of `update_cell_mappings`: decisions come first, then rules, in their order."""

    decisions: tuple[CellDecision, ...] = Field(default=(), max_length=DECISIONS)
    rules: tuple[CellRule, ...] = Field(default=(), max_length=RULES)


class Layout(Contract):
    """How a file is read; None: found out."""

    sheet: Annotated[str, StringConstraints(max_length=100)] | None = None
    encoding: (
        Annotated[
            str, StringConstraints(max_length=32, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,31}$")
        ]
        | None
    ) = None
    delimiter: Annotated[str, StringConstraints(min_length=1, max_length=1)] | None = None
    header_line: int | None = Field(default=None, ge=1, le=1_048_576)
    """Line of the header row as the user's program shows it, from 1."""
    no_header: bool = False
    """There is no header row: columns are called by their letters."""


class LayoutChange(Deciding):
    """Input of `change_layout`: read the file in another way, while columns are being mapped."""

    layout: Layout


class HiddenParts(Contract):
    """What of a file is read although the program of its owner does not show it."""

    rows: int = 0
    """Rows, as far as they are known: all of them once the file is staged."""
    lines: LineRanges = ""
    """Their lines."""
    columns: tuple[Annotated[int, Field(ge=1, le=COLUMNS)], ...] = Field(
        default=(), max_length=COLUMNS
    )
    """Ids of hidden columns that matched a field."""
    sheet: bool = False
    """The sheet itself is hidden: no other one holds anything, or it was chosen."""


class MappingsAnswer(Contract):
    """What an accepted update answers."""

    state: SpreadsheetState
    version: int
    """Version of the mappings after the update."""
    missing_fields: tuple[FieldName, ...] = Field(default=(), max_length=FIELDS)
    """Required fields that no column has."""
    cells: CellSummary = CellSummary()
    left_out_columns: tuple[Header, ...] = Field(default=(), max_length=COLUMNS)
    """Headers of columns that fill no field."""
    left_out_sheets: tuple[Header, ...] = Field(default=(), max_length=50)
    """Further sheets of the file that hold something and are not read."""
    left_out_lines: tuple[int, ...] = Field(default=(), max_length=LINES_ABOVE)
    """Lines of another table above the header, which are not read."""
    skipped_rows: int = 0
    """Rows that are no people, as far as the file was read; a person may keep them."""
    hidden: HiddenParts = HiddenParts()
    hidden_columns: tuple[Header, ...] = Field(default=(), max_length=COLUMNS)
    """Headers of hidden columns that fill a field."""


class DecisionRecord(Contract):
    """One line of the trail: who decided what, and what else there was to choose from."""

    kind: Annotated[
        str,
        StringConstraints(max_length=20),
        served("`column`, `value`, `confirm`, `start`, `layout`, `reassign`, `cancel`", "column"),
    ]
    subject: Annotated[
        Header, served("Header, or field and value", "EVENT_CATEGORY_NAME: Oldies")
    ] = ""
    decision: Annotated[
        Header,
        served("Field or candidate chosen, `ignored`, `confirmed`, `created`", "Masters (40+)"),
    ] = ""
    by: Annotated[Person, served("Who decided", "anna@example.org")]
    at: Annotated[datetime, served("When", "2026-01-03T10:02:00Z")]
    confidence: Annotated[
        float | None, served("How sure docflow was of its own choice; null: it had none", 0.95)
    ] = None
    alternatives: Alternatives = ()
