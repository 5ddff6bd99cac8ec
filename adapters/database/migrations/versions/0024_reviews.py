"""Reviews of spreadsheets before their rows are written."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0021"

MOMENT = sa.DateTime(timezone=True)


def _own() -> sa.Column[int]:
    return sa.Column("import_id", sa.BigInteger(), autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "spreadsheet_reviews",
        _own(),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("wrong", sa.BigInteger(), nullable=False),
        sa.Column("excluded", sa.BigInteger(), nullable=False),
        sa.Column("checked", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("import_id", name="pk_spreadsheet_reviews"),
    )
    op.create_table(
        "spreadsheet_review_blocks",
        _own(),
        sa.Column("first_line", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("import_id", "first_line", name="pk_spreadsheet_review_blocks"),
    )
    op.create_table(
        "spreadsheet_review_problems",
        _own(),
        sa.Column("line", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("column_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "import_id", "line", "column_id", name="pk_spreadsheet_review_problems"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_spreadsheet_review_problems_import_id_column_id",
        "spreadsheet_review_problems",
        ["import_id", "column_id"],
    )
    op.create_table(
        "spreadsheet_review_operations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("import_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("effect", sa.Text()),
        sa.Column("examples", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_spreadsheet_review_operations"),
        sa.UniqueConstraint(
            "import_id", "version", name="uq_spreadsheet_review_operations_import_id_version"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "remembered_edits",
        sa.Column("organisation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("import_type", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("decided_at", MOMENT, nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "organisation_id", "import_type", "about", name="pk_remembered_edits"
        ),
    )
