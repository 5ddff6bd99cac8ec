"""Primavera schedules: what their files hold, and which files there are."""

from typing import Any, Final

from sqlalchemy import BigInteger, Column, DateTime, Index, Integer, Table, Text

from adapters.database.models.base import (
    UtcDateTime,
    decimal_column,
    domain_table,
    key_column,
    metadata,
    text_column,
)
from contracts.imports import LEVELS

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
    sqlite_with_rowid=False,
)
"""Which keys the file of an open load has held so far, the unchanged rows among them."""
