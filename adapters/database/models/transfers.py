"""Transfers: their states, turns, routes, partners, and what watches saw."""

from sqlalchemy import BigInteger, Boolean, Column, Date, Index, Integer, Table, Text

from adapters.database.models.base import UtcDateTime, metadata

transfers = Table(
    "transfers",
    metadata,
    Column("transfer_id", Text, primary_key=True),
    Column("digest", Text),
    Column("run", Text),
    Column("status", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("source", Text, nullable=False),
    Column("event_id", Text, nullable=False),
    Column("account_id", Text),
    Column("type", Text),
    Column("subject", Text),
    Column("queue", Text),
    Column("job", Text),
    Column("file", Text),
    Column("reason", Text),
    Column("by", Text),
    Column("receipt", Text),
    Column("kept", Text),
    Index(None, "at"),
    Index(None, "status", "at"),
    Index(None, "queue", "at"),
    Index(None, "account_id", "at"),
    Index(None, "run"),
)
"""The state of each transfer now."""

jobstatus = Table(
    "jobstatus",
    metadata,
    Column("transfer_id", Text, primary_key=True),
    Column("at", UtcDateTime, primary_key=True),
    Column("status", Text, primary_key=True),
    Column("queue", Text),
    Column("job", Text),
    Column("file", Text),
    Column("reason", Text),
    Column("by", Text),
    Index(None, "queue", "at"),
)
"""Every state that a transfer was in."""

transfer_turns = Table(
    "transfer_turns",
    metadata,
    Column("key", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("arrived", UtcDateTime, nullable=False),
    Column("begun", Boolean, nullable=False),
    Index(None, "run"),
)

jobconfig = Table(
    "jobconfig",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("record", Text, nullable=False),
)
"""Routing rules."""

jobconfig_changes = Table(
    "jobconfig_changes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

partners = Table(
    "partners",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("record", Text, nullable=False),
)

partner_sessions = Table(
    "partner_sessions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("until", UtcDateTime, nullable=False),
)


watched_files = Table(
    "watched_files",
    metadata,
    Column("watch", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("changed", UtcDateTime),
    Column("tag", Text),
    Column("since", UtcDateTime, nullable=False),
    Column("event", Text),
    Column("problem", Text),
    Column("vanished", UtcDateTime),
    Index(None, "watch", "vanished"),
)
"""Each file as a watch saw it last."""

watch_states = Table(
    "watch_states",
    metadata,
    Column("watch", Text, primary_key=True),
    Column("record", Text, nullable=False),
)
"""What the last look of each watch came to."""

expected_days = Table(
    "expected_days",
    metadata,
    Column("name", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("state", Text, nullable=False),
    Column("record", Text, nullable=False),
)
"""What came for each day of an expectation."""
