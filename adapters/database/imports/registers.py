"""Rows of the registers of schedule files: which there are, and which projects they hold."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table

from adapters.database.bulk.protocol import RowBatch
from adapters.database.codec import clean
from adapters.database.models.schedules import schedule_file_projects, schedule_uploads
from contracts.blobs import BlobRef
from domain.imports.chunks import TaskKey
from domain.imports.schedule_items import ScheduleProject


def file_projects(key: TaskKey, source: BlobRef, projects: Sequence[ScheduleProject]) -> RowBatch:
    """Which projects and data dates a file holds."""
    columns = (
        *("project_id", "task_id", "primavera_project_id", "object_id", "name", "data_date"),
        *("planned_start", "finish", "activities", "source_name", "source_sha256"),
    )
    rows = [
        (
            *(key.project_id, key.task_id, clean(project.primavera_project_id)),
            *(clean(project.object_id), None if project.name is None else clean(project.name)),
            *(project.data_date, project.planned_start, project.finish, project.activities),
            *(source.name, source.sha256),
        )
        for project in projects
    ]
    return _batch(schedule_file_projects, columns, rows)


def upload(key: TaskKey, blob: BlobRef, original_filename: str | None) -> RowBatch:
    """A stored schedule file."""
    columns = ("project_id", "blob_name", "size", "sha256", "etag", "original_filename")
    name = None if original_filename is None else clean(original_filename)
    row = (key.project_id, blob.name, blob.size, blob.sha256, blob.etag, name)
    return _batch(schedule_uploads, columns, [row])


def _batch(table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> RowBatch:
    return RowBatch(table, columns, rows, [0] * len(rows), range(len(rows)))
