"""Columns and values of a spreadsheet, and what people decide about them."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from contracts.answers import Person
from contracts.base import Contract
from contracts.spreadsheets.states import MappingStatus, SpreadsheetState

COLUMNS: Final = 256
"""Columns of one spreadsheet that can be mapped."""
FIELDS: Final = 128
"""Fields of one import type, custom lists included."""
DECISIONS: Final = 200
"""Value decisions of one update."""
OPEN_VALUES: Final = 50
"""Open values that a run names; the rest are counted and stand in the database."""

TypeName = Annotated[str, StringConstraints(max_length=40, pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]
"""An import type: EVENT_PARTICIPANT, MEMBERSHIP, RESULT or one of your own."""
FieldName = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
"""A field of an import type: FIRST_NAME."""
Header = Annotated[str, StringConstraints(max_length=200)]
CellText = Annotated[str, StringConstraints(max_length=200)]
"""A distinct value as a person sees it."""
EntityId = Annotated[int, Field(ge=1, le=2**53)]
"""Key of a row in one of the tables that cells refer to; safe for JavaScript."""


class Alternative(Contract):
    """Something a column or a value might mean as well."""

    name: CellText
    """Field, or display name of the candidate."""
    score: float = Field(ge=0, le=1)
    id: EntityId | None = None
    """The candidate; None for a field."""


Alternatives = Annotated[tuple[Alternative, ...], Field(max_length=3)]


class FieldFacts(Contract):
    """What a run knows about one field of its import type."""

    name: FieldName
    required: bool = False
    resolver: Annotated[str, StringConstraints(max_length=40)] | None = None
    """Cells refer to rows of another table, found by the resolver of this name."""
    creates: bool = False
    """A person may have a missing candidate created."""


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
    alternatives: Alternatives = ()
    """Suggestions by likeness; they never match by themselves."""


class ColumnDecision(Contract):
    """A person's decision about one column; exactly one of the three is set."""

    id: int = Field(ge=1, le=COLUMNS)
    target: FieldName | None = None
    confirm: bool = False
    """The match is right."""
    ignore: bool = False
    """The column is left out."""


class OpenValue(Contract):
    """A value without a decision so far."""

    id: int
    field: FieldName
    value: CellText
    rows: int
    """Rows that hold it, as far as they were read."""


class CellSummary(Contract):
    """The values of a spreadsheet in figures; each of them stands in the database."""

    total: int = 0
    open: int = 0
    first_open: tuple[OpenValue, ...] = Field(default=(), max_length=OPEN_VALUES)


class CellMapping(Contract):
    """One distinct value of one field, and what it means."""

    id: int
    field: FieldName
    value: CellText
    status: MappingStatus
    target_id: EntityId | None = None
    target_name: CellText | None = None
    create: bool = False
    """A candidate of this name is created when rows are processed."""
    confidence: float = Field(default=0, ge=0, le=1)
    alternatives: Alternatives = ()
    rows: int = 0


class CellDecision(Contract):
    """A person's decision about one value; exactly one of the four is set."""

    id: int = Field(ge=1)
    target_id: EntityId | None = None
    confirm: bool = False
    """The match is right."""
    ignore: bool = False
    """The cell counts as empty."""
    create: bool = False
    """Create a candidate of this name, where the field allows it."""


class Deciding(Contract):
    """Who answers, and what they had seen when they did."""

    by: Person
    expected_version: int | None = Field(default=None, ge=0)
    """Version of the mappings that the answer is based on; None: whatever they are now."""


class ColumnDecisions(Deciding):
    """Input of `update_column_mappings`."""

    decisions: tuple[ColumnDecision, ...] = Field(min_length=1, max_length=COLUMNS)


class CellDecisions(Deciding):
    """Input of `update_cell_mappings`."""

    decisions: tuple[CellDecision, ...] = Field(min_length=1, max_length=DECISIONS)


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


class LayoutChange(Deciding):
    """Input of `change_layout`: read the file in another way, while columns are being mapped."""

    layout: Layout


class MappingsAnswer(Contract):
    """What an accepted update answers."""

    state: SpreadsheetState
    version: int
    """Version of the mappings after the update."""
    missing_fields: tuple[FieldName, ...] = Field(default=(), max_length=FIELDS)
    """Required fields that no column has."""
    cells: CellSummary = CellSummary()


class DecisionRecord(Contract):
    """One line of the trail: who decided what, and what else there was to choose from."""

    kind: Annotated[str, StringConstraints(max_length=20)]
    """`column`, `value`, `confirm`, `start`, `layout`, `reassign` or `cancel`."""
    subject: Header = ""
    """Header, or field and value."""
    decision: Header = ""
    """Field or candidate chosen, `ignored`, `confirmed`, `created`."""
    by: Person
    at: datetime
    confidence: float | None = None
    """What docflow itself would have chosen scored this much; None: it had no opinion."""
    alternatives: Alternatives = ()
