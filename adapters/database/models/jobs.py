"""Jobs, their tasks and their webhooks, and the catalogue of spatial data."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import Box, UtcDateTime, metadata
from adapters.database.models.runs import completed, counted, follow, state_of
from workflows.jobs.records import BYTES, ROWS, JobStatus
from workflows.shared.runs import RunState

SCHEMA: Final = "app"
_MOST_BROUGHT: Final = 10**15
"""What a stage says beyond that is no count."""


jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("job_type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("stage", Integer, nullable=False),
    Column("total_stages", Integer, nullable=False),
    Column("parameters", JSONB, nullable=False),
    Column("stage_results", JSONB, nullable=False),
    Column("result_data", JSONB, nullable=False),
    Column("error_details", Text),
    Column("attempt", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("project", Text),
    Column("organisation_id", BigInteger),
    Column("alias", Text),
    Column("failed_tasks", JSONB, nullable=False),
    Column("failed_count", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "updated_at"),
    Index(None, "status", "updated_at"),
    Index(None, "job_type", "updated_at"),
    Index(None, "project", "updated_at"),
    Index(None, "organisation_id", "updated_at"),
    Index(None, "alias"),
    schema=SCHEMA,
)

tasks = Table(
    "tasks",
    metadata,
    Column("parent_job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("stage", Integer, primary_key=True, autoincrement=False),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("task_id", Text, nullable=False),
    Column("task_index", Text, nullable=False),
    Column("task_type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("parameters", JSONB, nullable=False),
    Column("result_data", JSONB, nullable=False),
    Column("next_stage_params", JSONB, nullable=False),
    Column("large_metadata_path", Text),
    Column("error_details", Text),
    Column("heartbeat", UtcDateTime),
    Column("retry_count", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("kept", Boolean, nullable=False),
    Index(None, "parent_job_id", "attempt", "status"),
    schema=SCHEMA,
)


webhook_secrets: Final = Table(
    "webhook_secrets",
    metadata,
    Column("reference", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("encrypted", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

webhook_messages: Final = Table(
    "webhook_messages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("job_id", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

webhook_deliveries: Final = Table(
    "webhook_deliveries",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("redelivery", Integer, primary_key=True),
    Column("delivery_attempt", Integer, primary_key=True),
    Column("ordered", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
    Index("ix_webhook_deliveries_job_id_sent_at", "job_id", "sent_at"),
)

webhook_hosts: Final = Table(
    "webhook_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("failures", BigInteger, nullable=False),
    Column("open_until", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
)

job_aliases: Final = Table(
    "job_aliases",
    metadata,
    Column("alias", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

stac_collections: Final = Table(
    "stac_collections",
    metadata,
    Column("id", Text, primary_key=True),
    Column("organisation_id", BigInteger),
    Column("content", JSONB, nullable=False),
)

stac_items: Final = Table(
    "stac_items",
    metadata,
    Column("collection", Text, ForeignKey(stac_collections.c.id), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("starts", UtcDateTime, nullable=False),
    Column("ends", UtcDateTime, nullable=False),
    Column("area", Box, nullable=False),
    Column("organisation_id", BigInteger),
    Column("content", JSONB, nullable=False),
    Index(None, "starts", "collection", "id"),
    Index(None, "area", postgresql_using="gist"),
)


def _brought(results: ColumnElement[Any], what: str) -> ColumnElement[int]:
    """The sum of a number that results of stages have; null: none has it."""
    path = f'$.*."{what}" ? (@.type() == "number" && @ >= 0 && @ <= {_MOST_BROUGHT})'
    numbers = func.jsonb_path_query_array(results, literal_column(f"'{path}'"))
    number = func.jsonb_array_elements(numbers).table_valued("value").c.value
    total = select(func.sum(cast(cast(number, Text), Numeric)))
    return cast(total.scalar_subquery(), BigInteger)


def _as_run(own: Any) -> dict[str, ColumnElement[Any]]:
    states = {
        JobStatus.QUEUED: RunState.WAITING,
        JobStatus.PROCESSING: RunState.RUNNING,
        JobStatus.PARKED: RunState.NEEDS_ATTENTION,
        JobStatus.COMPLETED: completed(own.failed_count),
        JobStatus.FAILED: RunState.FAILED,
        JobStatus.CANCELLED: RunState.CANCELLED,
        JobStatus.TERMINATED: RunState.CANCELLED,
    }
    is_open = own.status.in_([JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.PARKED])
    id = literal("job/") + own.job_id
    return {
        "id": id,
        "pipeline": literal("jobs"),
        "kind": own.job_type,
        "key": own.job_id,
        "short": func.coalesce(own.alias, own.job_id),
        "state": state_of(own.status, states),
        "own_state": own.status,
        "reason": own.error_details,
        "counts": counted(
            stage=own.stage,
            total_stages=own.total_stages,
            failed_tasks=own.failed_count,
            rows=_brought(own.stage_results, ROWS),
        ),
        "size": _brought(own.stage_results, BYTES),
        "project": own.project,
        "organisation_id": own.organisation_id,
        "answers_at": id,
        "created_at": own.created_at,
        "changed_at": own.updated_at,
        "ended_at": case((~is_open, own.updated_at)),
    }


follow(jobs, _as_run)
