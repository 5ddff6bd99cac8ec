"""Documents that were found in others."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("documents", sa.Column("parent_id", sa.Text()))
    op.add_column("documents", sa.Column("family_id", sa.Text()))
    op.add_column("documents", sa.Column("depth", sa.Integer()))
    op.create_index("ix_documents_case_id_family_id", "documents", ["case_id", "family_id"])
