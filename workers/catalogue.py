"""THE table: pipeline -> task queue, workflows, activities, slots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.batches.case_backlog import CaseBacklog
from activities.batches.completion import BatchCompletion
from activities.batches.document_load import DocumentLoads
from activities.batches.drain import BatchDrain
from activities.batches.orphans import BatchOrphans
from activities.batches.plans import BatchPlans
from activities.batches.provisioning import BatchProvisioning
from activities.batches.teardown import BatchTeardown
from activities.batches.validation import BatchValidation, function_lock, queue_lock
from activities.imports.deletes import DeleteImports
from activities.imports.lifecycle import ImportLifecycle
from activities.imports.rows import RowImports
from activities.imports.schedules import ScheduleImports
from activities.imports.uploads import UploadImports
from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import SpreadsheetLifecycle
from activities.spreadsheets.notices import SpreadsheetNotices
from activities.spreadsheets.reports import SpreadsheetReports
from activities.spreadsheets.retention import SpreadsheetRetentionSteps
from activities.spreadsheets.rows import SpreadsheetRows
from activities.spreadsheets.staging import SpreadsheetStaging
from activities.spreadsheets.undo import SpreadsheetUndoSteps
from activities.spreadsheets.values import SpreadsheetValues
from contracts import batches, imports, spreadsheets
from workers.resources import Resources
from workflows.batches.case_queue import BatchLifecycle, CaseQueue
from workflows.batches.document_load import DocumentLoad
from workflows.batches.sweeper import BatchSweeper
from workflows.imports.document_import import DocumentImport
from workflows.spreadsheets.retention import SpreadsheetRetention
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
from workflows.spreadsheets.undo import SpreadsheetUndo

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


def _spreadsheets(resources: Resources) -> Activities:
    store, blobs, scratch = resources.spreadsheets, resources.blobs, resources.scratch
    types, documents = resources.sheet_types, resources.documents
    lifecycle = SpreadsheetLifecycle(store)
    values = SpreadsheetValues(store, blobs, types, scratch)
    retaining = SpreadsheetRetentionSteps(store, blobs)
    return [
        lifecycle.begin,
        lifecycle.record,
        lifecycle.finish,
        lifecycle.save_columns,
        SpreadsheetAnalysis(store, blobs, documents, types, scratch).analyse,
        SpreadsheetStaging(store, blobs, documents, scratch).stage,
        values.collect_values,
        values.decide_cells,
        SpreadsheetRows(store, blobs, types, scratch).process,
        SpreadsheetReports(store, blobs, resources.reports, scratch).write_report,
        SpreadsheetUndoSteps(store).undo,
        retaining.expired,
        retaining.purge,
        retaining.purge_leftovers,
        SpreadsheetNotices(resources.notices).notify,
    ]


def _batches(resources: Resources) -> Activities:
    batch = resources.batches
    assert batch is not None, "a worker of batches opens their resources"
    cloud = (batch.queues, batch.topic, batch.functions, batch.grants)
    provisioning, teardown = BatchProvisioning(*cloud), BatchTeardown(*cloud)
    cases = CaseBacklog(batch.store, batch.runs)
    lock = (
        function_lock(batch.functions, batch.plan.prefix)
        if batch.plan.with_function
        else queue_lock(batch.queues, batch.plan.prefix)
    )
    draining = BatchDrain(batch.queues, batch.runs, batch.store)
    ending = BatchCompletion(batch.store, batch.topic)
    loading = DocumentLoads(
        batch.loads,
        batch.store,
        resources.blobs,
        batch.texts,
        batch.queues,
        batch.plan.prefix,
        resources.scratch,
    )
    return [
        cases.record_events,
        cases.skip,
        BatchValidation(batch.store, batch.runs, lock).validate,
        BatchPlans(batch.store, batch.plan).plan,
        provisioning.create_queue,
        provisioning.create_dead_letters,
        provisioning.set_redrive_policy,
        provisioning.set_queue_policy,
        provisioning.grant_permissions,
        provisioning.subscribe,
        provisioning.create_function,
        provisioning.prove_delivery,
        provisioning.reserve_concurrency,
        provisioning.attach_mapping,
        draining.look,
        draining.redrive,
        draining.cancel_loads,
        ending.announce,
        ending.close,
        ending.truncate,
        teardown.unsubscribe,
        teardown.detach_mapping,
        teardown.delete_function,
        teardown.revoke_permissions,
        teardown.delete_queue,
        teardown.delete_dead_letters,
        BatchOrphans(*cloud, batch.runs, batch.plan).orphans,
        loading.dedupe,
        loading.extract,
        loading.tags,
        loading.relations,
        loading.attachments,
        loading.give_up,
    ]


CATALOGUE: Mapping[str, Pipeline] = {
    "imports": Pipeline(
        task_queue=imports.TASK_QUEUE,
        workflows=(DocumentImport,),
        activities=_imports,
        activity_slots=4,
        local_slots=16,
    ),
    "spreadsheets": Pipeline(
        task_queue=spreadsheets.TASK_QUEUE,
        workflows=(SpreadsheetImport, SpreadsheetUndo, SpreadsheetRetention),
        activities=_spreadsheets,
        activity_slots=4,
        local_slots=16,
        # Most of them wait for a person for days: they need no place in memory.
        cached_runs=50,
    ),
    "batches": Pipeline(
        task_queue=batches.TASK_QUEUE,
        workflows=(CaseQueue, BatchLifecycle, BatchSweeper, DocumentLoad),
        activities=_batches,
        # Most of them wait for AWS.
        activity_slots=16,
        local_slots=16,
    ),
}
"""Pipeline name to its row."""
