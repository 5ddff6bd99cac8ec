"""Questions about people, what was answered to them, and undos that are repeated."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    with op.batch_alter_table("persons") as table:
        for name in ("name_key", "mail_key"):
            table.add_column(sa.Column(name, sa.Text()))
    for name in ("name_key", "mail_key"):
        op.create_index(f"ix_persons_organisation_id_{name}", "persons", ["organisation_id", name])
    with op.batch_alter_table("spreadsheet_values") as table:
        for name in ("question", "reason", "found_name"):
            table.add_column(sa.Column(name, sa.Text()))
        table.add_column(sa.Column("found_id", sa.BigInteger()))
    with op.batch_alter_table("spreadsheet_parked") as table:
        for name in ("person", "person_key"):
            table.add_column(sa.Column(name, sa.Text()))
    with op.batch_alter_table("spreadsheet_journal") as table:
        table.add_column(sa.Column("attempt", sa.Integer()))
    with op.batch_alter_table("spreadsheet_imports") as table:
        table.add_column(sa.Column("undo_attempts", sa.Integer()))
    op.create_table(
        "remembered_people",
        sa.Column("organisation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("person_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("is_same", sa.Boolean(), nullable=False),
        sa.Column("import_id", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "organisation_id", "question", "person_id", name="pk_remembered_people"
        ),
    )
    op.create_index("ix_remembered_people_import_id", "remembered_people", ["import_id"])
