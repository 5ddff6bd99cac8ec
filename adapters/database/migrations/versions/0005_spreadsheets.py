"""Spreadsheets: status, mappings, rows, before-images, and the trail of decisions."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

NUMBERS = (
    *("sequence", "version", "columns_version", "values_version", "revision"),
    *("created", "updated", "skipped", "error", "parked", "values_total", "open_values"),
    *("mark_round", "mark_chunk", "mark_cursor", "mark_offset"),
    *("undo_deleted", "undo_restored", "undo_left_alone"),
)
MOMENTS = (
    *("waiting_since", "decided_at", "finished_at", "purged_at", "journal_purged_at"),
    *("undo_requested_at", "undo_finished_at"),
)


def texts(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def numbers(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]


def moments(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, MOMENT, nullable=nullable) for name in names]


def flags(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Boolean(), nullable=False) for name in names]


def key(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, autoincrement=False, nullable=False)


def own(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("import_id", *columns, name=f"pk_{table}")


def create_imports() -> None:
    table = "spreadsheet_imports"
    op.create_table(
        table,
        sa.Column("id", ID, nullable=False),
        *texts("uuid", "workflow_id", "import_type", "filename", "by", "state", "step"),
        *texts("assignee"),
        *numbers("organisation_id", *NUMBERS),
        *numbers("context_id", "total", nullable=True),
        *flags("auto_start", "dry_run", "round_ended"),
        *texts("source", "notify", "fingerprint", "link", "reason", nullable=True),
        *texts("layout", "preview", "fields", "report", nullable=True),
        *texts("undo_state", "undo_by", nullable=True),
        *moments("state_since", "created_at", "updated_at"),
        *moments(*MOMENTS, nullable=True),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("uuid", name=f"uq_{table}_uuid"),
    )
    for names in (("organisation_id", "created_at"), ("state", "state_since"), ("by", "created_at")):
        op.create_index(f"ix_{table}_{'_'.join(names)}", table, list(names))


def create_mappings() -> None:
    op.create_table(
        "spreadsheet_columns",
        key("import_id", sa.BigInteger()),
        key("id", sa.Integer()),
        sa.Column("position", sa.Integer(), nullable=False),
        *texts("header"),
        *texts("target", nullable=True),
        *texts("status"),
        sa.Column("confidence", sa.Float(), nullable=False),
        *texts("alternatives", "samples"),
        own("spreadsheet_columns", "id"),
    )
    table = "spreadsheet_values"
    op.create_table(
        table,
        sa.Column("id", ID, nullable=False),
        *numbers("import_id"),
        *texts("field", "value", "status"),
        *numbers("target_id", nullable=True),
        *texts("target_name", nullable=True),
        *flags("create"),
        sa.Column("confidence", sa.Float(), nullable=False),
        *texts("alternatives"),
        *numbers("rows"),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("import_id", "field", "value", name=f"uq_{table}_import_id_field_value"),
        sqlite_autoincrement=True,
    )
    op.create_index(f"ix_{table}_import_id_status_id", table, ["import_id", "status", "id"])


def create_rows() -> None:
    table = "spreadsheet_results"
    op.create_table(
        table,
        key("import_id", sa.BigInteger()),
        key("line", sa.BigInteger()),
        *texts("outcome"),
        *texts("message", "problems", nullable=True),
        own(table, "line"),
        sqlite_with_rowid=False,
    )
    not_created = sa.text("outcome <> 'CREATED'")
    op.create_index(
        f"ix_{table}_not_created",
        table,
        ["import_id", "outcome", "line"],
        postgresql_where=not_created,
        sqlite_where=not_created,
    )
    op.create_table(
        "spreadsheet_parked",
        key("import_id", sa.BigInteger()),
        key("line", sa.BigInteger()),
        *numbers("offset"),
        own("spreadsheet_parked", "line"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spreadsheet_journal",
        key("import_id", sa.BigInteger()),
        key("round", sa.Integer()),
        key("chunk", sa.Integer()),
        sa.Column("images", sa.LargeBinary(), nullable=False),
        *flags("undone"),
        own("spreadsheet_journal", "round", "chunk"),
    )
    op.create_table(
        "spreadsheet_differences",
        key("import_id", sa.BigInteger()),
        key("place", sa.Integer()),
        *numbers("line"),
        *texts("table_name", "column_name"),
        *texts("before", "after", nullable=True),
        own("spreadsheet_differences", "place"),
    )
    op.create_table(
        "spreadsheet_undo_conflicts",
        sa.Column("id", ID, nullable=False),
        *numbers("import_id", "line"),
        *texts("table_name"),
        *numbers("row_id"),
        *texts("reason"),
        sa.PrimaryKeyConstraint("id", name="pk_spreadsheet_undo_conflicts"),
    )
    op.create_index(
        "ix_spreadsheet_undo_conflicts_import_id_id",
        "spreadsheet_undo_conflicts",
        ["import_id", "id"],
    )


def create_files() -> None:
    op.create_table(
        "spreadsheet_files",
        key("import_id", sa.BigInteger()),
        *texts("name", "blob"),
        own("spreadsheet_files", "name"),
    )
    table = "spreadsheet_uploads"
    op.create_table(
        table,
        *texts("blob_name", "uuid", "subject"),
        *moments("created_at"),
        sa.PrimaryKeyConstraint("blob_name", name=f"pk_{table}"),
    )
    for names in (("uuid",), ("subject", "created_at"), ("created_at",)):
        op.create_index(f"ix_{table}_{'_'.join(names)}", table, list(names))


def create_memory() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", ID, nullable=False),
        *texts("pipeline", "workflow_id", "kind", "subject", "decision", "by"),
        *moments("at"),
        sa.Column("confidence", sa.Float()),
        *texts("alternatives"),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        sa.UniqueConstraint("workflow_id", "digest", name="uq_decisions_workflow_id_digest"),
    )
    op.create_table(
        "remembered_columns",
        key("organisation_id", sa.BigInteger()),
        *texts("import_type", "header", "target"),
        *moments("decided_at"),
        sa.PrimaryKeyConstraint(
            "organisation_id", "import_type", "header", name="pk_remembered_columns"
        ),
    )
    op.create_table(
        "remembered_values",
        key("organisation_id", sa.BigInteger()),
        *texts("import_type", "field", "value"),
        *numbers("target_id"),
        *moments("decided_at"),
        sa.PrimaryKeyConstraint(
            *("organisation_id", "import_type", "field", "value"), name="pk_remembered_values"
        ),
    )


def upgrade() -> None:
    create_imports()
    create_mappings()
    create_rows()
    create_files()
    create_memory()
