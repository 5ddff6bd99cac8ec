"""Leases of limited resources."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, UniqueConstraint

from adapters.database.models.base import UtcDateTime, metadata

leases = Table(
    "leases",
    metadata,
    Column("position", BigInteger, primary_key=True),
    Column("resource", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("units", Integer, nullable=False),
    Column("granted", Boolean, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    UniqueConstraint("resource", "owner"),
    Index(None, "owner"),
)
"""How many units of a resource a run has, or waits for; the order is that of `position`.

`owner` is the workflow id of the run, and `expires_at` when a run that does not ask any more loses
its place; a lease that is granted ends with its run.
"""
