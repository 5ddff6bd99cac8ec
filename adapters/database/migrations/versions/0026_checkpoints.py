"""The file that a checkpoint of a document stands for."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.add_column("process_checkpoints", sa.Column("etag", sa.Text()))
