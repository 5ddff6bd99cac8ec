"""Values of spreadsheets are found by a part of them."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    with op.batch_alter_table("spreadsheet_values") as table:
        table.add_column(
            sa.Column("search_key", sa.Text(), nullable=False, server_default=sa.text("''"))
        )
    values = sa.table("spreadsheet_values", sa.column("value"), sa.column("search_key"))
    # Values that people are asked about at the moment of the update: accents count in them.
    op.execute(sa.update(values).values(search_key=sa.func.lower(values.c.value)))
