"""How many documents JOB_FINISHED said."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("batches", sa.Column("job_documents", sa.Integer()))
