"""What a batch has lost with a queue that was deleted behind its back."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.add_column("batches", sa.Column("lost", sa.Text()))
    # Releases before said it in the reason alone.
    op.execute(
        sa.text(
            "UPDATE batches SET lost = substr(reason, 1, 150) "
            "WHERE reason LIKE '%deleted by someone else%send them again%'"
        )
    )
