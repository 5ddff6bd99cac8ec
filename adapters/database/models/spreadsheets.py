"""What the store remembers about spreadsheets and reviews, and people.

People, what they take part in, and the tables that cells of their spreadsheets refer to.

Every row has an id of its own that is never assigned twice, so that it differs from that of a later
row with the same natural key; the natural key is a unique constraint.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    case,
    cast,
    func,
    literal,
    null,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import (
    UtcDateTime,
    decimal_column,
    key_column,
    metadata,
    text_column,
)
from adapters.database.models.runs import completed, counted, follow, linked, state_of
from workflows.shared.runs import RunState
from workflows.spreadsheets.mappings import FINAL, SpreadsheetState, UndoState
from workflows.spreadsheets.runs import RowCounts, undo_id


def _own_id() -> Column[Any]:
    return Column("id", BigInteger, primary_key=True)


def _organisation() -> Column[Any]:
    return Column("organisation_id", BigInteger, nullable=False)


def _spellings() -> Column[Any]:
    """JSON array of codes and other names."""
    return Column("spellings", Text, nullable=False, default="[]")


def _owner(column: str, table: str) -> Column[Any]:
    """A reference that is part of the row's identity."""
    return Column(column, BigInteger, ForeignKey(f"{table}.id"), nullable=False)


def _choice(column: str, table: str) -> Column[Any]:
    """A reference that may be absent."""
    return Column(column, BigInteger, ForeignKey(f"{table}.id"))


PERSON_LOOKUPS: Final = ("name_key", "mail_key")
"""Columns of people that follow from others."""

countries = Table(
    "countries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("alpha2", Text, nullable=False, unique=True),
    Column("alpha3", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    _spellings(),
)
"""Countries of ISO 3166-1; `id` is the numeric code. The schema comes with them."""

persons = Table(
    "persons",
    metadata,
    _own_id(),
    _organisation(),
    key_column("person_key"),
    *map(text_column, ("first_name", "last_name", "email")),
    Column("birthdate", Date),
    *map(text_column, ("gender", "phone", "street", "postcode", "city")),
    Column("country_id", Integer, ForeignKey("countries.id")),
    text_column("club"),
    *map(text_column, PERSON_LOOKUPS),
    UniqueConstraint("organisation_id", "person_key"),
    Index(None, "organisation_id", "name_key"),
    Index(None, "organisation_id", "mail_key"),
)
"""People of an organisation. `name_key` and `mail_key` are what they are looked up by; they follow
from the other columns, and are NULL in a row that another program wrote."""

events = Table(
    "events",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    Column("starts_on", Date),
    Index(None, "organisation_id"),
)

event_categories = Table(
    "event_categories",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    Column("name", Text, nullable=False),
    _spellings(),
    UniqueConstraint("event_id", "name"),
)

event_participants = Table(
    "event_participants",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    _owner("person_id", "persons"),
    _choice("category_id", "event_categories"),
    *map(text_column, ("bib", "team")),
    Column("registered_on", Date),
    text_column("notes"),
    UniqueConstraint("event_id", "person_id"),
    Index(None, "person_id"),
    Index(None, "event_id", "bib"),
)

membership_periods = Table(
    "membership_periods",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    Column("starts_on", Date),
    Column("ends_on", Date),
    Index(None, "organisation_id"),
)

membership_types = Table(
    "membership_types",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    _spellings(),
    UniqueConstraint("organisation_id", "name"),
)

memberships = Table(
    "memberships",
    metadata,
    _own_id(),
    _owner("membership_period_id", "membership_periods"),
    _owner("person_id", "persons"),
    _choice("membership_type_id", "membership_types"),
    text_column("member_no"),
    Column("joined_on", Date),
    Column("left_on", Date),
    decimal_column("fee"),
    text_column("notes"),
    UniqueConstraint("membership_period_id", "person_id"),
    Index(None, "person_id"),
)

races = Table(
    "races",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    Column("name", Text, nullable=False),
    Column("starts_at", UtcDateTime),
    Index(None, "event_id"),
)

race_results = Table(
    "race_results",
    metadata,
    _own_id(),
    _owner("race_id", "races"),
    _owner("person_id", "persons"),
    _choice("category_id", "event_categories"),
    text_column("bib"),
    Column("finish_time_ms", BigInteger),
    Column("rank", Integer),
    text_column("status"),
    UniqueConstraint("race_id", "person_id"),
    Index(None, "person_id"),
    Index(None, "race_id", "bib"),
)

custom_lists = Table(
    "custom_lists",
    metadata,
    _own_id(),
    _organisation(),
    key_column("key"),
    Column("name", Text, nullable=False),
    Column("open", Boolean, nullable=False, default=False),
    UniqueConstraint("organisation_id", "key"),
)
"""Lists of choices that organisations make for themselves; people may add to an open one."""

custom_list_items = Table(
    "custom_list_items",
    metadata,
    _own_id(),
    _owner("custom_list_id", "custom_lists"),
    Column("name", Text, nullable=False),
    UniqueConstraint("custom_list_id", "name"),
)

custom_list_values = Table(
    "custom_list_values",
    metadata,
    _own_id(),
    _owner("participant_id", "event_participants"),
    _owner("custom_list_id", "custom_lists"),
    _owner("custom_list_item_id", "custom_list_items"),
    UniqueConstraint("participant_id", "custom_list_id"),
)

TARGETS: Final = {
    persons.name: ("organisation_id", "person_key"),
    event_participants.name: ("event_id", "person_id"),
    memberships.name: ("membership_period_id", "person_id"),
    race_results.name: ("race_id", "person_id"),
    custom_list_values.name: ("participant_id", "custom_list_id"),
    events.name: ("organisation_id", "name", "starts_on"),
    event_categories.name: ("event_id", "name"),
    races.name: ("event_id", "name"),
    membership_periods.name: ("organisation_id", "name", "starts_on"),
    membership_types.name: ("organisation_id", "name"),
    custom_lists.name: ("organisation_id", "key"),
    custom_list_items.name: ("custom_list_id", "name"),
}
"""Tables that rows of spreadsheets go to, with their natural keys."""


COUNTS: Final = tuple(RowCounts.model_fields)


def _number(name: str, default: int = 0) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, default=default)


