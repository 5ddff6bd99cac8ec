"""Who did what, and the tokens of programs."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import UtcDateTime, metadata

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("organisation_id", BigInteger),
    Column("who", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("object", Text),
    Column("before", JSONB(none_as_null=True)),
    Column("after", JSONB(none_as_null=True)),
    Column("reason", Text),
    Column("from_where", Text),
    Column("request_id", Text),
    Column("status", Integer),
    Index(None, "at"),
    *(Index(None, each, "id") for each in ("organisation_id", "who", "action", "object")),
)
"""What people, programs and commands have changed or tried to change.

`status` is that of the answer; null: the change was begun, and nobody knows whether it was made.
"""

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("name", Text, nullable=False),
    Column("organisation_id", BigInteger),
    Column("roles", JSONB, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("beginning", Text, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Index(None, "organisation_id", "id"),
)
"""Tokens of programs; `sha256` is that of the secret, which nobody keeps."""
