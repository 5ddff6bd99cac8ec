"""Jobs, their tasks and their webhooks, and the catalogue of spatial data."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import Box, UtcDateTime, metadata

SCHEMA: Final = "app"
"""SQLite has no schemas: `adapters.database.engine` leaves it out there."""
_Json: Final = JSON().with_variant(JSONB(), "postgresql")


jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("job_type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("stage", Integer, nullable=False),
    Column("total_stages", Integer, nullable=False),
    Column("parameters", _Json, nullable=False),
    Column("stage_results", _Json, nullable=False),
    Column("result_data", _Json, nullable=False),
    Column("error_details", Text),
    Column("attempt", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("project", Text),
    Column("alias", Text),
    Column("failed_tasks", _Json, nullable=False),
    Column("failed_count", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "updated_at"),
    Index(None, "status", "updated_at"),
    Index(None, "job_type", "updated_at"),
    Index(None, "project", "updated_at"),
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
    Column("parameters", _Json, nullable=False),
    Column("result_data", _Json, nullable=False),
    Column("next_stage_params", _Json, nullable=False),
    Column("large_metadata_path", Text),
    Column("error_details", Text),
    Column("heartbeat", UtcDateTime),
    Column("retry_count", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
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
    Column("content", _Json, nullable=False),
)

stac_items: Final = Table(
    "stac_items",
    metadata,
    Column("collection", Text, ForeignKey(stac_collections.c.id), primary_key=True),
    Column("id", Text, primary_key=True),
    Column("starts", UtcDateTime, nullable=False),
    Column("ends", UtcDateTime, nullable=False),
    Column("area", Box().with_variant(Text(), "sqlite"), nullable=False),
    Column("content", _Json, nullable=False),
    Index(None, "starts", "collection", "id"),
    Index(None, "area", postgresql_using="gist"),
)
