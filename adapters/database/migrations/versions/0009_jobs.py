"""Jobs and their tasks, in the schema `app` where there are schemas."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def text(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def number(name: str, kind: Any = sa.Integer) -> sa.Column[Any]:
    return sa.Column(name, kind(), autoincrement=False, nullable=False)


def json(name: str) -> sa.Column[Any]:
    return sa.Column(name, JSON, nullable=False)


def moment(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, MOMENT, nullable=nullable)


def upgrade() -> None:
    schema = "app" if op.get_bind().dialect.name == "postgresql" else None
    if schema is not None:
        op.execute("CREATE SCHEMA IF NOT EXISTS app")
    op.create_table(
        "jobs",
        text("job_id"),
        text("job_type"),
        text("status"),
        number("stage"),
        number("total_stages"),
        json("parameters"),
        json("stage_results"),
        json("result_data"),
        text("error_details", nullable=True),
        number("attempt"),
        number("version"),
        text("project", nullable=True),
        text("alias", nullable=True),
        json("failed_tasks"),
        number("failed_count", sa.BigInteger),
        moment("created_at"),
        moment("updated_at"),
        sa.PrimaryKeyConstraint("job_id", name="pk_jobs"),
        schema=schema,
    )
    op.create_index("ix_jobs_updated_at", "jobs", ["updated_at"], schema=schema)
    op.create_index("ix_jobs_alias", "jobs", ["alias"], schema=schema)
    op.create_table(
        "tasks",
        text("parent_job_id"),
        number("attempt"),
        number("stage"),
        number("ordinal"),
        text("task_id"),
        text("task_index"),
        text("task_type"),
        text("status"),
        json("parameters"),
        json("result_data"),
        json("next_stage_params"),
        text("large_metadata_path", nullable=True),
        text("error_details", nullable=True),
        moment("heartbeat", nullable=True),
        number("retry_count"),
        moment("created_at"),
        moment("updated_at"),
        sa.PrimaryKeyConstraint("parent_job_id", "attempt", "stage", "ordinal", name="pk_tasks"),
        schema=schema,
    )
    op.create_index(
        "ix_tasks_parent_job_id_attempt_status",
        "tasks",
        ["parent_job_id", "attempt", "status"],
        schema=schema,
    )
