"""Lines of estimates by section and sequence too; those that are there have neither."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"

TABLES = {
    "estimate_lines": ["project_id", "service_id"],
    "staged_estimate_lines": ["load_id", "project_id", "service_id"],
}


def upgrade() -> None:
    for name, scope in TABLES.items():
        with op.batch_alter_table(name) as table:
            table.add_column(
                sa.Column("section", sa.Text(), nullable=False, server_default=sa.text("''"))
            )
            table.add_column(
                sa.Column("sequence", sa.BigInteger(), nullable=False, server_default=sa.text("1"))
            )
            table.drop_constraint(f"pk_{name}", type_="primary")
            table.create_primary_key(f"pk_{name}", [*scope, "item_code", "section", "sequence"])
        # A load always writes both.
        with op.batch_alter_table(name) as table:
            table.alter_column("section", server_default=None)
            table.alter_column("sequence", server_default=None)
