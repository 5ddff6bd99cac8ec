"""What the store remembers about imports, and the tables that they fill."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
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
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import (
    UtcDateTime,
    decimal_column,
    domain_table,
    key_column,
    metadata,
    staged_twin,
    text_column,
)
from adapters.database.models.runs import completed, counted, follow, linked, state_of
from workflows.imports.messages import LEVELS
from workflows.imports.runs import Counts, ImportState
from workflows.shared.runs import RunState

FINAL: Final = (
    ImportState.COMPLETED,
    ImportState.SKIPPED,
    ImportState.FAILED,
    ImportState.CANCELLED,
    ImportState.TERMINATED,
)
"""States in which nothing more is written for an import; only a terminated one begins again."""

HOLDING: Final = (
    ImportState.RUNNING,
    ImportState.PARKED,
    ImportState.COMPLETED,
    ImportState.FAILED,
)
"""States in which an import holds its guard against other tasks."""

COUNTS: Final = tuple(Counts.model_fields)


def _counts() -> list[Column[Any]]:
    return [Column(name, BigInteger, nullable=False, default=0) for name in COUNTS]


_NOT_COMPLETED = text("state <> 'completed'")
HAS_PROBLEMS: Final = text("(report IS NOT NULL OR problems <> '[]')")
"""Of rows from which problems and report can be removed."""
HOLDS: Final = text("guard IS NOT NULL AND state IN ('running', 'parked', 'completed', 'failed')")
"""Of rows whose import holds its guard; written out, so that any plan may use the index of them."""

import_tasks = Table(
    "import_tasks",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("document_type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("strategy", Text),
    Column("path", Text),
    Column("guard", Text),
    Column("digest", Text),
    Column("run_id", Text),
    *_counts(),
    Column("problem_count", BigInteger, nullable=False, default=0),
    Column("problems", Text, nullable=False, default="[]"),
    Column("report", Text),
    Column("source_name", Text),
    Column("source_size", BigInteger),
    Column("source_sha256", Text),
    Column("filename", Text),
    Column("workflow_id", Text, nullable=False),
    Column("reason", Text),
    Column("note", Text),
    Column("corrections", Text),
    Column("problems_removed_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(
        "ix_import_tasks_not_completed",
        *("state", "created_at"),
        postgresql_where=_NOT_COMPLETED,
    ),
    Index(None, "finished_at"),
    Index(
        "ix_import_tasks_problems",
        "finished_at",
        postgresql_where=HAS_PROBLEMS,
    ),
    Index(
        "uq_import_tasks_guard",
        *("project_id", "document_type", "guard"),
        unique=True,
        postgresql_where=HOLDS,
    ),
)
"""`digest` is of the message that began the import, `run_id` of its run; None: it was begun by a
release that kept neither. `problems_removed_at` says when problems and report were removed because
their time was over.

