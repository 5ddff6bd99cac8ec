"""Indexes of the lists of jobs and of spreadsheets of all organisations."""

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    # SQLite has no schemas.
    schema = "app" if op.get_bind().dialect.name == "postgresql" else None
    for column in ("status", "job_type", "project"):
        name = f"ix_jobs_{column}_updated_at"
        op.create_index(name, "jobs", [column, "updated_at"], schema=schema)
    imports = "spreadsheet_imports"
    op.create_index(f"ix_{imports}_created_at", imports, ["created_at"])
