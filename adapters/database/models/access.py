"""Who did what, the tokens of programs, and who is signed in."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)
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
    Column("session", Text),
    Column("upload", JSONB(none_as_null=True)),
    Index(None, "organisation_id", "id"),
    Index(None, "session", "id"),
    Index(None, "expires_at"),
)
"""Tokens of programs; `sha256` is that of the secret, which nobody keeps.

`upload` is what an upload token is for (`UploadGrant`), and `session` that of it.
"""

sessions = Table(
    "sessions",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("name", Text),
    Column("email", Text),
    Column("organisations", JSONB, nullable=False),
    Column("roles", JSONB, nullable=False),
    Column("roles_in", JSONB, nullable=False),
    Column("provider", Text),
    Column("token_id", BigInteger),
    Column("id_token", Text),
    Column("is_link", Boolean, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Index(None, "subject"),
    Index(None, "expires_at"),
)
"""Who is signed in; `sha256` is that of what the browser keeps.

A link that signs a person in is a row as well; using it removes the row.
"""
saved_views = Table(
    "saved_views",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("query", Text, nullable=False),
    UniqueConstraint("subject", "name"),
)
"""Filters of the list of runs that people keep for themselves, as the query of its address."""