Nearly all rows are completed, and these are not in the index of states."""

import_progress = Table(
    "import_progress",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("project_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False, default=0),
    *_counts(),
    Column("problem_count", BigInteger, nullable=False, default=0),
    Column("header", Text, nullable=False, default="[]"),
    Column("finished", Boolean, nullable=False, default=False),
    Column("retired", Text),
    Column("aside", Text),
    Column("staged_columns", Text),
    Column("token", Text),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "task_id"),
)
"""One open load; `id` is the `load_id` of what is kept aside for it."""

import_rejects = Table(
    "import_rejects",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("load_id", BigInteger, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("cells", Text, nullable=False),
    Column("problems", Text, nullable=False),
    Index(None, "load_id", "line", "id"),
)

import_answers = Table(
    "import_answers",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("document_type", Text, primary_key=True),
    Column("question", Text, primary_key=True),
    Column("answer", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("answered_at", UtcDateTime, nullable=False),
)
"""What people said about the documents of a project and type, so that they are asked once."""

_NOT_RESUBMITTED = text("resubmitted_at IS NULL")

rejected_messages = Table(
    "rejected_messages",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("message_id", Text),
    Column("reason", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("body_sha256", Text, nullable=False, server_default=text("''")),
    Column("truncated", Boolean, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("resubmitted_at", UtcDateTime),
    Column("dismissed_at", UtcDateTime),
    Column("by", Text),
    Column("note", Text),
    UniqueConstraint("queue", "message_id", "body_sha256"),
    Index(None, "resubmitted_at"),
    Index(
        "ix_rejected_messages_open",
        *("received_at", "queue"),
        postgresql_where=_NOT_RESUBMITTED,
    ),
)
"""`body_sha256` is of the whole body; empty in rows of earlier releases."""


mto_lines = domain_table(
    "mto_lines",
    (
        *map(key_column, ("project_id", "service_id", "drawing", "commodity_code", "size")),
        Column("sequence", BigInteger, nullable=False),
    ),
    *map(text_column, ("line_no", "spool", "area", "system", "spec", "description")),
    decimal_column("quantity"),
    *map(text_column, ("unit", "revision")),
)

estimate_lines = domain_table(
    "estimate_lines",
    (
        *map(key_column, ("project_id", "service_id", "item_code", "section")),
        Column("sequence", BigInteger, nullable=False),
    ),
    *map(text_column, ("cost_code", "wbs_code", "description", "unit")),
    *map(
        decimal_column,
        (
            *("quantity", "unit_rate", "man_hours", "labour_cost", "material_cost"),
            *("equipment_cost", "subcontract_cost", "markup"),
        ),
    ),
)

equipment = domain_table(
    "equipment",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("description", "category", "make", "model", "serial", "ownership")),
    decimal_column("rate"),
    *map(text_column, ("rate_unit", "fuel", "status")),
)

materials = domain_table(
    "materials",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("description", "unit")),
    decimal_column("price"),
    *map(text_column, ("currency", "supplier")),
    Column("lead_time_days", Integer),
)

crew_trades = domain_table(
    "crew_trades",
    tuple(map(key_column, ("project_id", "code"))),
    text_column("name"),
    *map(decimal_column, ("straight_rate", "over_rate", "double_rate", "burden")),
)

crews = domain_table(
    "crews",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("name", "foreman", "shift", "calendar")),
    decimal_column("output_per_hour"),
)

crew_members = domain_table(
    "crew_members",
    (
        *map(key_column, ("project_id", "employee_no")),
        Column("valid_from", Date, nullable=False),
    ),
    *map(text_column, ("name", "crew", "trade", "classification")),
    Column("valid_to", Date),
)

Index(None, crew_members.c.project_id, crew_members.c.crew)

for _table in (
    *(mto_lines, estimate_lines, equipment, materials),
    *(crew_trades, crews, crew_members),
):
    staged_twin(_table)


SCOPE: Final = ("project_id", "schedule_id")
"""Leading key columns of every table of a schedule."""


def _schedule_table(name: str, key: tuple[str, ...], *columns: Column[Any]) -> Table:
    return domain_table(name, tuple(map(key_column, (*SCOPE, *key))), *columns)


def _local_time(name: str) -> Column[Any]:
    """Time of the project's own clock: the files name no time zone."""
    return Column(name, DateTime)


PEOPLES_COLUMNS: Final = (
    *("area", "discipline", "responsible", "notes"),
    *(f"level_{n}" for n in range(1, LEVELS + 1)),
)
"""Columns of an activity that people fill and no schedule file touches."""

schedule_projects = _schedule_table(
    "schedule_projects",
    (),
    *map(text_column, ("primavera_project_id", "object_id", "name")),
    *map(_local_time, ("data_date", "planned_start", "finish")),
)

schedule_aliases = Table(
    "schedule_aliases",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("alias", Text, primary_key=True),
    Column("schedule_id", Text, nullable=False),
    Column("source_task", Text, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "project_id", "schedule_id"),
)
"""Short names under which the files of a schedule have come: planners change them at an export."""

schedule_calendars = _schedule_table(
    "schedule_calendars",
    ("code",),
    *map(text_column, ("name", "type")),
    decimal_column("hours_per_day"),
    *map(text_column, ("working_times", "exceptions")),
)

schedule_wbs = _schedule_table(
    "schedule_wbs",
    ("wbs_code",),
    *map(text_column, ("name", "parent_code")),
    Column("sequence", BigInteger),
)

schedule_resources = _schedule_table(
    "schedule_resources", ("resource_code",), *map(text_column, ("name", "type", "unit"))
)

