"""The register of `spreadsheets`: one spreadsheet, with pauses in which a person maps it."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from workers.shared.register import Context, Pipeline, Readers, RunKind, RunRow, scheduled
from workflows.shared.dependencies import WAITING, Dependency
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import (
    TASK_QUEUE,
    Answer,
    RetentionInput,
    SpreadsheetStatus,
    undo_id,
    workflow_id,
)

if TYPE_CHECKING:
    from activities.shared.dependencies import NamedProbe
    from adapters.ports.records import OpenRows
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources
    from workers.shared.settings.targets import TargetSettings
    from workers.spreadsheets.resources import SpreadsheetResources

NAME = "spreadsheets"
_UUID = "(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def _workflows() -> Sequence[type]:
    from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
    from workflows.spreadsheets.undo_and_retention import SpreadsheetRetention, SpreadsheetUndo

    return (SpreadsheetImport, SpreadsheetUndo, SpreadsheetRetention)


def _settings(environment: Mapping[str, str]) -> "TargetSettings":
    from workers.shared.settings.check import check_settings
    from workers.shared.settings.targets import TargetSettings

    check_settings(environment, TargetSettings)
    return TargetSettings.read(environment)


@asynccontextmanager
async def _open(
    context: Context, settings: "TargetSettings"
) -> AsyncGenerator["SpreadsheetResources"]:
    from adapters.database.foreign import ForeignDatabases
    from workers.spreadsheets.resources import spreadsheet_resources

    database = context.resources.database
    async with ForeignDatabases(database, settings.databases) as databases:
        yield spreadsheet_resources(database, databases, settings.webhooks)


def _named_probes(own: "SpreadsheetResources") -> Mapping[Dependency, "NamedProbe"]:
    return {Dependency.TARGET: own.databases.probe}


def _open_rows(own: "SpreadsheetResources") -> "OpenRows":
    return own.store


def activities(common: "Resources", own: "SpreadsheetResources") -> Sequence[object]:
    """What a worker of spreadsheets runs."""
    from activities.spreadsheets.analysis import SpreadsheetAnalysis
    from activities.spreadsheets.lifecycle import (
        SpreadsheetLifecycle,
        SpreadsheetNotifications,
        SpreadsheetRetentionSteps,
    )
    from activities.spreadsheets.review import SpreadsheetReview
    from activities.spreadsheets.rows import (
        SpreadsheetFiles,
        SpreadsheetReports,
        SpreadsheetRows,
        SpreadsheetUndoSteps,
    )
    from activities.spreadsheets.staging import SpreadsheetStaging
    from activities.spreadsheets.values import SpreadsheetValues

    store, types, blobs, scratch = own.store, own.types, common.blobs, common.scratch
    return (
        SpreadsheetLifecycle(store),
        SpreadsheetAnalysis(store, blobs, common.documents, types, scratch),
        SpreadsheetStaging(store, blobs, common.documents, types, scratch),
        SpreadsheetValues(store, blobs, types, scratch),
        SpreadsheetReview(store, blobs, types, scratch),
        SpreadsheetRows(store, blobs, types, scratch),
        SpreadsheetReports(store, blobs, common.reports, scratch),
        SpreadsheetFiles(store, blobs, types, scratch, own.receivers),
        SpreadsheetUndoSteps(store),
        SpreadsheetRetentionSteps(store, blobs),
        SpreadsheetNotifications(common.notices, common.policies),
    )


def _schedules() -> Mapping[str, "Declared"]:
    from workers.shared.declared_schedules import Declared, daily

    return {
        "spreadsheet-retention": Declared(
            pipeline=NAME,
            workflow="SpreadsheetRetention",
            task_queue=TASK_QUEUE,
            input=RetentionInput(),
            at=daily(2),
        )
    }


def _uuid(found: re.Match[str]) -> str:
    return found["uuid"]


def _page(uuid: str) -> str:
    return f"/uploads/{uuid}"


_ANSWERS: Mapping[str, Any] = {"retry": Answer, "cancel": Answer}


def _readers() -> Sequence[Readers]:
    from adapters.files.limits import LEGACY_MEMORY_BYTES
    from workers.spreadsheets.settings import EXPORTS_READ_AT_ONCE

    return (
        Readers(memory_bytes=LEGACY_MEMORY_BYTES, slots=("DOCFLOW_ACTIVITY_SLOTS",)),
        Readers(memory_bytes=LEGACY_MEMORY_BYTES, at_once=EXPORTS_READ_AT_ONCE, in_gateway=True),
    )


SPREADSHEETS = Pipeline(
    name=NAME,
    title="Spreadsheet",
    task_queue=TASK_QUEUE,
    contracts="workflows.spreadsheets",
    activities_package="activities.spreadsheets",
    runs=(
        RunKind(
            workflow="SpreadsheetImport",
            pattern=re.compile(workflow_id(_UUID)),
            parse=_uuid,
            page=_page,
            row=lambda uuid: RunRow(workflow_id(uuid), uuid, uuid),
            identifier=str,
            status=SpreadsheetStatus,
            answers=_ANSWERS,
            report=True,
            states=(
                "parked",
                WAITING,
                SpreadsheetState.COLUMN_MAPPING,
                SpreadsheetState.CELL_MAPPING,
                SpreadsheetState.UPLOADED,
                SpreadsheetState.PROCESSING,
                SpreadsheetState.FAILED,
                SpreadsheetState.TERMINATED,
                SpreadsheetState.CANCELLED,
                SpreadsheetState.COMPLETED,
            ),
        ),
        RunKind(
            workflow="SpreadsheetUndo",
            pattern=re.compile(undo_id(_UUID)),
            parse=_uuid,
            page=_page,
            identifier=str,
            answers={"retry": Answer},
            report=True,
            is_document=False,
        ),
        scheduled("spreadsheet-retention", "SpreadsheetRetention"),
    ),
    workflows=_workflows,
    settings=_settings,
    open=_open,
    named_probes=_named_probes,
    activities=activities,
    own_states=tuple(SpreadsheetState),
    rejected_rows=("error",),
    open_rows=_open_rows,
    readers=_readers,
    worker_help="Work on spreadsheet imports, and maintain their schedules.",
    # Most of them wait for a person for days: they need no place in memory.
    cached_runs=50,
    schedules=_schedules,
    naming="the UUID of a spreadsheet",
    documents="workers.spreadsheets.messages:documents",
    errands={
        "start": "workers.spreadsheets.errands:start",
        "erase-person": "workers.spreadsheets.erasure:erase_person",
    },
    gateway="workers.spreadsheets.part:open_part",
    gateway_settings="workers.spreadsheets.settings:SpreadsheetSettings",
)
