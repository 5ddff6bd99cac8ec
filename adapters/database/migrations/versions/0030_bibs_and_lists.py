"""Indexes for bibs of an event or race, and for lists of imports by file name and event."""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    for table, columns in (
        ("event_participants", ("event_id", "bib")),
        ("race_results", ("race_id", "bib")),
        ("spreadsheet_imports", ("organisation_id", "filename")),
        ("spreadsheet_imports", ("organisation_id", "context_id", "created_at")),
    ):
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
