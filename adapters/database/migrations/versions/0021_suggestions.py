"""What is remembered can be seen and corrected; why columns match; the same countries everywhere."""

import sqlalchemy as sa
from alembic import op

from adapters.database.schema import country_rows

revision = "0021"
down_revision = "0020"

NOTHING = sa.text("''")


def text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default=NOTHING)


def upgrade() -> None:
    with op.batch_alter_table("spreadsheet_columns") as table:
        table.add_column(text("why"))
        table.add_column(
            sa.Column("blanks", sa.Text(), nullable=False, server_default=sa.text("'[]'"))
        )
    with op.batch_alter_table("remembered_columns") as table:
        table.alter_column("target", existing_type=sa.Text(), nullable=True)
        table.add_column(text("shown"))
        table.add_column(text("decided_by"))
    with op.batch_alter_table("remembered_values") as table:
        table.alter_column("target_id", existing_type=sa.BigInteger(), nullable=True)
        table.add_column(sa.Column("target_name", sa.Text()))
        table.add_column(text("shown"))
        table.add_column(text("decided_by"))
    name_remembered_values()
    bring_countries_up_to_date()


def name_remembered_values() -> None:
    """A row of another event is found by its name."""
    memory = sa.table(
        "remembered_values", *map(sa.column, ("import_type", "field", "target_id", "target_name"))
    )
    owners = {
        "EVENT_CATEGORY_NAME": "event_categories",
        "MEMBERSHIP_TYPE_ID": "membership_types",
        "ID_COUNTRY": "countries",
    }
    for field, owner in owners.items():
        rows = sa.table(owner, sa.column("id"), sa.column("name"))
        name = sa.select(rows.c.name).where(rows.c.id == memory.c.target_id).scalar_subquery()
        op.execute(sa.update(memory).where(memory.c.field == field).values(target_name=name))
    rows = sa.table("custom_list_items", sa.column("id"), sa.column("name"))
    name = sa.select(rows.c.name).where(rows.c.id == memory.c.target_id).scalar_subquery()
    op.execute(
        sa.update(memory)
        .where(memory.c.field.like("CUSTOM\\_LIST\\_%", escape="\\"))
        .values(target_name=name)
    )


def bring_countries_up_to_date() -> None:
    """A database that was made with another list of ISO 3166-1 gets the rows of a new one."""
    countries = sa.table(
        "countries", *map(sa.column, ("id", "alpha2", "alpha3", "name", "spellings"))
    )
    connection = op.get_bind()
    found = {row["id"]: dict(row) for row in connection.execute(sa.select(countries)).mappings()}
    for row in country_rows():
        known = found.get(row["id"])
        if known is None:
            connection.execute(countries.insert().values(row))
        elif known != row:
            connection.execute(countries.update().where(countries.c.id == row["id"]).values(row))
