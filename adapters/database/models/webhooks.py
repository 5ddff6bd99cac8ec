"""Webhooks of jobs: secrets, messages, deliveries, hosts that are left alone; foreign ids."""

from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, Table, Text

from adapters.database.models.base import UtcDateTime, metadata

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
