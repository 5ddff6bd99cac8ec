"""What watches of transfers saw, and the days of what is expected."""

from sqlalchemy import BigInteger, Column, Date, Index, Table, Text

from adapters.database.models.base import UtcDateTime, metadata

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
