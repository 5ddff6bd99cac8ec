"""Failed checks of reviews, keys of changes that are repeated, and files of remembered ones."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.add_column("spreadsheet_reviews", sa.Column("check_failure", sa.Text()))
    operations = "spreadsheet_review_operations"
    op.add_column(operations, sa.Column("key", sa.Text()))
    op.create_index(f"ix_{operations}_import_id_key", operations, ["import_id", "key"], unique=True)
    op.add_column("remembered_edits", sa.Column("shape", sa.Text()))
    # Those about no column were suggested for every file: of which files they are true is unknown.
    op.execute("DELETE FROM remembered_edits WHERE headers = '{}'")
