"""Rejected messages are kept per message: one id may have come with several bodies."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    with op.batch_alter_table("rejected_messages") as table:
        table.add_column(sa.Column("body_sha256", sa.Text(), nullable=False, server_default=sa.text("''")))
        table.drop_constraint("uq_rejected_messages_queue_message_id", type_="unique")
        table.create_unique_constraint(
            "uq_rejected_messages_queue_message_id_body_sha256",
            ["queue", "message_id", "body_sha256"],
        )
