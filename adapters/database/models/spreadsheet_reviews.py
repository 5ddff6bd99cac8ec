"""What the store remembers about reviews of spreadsheets: rows, problems, corrections."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from adapters.database.models.base import BigId, UtcDateTime, metadata

spreadsheet_reviews = Table(
    "spreadsheet_reviews",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("is_open", Boolean, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("wrong", BigInteger, nullable=False),
    Column("excluded", BigInteger, nullable=False),
    Column("checked", BigInteger, nullable=False),
    Column("check_failure", Text),
)
"""The review of an import: whether corrections are accepted, and its rows in figures.

`check_failure` says why all rows could not be checked at the newest version.
"""

spreadsheet_review_blocks = Table(
    "spreadsheet_review_blocks",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("first_line", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
"""The rows of the file as they were staged, some in a block: the bytes of their lines."""

spreadsheet_review_problems = Table(
    "spreadsheet_review_problems",
    metadata,
    Column("import_id", BigInteger, primary_key=True, autoincrement=False),
    Column("line", BigInteger, primary_key=True, autoincrement=False),
    Column("column_id", Integer, primary_key=True, autoincrement=False),
    Column("value", Text),
    Column("reason", Text, nullable=False),
    Index(None, "import_id", "column_id"),
    sqlite_with_rowid=False,
)
"""What is wrong with cells; column 0: with the row."""

spreadsheet_review_operations = Table(
    "spreadsheet_review_operations",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("import_id", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("body", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("effect", Text),
    Column("examples", Text),
    Column("key", Text),
    UniqueConstraint("import_id", "version"),
    Index(None, "import_id", "key", unique=True),
    sqlite_autoincrement=True,
)
"""Corrections, in the order of their versions; without one: only looked at so far.

`key` is the same in every repetition of a request.
"""

remembered_edits = Table(
    "remembered_edits",
    metadata,
    Column("organisation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("import_type", Text, primary_key=True),
    Column("about", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("shape", Text),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("decided_by", Text, nullable=False),
)
"""Corrections of whole columns, to be suggested for the next file with these headers.

`about` names kind and headers; `headers` is a JSON object: column id of the body to its header.
`shape` is a JSON list: all headers of the file, for one that is about no column.
"""
