"""Who is told by HTTP what becomes of runs, and what was sent."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import UtcDateTime, metadata

run_webhooks = Table(
    "run_webhooks",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("organisation_id", BigInteger),
    Column("url", Text, nullable=False),
    Column("events", JSONB, nullable=False),
    Column("pipelines", JSONB, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("former_secret", LargeBinary),
    Column("former_until", UtcDateTime),
    Column("made_by", Text, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("problem", Text),
    Column("revision", BigInteger, nullable=False),
    Index(None, "organisation_id", "id"),
)
"""Receivers. `secret` is encrypted, and so is the former one, which signs as well until
`former_until`. `revision` is that up to which changes of runs were read."""

run_messages = Table(
    "run_messages",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column(
        "webhook_id", BigInteger, ForeignKey("run_webhooks.id", ondelete="CASCADE"), nullable=False
    ),
    Column("message_id", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("is_over", Boolean, nullable=False),
    Column("due_at", UtcDateTime),
    Column("attempts", Integer, nullable=False),
    Column("delivered_at", UtcDateTime),
    Column("status_code", Integer),
    Column("problem", Text),
    UniqueConstraint("webhook_id", "message_id"),
    Index(None, "webhook_id", "due_at"),
    Index(None, "webhook_id", "run_id"),
    Index(None, "made_at"),
)
"""What receivers are sent. `is_over`: what the message says holds no longer, so that a message may
say it again. `due_at`: of the next attempt, null: there is none."""
