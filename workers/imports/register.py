"""The register of `imports`: one import or delete message of a project's data."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from workers.shared.register import (
    QUEUE_ERRANDS,
    Bridge,
    Context,
    Pipeline,
    Readers,
    Resubmission,
    RunKind,
    RunRow,
)
from workflows.imports.messages import workflow_id
from workflows.imports.runs import TASK_QUEUE, ImportState, ImportStatus, Retry, TaskKey
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import WAITING, Dependency
from workflows.shared.run_webhooks import RUN_WEBHOOKS, SCHEDULE, RunWebhooksInput

if TYPE_CHECKING:
    from activities.shared.dependencies import NamedProbe
    from adapters.database.records import KeptRows
    from adapters.ports.records import OpenRows
    from workers.imports.resources import ImportResources
    from workers.imports.settings import BridgeSettings, WorkerSettings
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources


def _workflows() -> Sequence[type]:
    from workflows.imports.document_import import DocumentImport

    return (DocumentImport,)


def _settings(environment: Mapping[str, str]) -> "WorkerSettings":
    from workers.imports.settings import RunSettings, WorkerSettings
    from workers.shared.settings.check import check_settings
    from workers.shared.settings.targets import TargetSettings

    check_settings(environment, RunSettings, TargetSettings)
    return WorkerSettings(RunSettings.read(environment), TargetSettings.read(environment))


@asynccontextmanager
async def _open(context: Context, settings: "WorkerSettings") -> AsyncGenerator["ImportResources"]:
    from adapters.database.foreign import ForeignDatabases
    from workers.imports.resources import import_resources

    database = context.resources.database
    async with ForeignDatabases(database, settings.targets.databases) as databases:
        receivers = settings.targets.webhooks
        yield import_resources(database, context.client, settings.runs, databases, receivers)


def _named_probes(own: "ImportResources") -> Mapping[Dependency, "NamedProbe"]:
    return {Dependency.TARGET: own.databases.probe}


def _open_rows(own: "ImportResources") -> "OpenRows":
    return own.store


async def _kept_rows(common: "Resources") -> Sequence["KeptRows"]:
    from activities.imports.views import (
        old_images,
        old_imports,
        old_of_types,
        old_problems,
        old_rejected,
        old_resubmitted,
    )
    from adapters.database.access import old_audit, old_upload_tokens
    from adapters.database.records import KeptRows
    from adapters.database.run_webhooks import old_messages
    from adapters.database.runs import old_unbegun
    from adapters.database.sessions import old_sessions

    database, keeps = common.database, common.keeps
    return (
        KeptRows("problems and reports of imports", keeps.import_problems, old_problems(database)),
        KeptRows("changes in tables of teams", keeps.import_problems, old_images(database)),
        KeptRows("status rows of imports", keeps.status, old_imports(database)),
        # Of every queue, as those of webhooks are of every pipeline.
        KeptRows("rejected messages, sent again", keeps.resubmitted, old_resubmitted(database)),
        KeptRows("rejected messages, not sent again", keeps.status, old_rejected(database)),
        KeptRows("runs that never began", keeps.status, old_unbegun(database)),
        KeptRows("messages of webhooks about runs", keeps.messages, old_messages(database)),
        KeptRows("entries of the audit", keeps.audit, old_audit(database)),
        KeptRows("sessions and sign-in links", 1, old_sessions(database)),
        KeptRows("expired upload tokens", keeps.audit, old_upload_tokens(database)),
        *await old_of_types(database),
    )


def activities(common: "Resources", own: "ImportResources") -> Sequence[object]:
    """What a worker of imports runs."""
    from activities.imports.lifecycle import (
        DeleteImports,
        ImportLifecycle,
        SmallTables,
        UploadImports,
    )
    from activities.imports.rows import RowImports
    from activities.imports.schedules import ScheduleImports

    store, blobs, scratch = own.store, common.blobs, common.scratch
    return (
        ImportLifecycle(
            store,
            blobs,
            own.ends,
            common.rejected,
            own.runs.small_document_bytes,
            own.runs.blob_prefixes,
            SmallTables(store, blobs, common.documents, scratch),
        ),
        RowImports(
            *(store, blobs, common.documents, common.reports, scratch), receivers=own.receivers
        ),
        ScheduleImports(store, blobs, common.documents, common.reports, scratch),
        UploadImports(store, blobs, scratch),
        DeleteImports(store),
    )


def _schedules(environment: Mapping[str, str]) -> "Mapping[str, Declared] | None":
    """The look for what receivers are told, of the runs of every pipeline; None: no key is set.

    Raises:
        SettingsError: The key is wrong.
    """
    from datetime import timedelta

    from workers.shared.declared_schedules import Declared, every
    from workers.shared.settings.webhooks import ReceiverSettings

    if not ReceiverSettings.read(environment).secret_keys:
        return None
    look = Declared(
        pipeline=TASK_QUEUE,
        workflow=RUN_WEBHOOKS,
        task_queue=TASK_QUEUE,
        input=RunWebhooksInput(),
        at=every(1),
        # The next look finds whatever one that was missed would have found.
        catch_up=timedelta(minutes=1),
    )
    return {SCHEDULE: look}


def _bridge_settings(environment: Mapping[str, str]) -> "BridgeSettings":
    from workers.imports.settings import BridgeSettings, QueueSettings, RunSettings
    from workers.shared.settings.check import check_settings

    check_settings(environment, QueueSettings, RunSettings)
    return BridgeSettings(QueueSettings.read(environment), RunSettings.read(environment))


def _queue_name(environment: Mapping[str, str]) -> str:
    from workers.imports.settings import QueueSettings

    named = environment.get("AZURE_SERVICE_BUS_QUEUE_NAME", "").strip()
    return named or QueueSettings.model_fields["queue_name"].default


def _key(found: re.Match[str]) -> TaskKey:
    return TaskKey(unquote(found["project"]), unquote(found["task"]))


def _row(key: TaskKey) -> RunRow:
    id = workflow_id(key.project_id, key.task_id)
    return RunRow(id, id.partition("/")[2], key.task_id)


def _page(key: TaskKey) -> str:
    return f"/runs/{quote(workflow_id(key.project_id, key.task_id), safe='/')}"


def _pattern() -> re.Pattern[str]:
    # An id begins with a letter or digit, ASCII or encoded.
    part = "[A-Za-z0-9%][A-Za-z0-9._:@+%-]{0,383}"
    return re.compile(f"import/(?P<project>{part})/(?P<task>{part})")


_ANSWERS: Mapping[str, Any] = {"retry": Retry, "skip": Answer, "fail": Answer, "cancel": Answer}


def _readers() -> Sequence[Readers]:
    from adapters.files.limits import LEGACY_MEMORY_BYTES

    # Short steps read small documents.
    slots = ("DOCFLOW_ACTIVITY_SLOTS", "DOCFLOW_LOCAL_SLOTS")
    return (Readers(memory_bytes=LEGACY_MEMORY_BYTES, slots=slots),)


IMPORTS = Pipeline(
    name="imports",
    title="Document import",
    task_queue=TASK_QUEUE,
    contracts="workflows.imports",
    activities_package="activities.imports",
    runs=(
        RunKind(
            workflow="DocumentImport",
            pattern=_pattern(),
            parse=_key,
            page=_page,
            row=_row,
            status=ImportStatus,
            answers=_ANSWERS,
            report=True,
            states=(
                ImportState.PARKED,
                WAITING,
                ImportState.RUNNING,
                ImportState.FAILED,
                ImportState.TERMINATED,
                ImportState.CANCELLED,
                ImportState.SKIPPED,
                ImportState.COMPLETED,
            ),
        ),
    ),
    workflows=_workflows,
    settings=_settings,
    open=_open,
    activities=activities,
    own_states=tuple(ImportState),
    rejected_rows=("rejected",),
    # No installation does without a worker of imports.
    tells_of_runs=True,
    open_rows=_open_rows,
    named_probes=_named_probes,
    readers=_readers,
    kept_rows=_kept_rows,
    schedules_of_settings=_schedules,
    worker_help="Work on document imports.",
    optional=False,
    errands={
        **QUEUE_ERRANDS,
        "start": "workers.imports.errands:start",
        "look": "workers.imports.errands:look",
    },
    bridges=(
        Bridge(
            name="service-bus",
            help="Receive import messages from Service Bus and start their runs.",
            settings=_bridge_settings,
            run="workers.imports.bridge:receive",
            requirements="workers.imports.bridge:queue_requirements",
            resubmission=Resubmission(
                setting="AZURE_SERVICE_BUS_QUEUE_NAME",
                queue=_queue_name,
                sender="workers.imports.bridge:SENDER",
                dead_letters="workers.imports.bridge:dead_letters",
            ),
        ),
    ),
    gateway="workers.imports.pages:open_part",
    naming="a task id, project/task or import/project/task of an import",
    corrects=("retry",),
    changes=("retry",),
    checks="workers.imports.bridge:checks",
)
