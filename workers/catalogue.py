"""THE table: pipeline -> task queue, workflows, activities, slots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.imports.deletes import DeleteImports
from activities.imports.lifecycle import ImportLifecycle
from activities.imports.rows import RowImports
from activities.imports.schedules import ScheduleImports
from activities.imports.uploads import UploadImports
from contracts.imports import TASK_QUEUE
from workers.resources import Resources
from workflows.imports import DocumentImport

Activities = Sequence[Callable[..., Any]]


@dataclass(frozen=True)
class Pipeline:
    """One row: what a worker of this pipeline runs."""

    task_queue: str
    workflows: Sequence[type]
    activities: Callable[[Resources], Activities]
    activity_slots: int
    """Heartbeating activities at once: each may hold a file and a database connection."""
    local_slots: int
    """Short steps at once."""
    cached_runs: int = 500
    """Runs kept in memory; an evicted one costs 12 ms when it goes on."""


def _imports(resources: Resources) -> Activities:
    store, blobs, scratch = resources.store, resources.blobs, resources.scratch
    lifecycle = ImportLifecycle(store, blobs, resources.runs.small_document_bytes)
    rows = RowImports(store, blobs, resources.documents, resources.reports, scratch)
    schedules = ScheduleImports(store, blobs, resources.documents, resources.reports, scratch)
    uploads = UploadImports(store, blobs, scratch)
    deletes = DeleteImports(store)
    return [
        lifecycle.prepare,
        lifecycle.finish,
        rows.load_rows,
        schedules.load_schedule,
        schedules.list_schedule_projects,
        schedules.change_activities,
        uploads.store_upload,
        deletes.delete_service,
    ]


CATALOGUE: Mapping[str, Pipeline] = {
    "imports": Pipeline(
        task_queue=TASK_QUEUE,
        workflows=(DocumentImport,),
        activities=_imports,
        activity_slots=4,
        local_slots=16,
    ),
}
"""Pipeline name to its row."""
