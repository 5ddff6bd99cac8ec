"""Which types teams have declared, and the versions of each that runs may still use."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text

from adapters.database.models.base import UtcDateTime, metadata

type_versions = Table(
    "type_versions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("declaration", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "name"),
)
"""Every version that was ever in force, by digest; `declaration` is JSON."""

declared_types = Table(
    "declared_types",
    metadata,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("applied_at", UtcDateTime, nullable=False),
    Column("applied_by", Text),
)
"""The version of each type that new runs use."""

target_images = Table(
    "target_images",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("run", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("work", Text, nullable=False),
    Column("step", Text),
    Column("images", LargeBinary, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "run", "id"),
    Index(None, "created_at"),
)
"""What a run has changed in tables of teams, before and after, so that it can be taken back.

`work` is what their side table calls the run. Until the work has ended, it has a row without a
`step` and images: a step that died before docflow could note it is known there alone.
"""