schedule_activities = _schedule_table(
    "schedule_activities",
    ("task_code",),
    *map(text_column, ("name", "type", "status", "wbs_code", "calendar")),
    *map(
        decimal_column,
        ("original_duration_hours", "remaining_duration_hours", "percent_complete"),
    ),
    *map(
        _local_time,
        (
            *("planned_start", "planned_finish", "actual_start", "actual_finish"),
            *("early_start", "early_finish", "late_start", "late_finish"),
        ),
    ),
    decimal_column("total_float_hours"),
    text_column("constraint_type"),
    _local_time("constraint_date"),
    *map(text_column, PEOPLES_COLUMNS),
    Column("missing_since", UtcDateTime),
)

schedule_relationships = _schedule_table(
    "schedule_relationships",
    (
        *("predecessor_code", "successor_code", "type"),
        *("predecessor_project", "successor_project"),
    ),
    decimal_column("lag_hours"),
)

schedule_assignments = domain_table(
    "schedule_assignments",
    (
        *map(key_column, (*SCOPE, "task_code", "resource_code", "role")),
        Column("sequence", BigInteger, nullable=False),
    ),
    *map(
        decimal_column,
        (
            *("planned_units", "actual_units", "remaining_units"),
            *("planned_cost", "actual_cost", "remaining_cost"),
        ),
    ),
)

schedule_activity_codes = _schedule_table(
    "schedule_activity_codes",
    ("task_code", "code_type"),
    *map(text_column, ("code_value", "description")),
)

schedule_udf_values = _schedule_table(
    "schedule_udf_values",
    ("entity", "entity_code", "udf"),
    *map(text_column, ("type", "value")),
)

SCHEDULES: Final = (
    *(schedule_projects, schedule_calendars, schedule_wbs, schedule_resources),
    *(schedule_activities, schedule_relationships, schedule_assignments),
    *(schedule_activity_codes, schedule_udf_values),
)
"""What a schedule consists of."""

RETIRED: Final = (
    schedule_relationships,
    schedule_assignments,
    schedule_activity_codes,
    schedule_udf_values,
)
"""Tables whose rows go when the newest file does not hold them any more."""

schedule_uploads = domain_table(
    "schedule_uploads",
    (*map(key_column, ("project_id", "blob_name")),),
    Column("size", BigInteger),
    *map(text_column, ("sha256", "etag", "original_filename")),
)

schedule_file_projects = domain_table(
    "schedule_file_projects",
    (*map(key_column, ("project_id", "task_id", "primavera_project_id")),),
    *map(text_column, ("object_id", "name")),
    *map(_local_time, ("data_date", "planned_start", "finish")),
    Column("activities", Integer),
    *map(text_column, ("source_name", "source_sha256")),
)

schedule_seen = Table(
    "schedule_seen",
    metadata,
    Column("load_id", BigInteger, primary_key=True),
    Column("table_name", Text, primary_key=True),
    Column("key", Text, primary_key=True),
)
"""Which keys the file of an open load has held so far, the unchanged rows among them."""


def _as_run(own: Any) -> dict[str, ColumnElement[Any]]:
    final = [state.value for state in FINAL]
    return {
        "id": own.workflow_id,
        "pipeline": literal("imports"),
        "kind": own.document_type,
        "key": func.substr(own.workflow_id, len("import/") + 1),
        "short": own.task_id,
        "title": func.coalesce(own.filename, own.source_name),
        "state": state_of(
            own.state,
            {
                ImportState.RUNNING: RunState.RUNNING,
                ImportState.PARKED: RunState.NEEDS_ATTENTION,
                ImportState.COMPLETED: completed(own.problem_count),
                ImportState.SKIPPED: RunState.SKIPPED,
                ImportState.FAILED: RunState.FAILED,
                ImportState.CANCELLED: RunState.CANCELLED,
                ImportState.TERMINATED: RunState.CANCELLED,
            },
        ),
        "own_state": own.state,
        "reason": func.coalesce(own.reason, own.note),
        "counts": counted(**{name: own[name] for name in COUNTS}, problems=own.problem_count),
        "project": own.project_id,
        "links": linked(report=cast(own.report, JSONB)["name"].astext),
        "answers_at": own.workflow_id,
        "created_at": own.created_at,
        "changed_at": own.updated_at,
        "ended_at": case((own.state.in_(final), func.coalesce(own.finished_at, own.updated_at))),
    }


follow(import_tasks, _as_run)
