"""Primavera schedules, their files, and what the file of an open load has held."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

MOMENT = sa.DateTime(timezone=True)
EXACT = sa.Numeric(20, 6).with_variant(sa.Text(), "sqlite")
SCOPE = "project_id primavera_project_id"

TYPES = {
    "sequence": sa.BigInteger(),
    "size": sa.BigInteger(),
    "activities": sa.Integer(),
    "missing_since": MOMENT,
    **dict.fromkeys(
        (
            *("data_date", "planned_start", "finish", "planned_finish", "constraint_date"),
            *("actual_start", "actual_finish", "early_start", "early_finish"),
            *("late_start", "late_finish"),
        ),
        sa.DateTime(),
    ),
    **dict.fromkeys(
        (
            *("hours_per_day", "original_duration_hours", "remaining_duration_hours"),
            *("percent_complete", "total_float_hours", "lag_hours"),
            *("planned_units", "actual_units", "remaining_units"),
            *("planned_cost", "actual_cost", "remaining_cost"),
        ),
        EXACT,
    ),
}
TABLES = {
    "schedule_projects": (SCOPE, "object_id name data_date planned_start finish"),
    "schedule_calendars": (f"{SCOPE} code", "name type hours_per_day"),
    "schedule_wbs": (f"{SCOPE} wbs_code", "name parent_code sequence"),
    "schedule_resources": (f"{SCOPE} resource_code", "name type unit"),
    "schedule_activities": (
        f"{SCOPE} task_code",
        "name type status wbs_code calendar original_duration_hours remaining_duration_hours"
        " percent_complete planned_start planned_finish actual_start actual_finish early_start"
        " early_finish late_start late_finish total_float_hours constraint_type constraint_date"
        " area discipline responsible notes level_1 level_2 level_3 level_4 level_5 level_6"
        " level_7 level_8 level_9 level_10 missing_since",
    ),
    "schedule_relationships": (
        f"{SCOPE} predecessor_code successor_code type predecessor_project successor_project",
        "lag_hours",
    ),
    "schedule_assignments": (
        f"{SCOPE} task_code resource_code role sequence",
        "planned_units actual_units remaining_units planned_cost actual_cost remaining_cost",
    ),
    "schedule_activity_codes": (f"{SCOPE} task_code code_type", "code_value description"),
    "schedule_udf_values": (f"{SCOPE} entity entity_code udf", "type value"),
    "schedule_uploads": ("project_id blob_name", "size sha256 etag original_filename"),
    "schedule_file_projects": (
        "project_id task_id primavera_project_id",
        "object_id name data_date planned_start finish activities source_name source_sha256",
    ),
}


def column(name: str, nullable: bool) -> sa.Column[Any]:
    return sa.Column(name, TYPES.get(name, sa.Text()), nullable=nullable)


def upgrade() -> None:
    for name, (key_names, value_names) in TABLES.items():
        key, values = key_names.split(), value_names.split()
        op.create_table(
            name,
            *(column(part, nullable=False) for part in key),
            *(column(value, nullable=True) for value in values),
            sa.Column("version", sa.Integer(), nullable=False),
            sa.Column("source_task", sa.Text(), nullable=False),
            sa.Column("source_line", sa.Integer(), nullable=False),
            sa.Column("created_at", MOMENT, nullable=False),
            sa.Column("updated_at", MOMENT, nullable=False),
            sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"),
        )
    op.create_table(
        "schedule_seen",
        sa.Column("load_id", sa.BigInteger(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("load_id", "table_name", "key", name="pk_schedule_seen"),
        sqlite_with_rowid=False,
    )