def _own() -> Column[Any]:
    """The import that a row belongs to."""
    return Column("import_id", BigInteger, primary_key=True, autoincrement=False)


spreadsheet_imports = Table(
    "spreadsheet_imports",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("uuid", Text, nullable=False, unique=True),
    Column("workflow_id", Text, nullable=False),
    Column("organisation_id", BigInteger, nullable=False),
    Column("import_type", Text, nullable=False),
    Column("context_id", BigInteger),
    Column("type_digest", Text),
    Column("scope", JSONB, nullable=False, server_default=text("'{}'")),
    Column("source", Text),
    Column("filename", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("notify", Text),
    Column("auto_start", Boolean, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    Column("fingerprint", Text),
    Column("remembers", Boolean),
    Column("link", Text),
    Column("state", Text, nullable=False),
    Column("state_since", UtcDateTime, nullable=False),
    _number("sequence", -1),
    _number("version"),
    _number("columns_version", -1),
    _number("values_version", -1),
    _number("revision"),
    Column("step", Text, nullable=False, default=""),
    Column("reason", Text),
    Column("assignee", Text, nullable=False),
    Column("waiting_since", UtcDateTime),
    Column("decided_at", UtcDateTime),
    Column("total", BigInteger),
    *map(_number, COUNTS),
    _number("parked"),
    _number("values_total"),
    _number("open_values"),
    _number("mark_round"),
    _number("mark_chunk"),
    _number("mark_cursor"),
    _number("mark_offset"),
    Column("round_ended", Boolean, nullable=False, default=False),
    Column("layout", Text),
    Column("preview", Text),
    Column("fields", Text),
    Column("report", Text),
    Column("undo_state", Text),
    Column("undo_reason", Text),
    Column("undo_by", Text),
    Column("undo_requested_at", UtcDateTime),
    Column("undo_finished_at", UtcDateTime),
    Column("undo_attempts", Integer),
    Column("undo_lines", JSONB(none_as_null=True)),
    *map(_number, ("undo_deleted", "undo_restored", "undo_left_alone")),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("purged_at", UtcDateTime),
    Column("journal_purged_at", UtcDateTime),
    Index(None, "created_at"),
    Index(None, "organisation_id", "created_at"),
    Index(None, "organisation_id", "filename"),
    Index(None, "organisation_id", "context_id", "created_at"),
    Index(None, "state", "state_since"),
    Index(None, "by", "created_at"),
)
"""The status row of an import, and how far its rows have come.

`type_digest` names the version of a declared type, and `scope` holds what all of its rows share.
`version` counts accepted changes of the mappings; `columns_version` and `values_version` are the
newest that columns and values were written at. `revision` rises with every write of the row.
`undo_reason` says why an undo that is under way is parked, or why it has failed.
"""

spreadsheet_columns = Table(
    "spreadsheet_columns",
    metadata,
    _own(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, nullable=False),
    Column("header", Text, nullable=False),
    Column("target", Text),
    Column("status", Text, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("alternatives", Text, nullable=False),
    Column("samples", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=text("''"), default=""),
    Column("blanks", Text, nullable=False, server_default=text("'[]'"), default="[]"),
)

spreadsheet_values = Table(
    "spreadsheet_values",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("import_id", BigInteger, nullable=False),
    Column("field", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("search_key", Text, nullable=False, server_default=text("''"), default=""),
    Column("status", Text, nullable=False),
    Column("target_id", BigInteger),
    Column("target_name", Text),
    Column("create", Boolean, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("alternatives", Text, nullable=False),
    _number("rows"),
    Column("question", Text),
    Column("reason", Text),
    Column("found_id", BigInteger),
    Column("found_name", Text),
    UniqueConstraint("import_id", "field", "value"),
    Index(None, "import_id", "status", "id"),
)
"""Each distinct value of a field whose cells refer to other tables, and what it means.

`found_id` and `found_name` are what docflow took or suggested; `question` and `reason` are those of
a question about a person. `search_key` is the value as a part of it is looked for.
"""

_NOT_CREATED: Final = text("outcome <> 'CREATED'")

spreadsheet_results = Table(
    "spreadsheet_results",
    metadata,
    _own(),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("outcome", Text, nullable=False),
    Column("message", Text),
    Column("problems", Text),
    Index(
        "ix_spreadsheet_results_not_created",
        *("import_id", "outcome", "line"),
        postgresql_where=_NOT_CREATED,
    ),
)
"""Outcome of each row. Where most were created, those are found without an index."""

spreadsheet_parked = Table(
    "spreadsheet_parked",
    metadata,
    _own(),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, nullable=False),
    Column("person", Text),
    Column("person_key", Text),
)
"""Rows that wait: with the question about their person, or with its key where that is certain."""

spreadsheet_journal = Table(
    "spreadsheet_journal",
    metadata,
    _own(),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("images", LargeBinary, nullable=False),
    Column("undone", Boolean, nullable=False),
    Column("attempt", Integer),
)
"""Before- and after-images of the rows that a chunk has written: compressed JSON.

What an undo took back is taken out; `attempt` is the number of the last undo that looked at it.
"""

spreadsheet_differences = Table(
    "spreadsheet_differences",
    metadata,
    _own(),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("line", BigInteger, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("column_name", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
)

spreadsheet_undo_conflicts = Table(
    "spreadsheet_undo_conflicts",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("import_id", BigInteger, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("row_id", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index(None, "import_id", "id"),
)

spreadsheet_files = Table(
    "spreadsheet_files",
    metadata,
    _own(),
    Column("name", Text, primary_key=True),
    Column("blob", Text, nullable=False),
)
"""Blobs that were made for an import, beside its source and its report."""

spreadsheet_uploads = Table(
    "spreadsheet_uploads",
    metadata,
    Column("blob_name", Text, primary_key=True),
    Column("uuid", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "uuid"),
    Index(None, "subject", "created_at"),
    Index(None, "created_at"),
)
"""Files on their way in; an import that opens takes its note away."""

decisions = Table(
    "decisions",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("confidence", Float),
    Column("alternatives", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    UniqueConstraint("workflow_id", "digest"),
)
"""The trail: who decided what, and what else there was to choose from.

`digest` identifies a decision among all of its run, so that each is kept once.
"""

remembered_columns = Table(
    "remembered_columns",
    metadata,
    Column("organisation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("import_type", Text, primary_key=True),
    Column("header", Text, primary_key=True),
    Column("target", Text),
    Column("shown", Text, nullable=False, server_default=text("''")),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("decided_by", Text, nullable=False, server_default=text("''")),
)
"""Fields that people chose for normalised headers; NULL for columns that they left out."""

remembered_values = Table(
    "remembered_values",
    metadata,
    Column("organisation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("import_type", Text, primary_key=True),
    Column("field", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("target_id", BigInteger),
    Column("target_name", Text),
    Column("shown", Text, nullable=False, server_default=text("''")),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("decided_by", Text, nullable=False, server_default=text("''")),
)
"""Rows that people chose for normalised values; neither id nor name for values left empty."""

remembered_people = Table(
    "remembered_people",
    metadata,
    Column("organisation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("question", Text, primary_key=True),
    Column("person_id", BigInteger, primary_key=True, autoincrement=False),
    Column("is_same", Boolean, nullable=False),
    Column("import_id", BigInteger, nullable=False),
    Column("decided_at", UtcDateTime, nullable=False),
    Index(None, "import_id"),
)
"""What people answered about people: digest of the question, and whether a person was meant."""


spreadsheet_reviews = Table(
    "spreadsheet_reviews",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("is_open", Boolean, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("wrong", BigInteger, nullable=False),
    Column("excluded", BigInteger, nullable=False),
    Column("checked", BigInteger, nullable=False),
    Column("check_failure", Text),
)
"""The review of an import: whether corrections are accepted, and its rows in figures.

`check_failure` says why all rows could not be checked at the newest version.
"""

spreadsheet_review_blocks = Table(
    "spreadsheet_review_blocks",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("first_line", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
"""The rows of the file as they were staged, some in a block: the bytes of their lines."""

spreadsheet_review_problems = Table(
    "spreadsheet_review_problems",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("column_id", Integer, primary_key=True, autoincrement=False),
    Column("value", Text),
    Column("reason", Text, nullable=False),
    Index(None, "import_id", "column_id"),
)
"""What is wrong with cells; column 0: with the row."""

spreadsheet_review_operations = Table(
    "spreadsheet_review_operations",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("import_id", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("body", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("effect", Text),
    Column("examples", Text),
    Column("key", Text),
    UniqueConstraint("import_id", "version"),
    Index(None, "import_id", "key", unique=True),
)
"""Corrections, in the order of their versions; without one: only looked at so far.

`key` is the same in every repetition of a request.
"""

remembered_edits = Table(
    "remembered_edits",
    metadata,
    Column("organisation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("import_type", Text, primary_key=True),
    Column("about", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("shape", Text),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("decided_by", Text, nullable=False),
)
"""Corrections of whole columns, to be suggested for the next file with these headers.

`about` names kind and headers; `headers` is a JSON object: column id of the body to its header.
`shape` is a JSON list: all headers of the file, for one that is about no column.
"""


def _as_run(own: Any) -> dict[str, ColumnElement[Any]]:
    """An import as a run; while it is undone, its undo is the run that goes on."""
    undone = own.undo_state == UndoState.RUNNING.value
    stopped = own.undo_reason.is_not(None)
    undoing = case(
        (stopped, str(RunState.NEEDS_ATTENTION)),
        else_=str(RunState.RUNNING),
    )
    awaited = case(
        (own.waiting_since.is_not(None), str(RunState.NEEDS_ATTENTION)),
        else_=str(RunState.RUNNING),
    )
    states = {
        SpreadsheetState.UPLOADED: awaited,
        SpreadsheetState.COLUMN_MAPPING: awaited,
        SpreadsheetState.CELL_MAPPING: awaited,
        SpreadsheetState.PROCESSING: awaited,
        SpreadsheetState.COMPLETED: completed(own.error + own.parked),
        SpreadsheetState.FAILED: RunState.FAILED,
        SpreadsheetState.CANCELLED: RunState.CANCELLED,
        SpreadsheetState.TERMINATED: RunState.CANCELLED,
    }
    ended = own.state.in_(sorted(FINAL))
    return {
        "id": own.workflow_id,
        "pipeline": literal("spreadsheets"),
        "kind": own.import_type,
        "key": own.uuid,
        "short": own.uuid,
        "title": own.filename,
        "state": case((undone, undoing), else_=state_of(own.state, states)),
        "own_state": own.state,
        "reason": case((undone & stopped, literal("undo: ") + own.undo_reason), else_=own.reason),
        "counts": counted(
            rows=own.total,
            **{name: own[name] for name in COUNTS},
            parked=own.parked,
            open_values=own.open_values,
        ),
        "organisation_id": own.organisation_id,
        "size": cast(cast(own.source, JSONB)["size"].astext, BigInteger),
        "owner": own.by,
        "links": linked(report=cast(own.report, JSONB)["name"].astext),
        "answers_at": case((undone, literal(undo_id("")) + own.uuid), else_=own.workflow_id),
        "created_at": own.created_at,
        "changed_at": own.updated_at,
        "ended_at": case((undone, null()), (ended, func.coalesce(own.finished_at, own.updated_at))),
    }


follow(spreadsheet_imports, _as_run)
