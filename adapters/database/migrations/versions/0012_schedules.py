"""Schedules have an id of their own: the short name that their planners give them changes.

Imports keep what people have changed of their messages. Every schedule keeps its rows, and the short name that it has becomes its id and its first alias.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

MOMENT = sa.DateTime(timezone=True)
TABLES = (
    *("projects", "calendars", "wbs", "resources", "activities", "relationships"),
    *("assignments", "activity_codes", "udf_values"),
)


def upgrade() -> None:
    for name in TABLES:
        op.execute(f"ALTER TABLE schedule_{name} RENAME COLUMN primavera_project_id TO schedule_id")
    op.add_column("schedule_projects", sa.Column("primavera_project_id", sa.Text()))
    op.execute("UPDATE schedule_projects SET primavera_project_id = schedule_id")
    for name in ("working_times", "exceptions"):
        op.add_column("schedule_calendars", sa.Column(name, sa.Text()))
    op.add_column("import_tasks", sa.Column("corrections", sa.Text()))
    op.create_table(
        "schedule_aliases",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("source_task", sa.Text(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "alias", name="pk_schedule_aliases"),
    )
    op.create_index(
        "ix_schedule_aliases_project_id_schedule_id",
        "schedule_aliases",
        ["project_id", "schedule_id"],
    )
    op.execute(
        "INSERT INTO schedule_aliases (project_id, alias, schedule_id, source_task, updated_at) "
        "SELECT project_id, schedule_id, schedule_id, MIN(source_task), MIN(updated_at) "
        "FROM schedule_activities GROUP BY project_id, schedule_id "
        "UNION "
        "SELECT project_id, schedule_id, schedule_id, source_task, updated_at "
        "FROM schedule_projects AS own WHERE NOT EXISTS (SELECT 1 FROM schedule_activities AS other "
        "WHERE other.project_id = own.project_id AND other.schedule_id = own.schedule_id)"
    )
