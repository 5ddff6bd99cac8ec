"""The register of `batches`: one batch of a case, its infrastructure and its documents."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from workers.shared.register import (
    Bridge,
    Context,
    Lane,
    Pipeline,
    Readers,
    Resubmission,
    RunKind,
    scheduled,
)
from workflows.batches.events import ImportCancelled
from workflows.batches.loads import GroupStatus, LoadResult
from workflows.batches.names import (
    LARGEST_ID,
    LOADING_TASK_QUEUE,
    TASK_QUEUE,
    BatchKey,
    LoaderStatus,
    Phase,
    key_of,
)
from workflows.batches.runs import BatchAnswer, BatchStatus, CaseStatus, SweepInput
from workflows.shared.dependencies import WAITING, Dependency

if TYPE_CHECKING:
    from activities.shared.dependencies import Probe
    from adapters.database.records import KeptRows
    from adapters.ports.records import OpenRows
    from workers.batches.resources import BatchResources
    from workers.batches.settings import BatchSettings
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources

NAME = "batches"
LOADING_SLOTS = 8
"""Groups of documents at once, each with several at once. Documents are read by processes of their
own, of which there are fewer: what more slots accept waits in the worker, where cases do not take
turns."""
_ID = rf"(?:[1-9][0-9]{{0,8}}|{LARGEST_ID})"
_BATCH = f"(?P<case>{_ID})/(?P<batch>{_ID})"


def _workflows() -> Sequence[type]:
    from workflows.batches.case_queue import BatchLifecycle, CaseQueue
    from workflows.batches.document_load import DocumentGroup, DocumentLoad
    from workflows.batches.sweeper import BatchSweeper

    return (CaseQueue, BatchLifecycle, BatchSweeper, DocumentGroup, DocumentLoad)


def _loading_workflows() -> Sequence[type]:
    from workflows.batches.document_load import DocumentGroup, DocumentLoad

    return (DocumentGroup, DocumentLoad)


def _settings(environment: Mapping[str, str]) -> "BatchSettings":
    from workers.batches.settings import BatchSettings

    return BatchSettings.read(environment)


@asynccontextmanager
async def _open(context: Context, settings: "BatchSettings") -> AsyncGenerator["BatchResources"]:
    from workers.batches.resources import open_batches

    async with open_batches(settings, context.resources.database, context.client) as opened:
        yield opened


def _open_rows(own: "BatchResources") -> "OpenRows":
    return own.store


async def _kept_rows(common: "Resources") -> Sequence["KeptRows"]:
    from activities.batches.store import old_documents
    from adapters.database.records import KeptRows

    return (
        KeptRows("documents of batches", common.keeps.documents, old_documents(common.database)),
    )


def activities(common: "Resources", own: "BatchResources") -> Sequence[object]:
    """What a worker of batches runs."""
    from activities.batches.drain import BatchCompletion, BatchDrain
    from activities.batches.provisioning import BatchOrphans, BatchProvisioning, BatchTeardown
    from activities.batches.validation import (
        BatchLeases,
        BatchPlans,
        BatchValidation,
        CaseBacklog,
        function_lock,
        queue_lock,
    )

    cloud = (own.queues, own.topic, own.functions, own.grants)
    prefix = own.plan.prefix
    lock = (
        function_lock(own.functions, prefix)
        if own.plan.with_function
        else queue_lock(own.queues, prefix)
    )
    plans, leases = BatchPlans(own.store, own.plan), BatchLeases(own.leases, own.limits)
    return (
        CaseBacklog(own.store, own.runs),
        BatchValidation(own.store, own.runs, lock, plans, leases),
        plans,
        leases,
        BatchProvisioning(*cloud),
        BatchDrain(own.queues, own.runs, own.store, own.functions, own.topic),
        BatchCompletion(own.store, own.topic),
        BatchTeardown(*cloud),
        BatchOrphans(*cloud, own.runs, own.plan, own.store),
        # Loads that a release before started on this task queue, or a function of one.
        *_loading(common, own),
    )


def _loading(common: "Resources", own: "BatchResources") -> Sequence[object]:
    from activities.batches.document_group import DocumentGroups
    from activities.batches.document_load import DocumentLoads

    documents = DocumentLoads(
        *(own.loads, own.store, common.blobs, own.texts, own.queues),
        *(own.plan.prefix, common.scratch),
    )
    groups = DocumentGroups(own.loads, common.blobs, own.texts, documents, common.scratch)
    return (documents, groups)


def _probes(own: "BatchResources") -> Mapping[Dependency, "Probe"]:
    from workflows.batches.names import names_of

    queue = names_of(own.plan.prefix, BatchKey(case_id=1, batch_id=1)).queue

    async def cloud() -> None:
        # The queue need not be there: any answer will do.
        await own.queues.depth(queue)

    return {Dependency.CLOUD: cloud}


def _case_event_settings(environment: Mapping[str, str]) -> "BatchSettings":
    from workers.batches.settings import CaseEventSettings

    return CaseEventSettings.read(environment)


def _case_events_queue(environment: Mapping[str, str]) -> str | None:
    """The last part of its URL, which is set under the present or the former name."""
    names = ("DOCFLOW_CASE_EVENTS_QUEUE_URL", "DOCFLOW_JOBS_QUEUE_URL")
    urls = (environment.get(name, "").strip() for name in names)
    return next((url.rstrip("/").rsplit("/", 1)[-1] for url in urls if url), None)


def _prefix(environment: Mapping[str, str]) -> str:
    from workers.batches.settings import DEFAULT_PREFIX

    return environment.get("DOCFLOW_BATCH_PREFIX", "").strip() or DEFAULT_PREFIX


def _is_of_a_batch(environment: Mapping[str, str], queue: str) -> bool:
    return key_of(_prefix(environment), queue) is not None


def _schedules() -> Mapping[str, "Declared"]:
    from datetime import timedelta

    from workers.shared.declared_schedules import Declared, every

    return {
        "batch-sweeper": Declared(
            pipeline=NAME,
            workflow="BatchSweeper",
            task_queue=TASK_QUEUE,
            input=SweepInput(),
            at=every(15),
            # The next one finds whatever one that was missed would have found.
            catch_up=timedelta(minutes=15),
        )
    }


def _batch(found: re.Match[str]) -> BatchKey:
    return BatchKey(case_id=int(found["case"]), batch_id=int(found["batch"]))


def _case(found: re.Match[str]) -> int:
    return int(found["case"])


def _batch_page(key: BatchKey) -> str:
    return f"/batches/{key.case_id}/{key.batch_id}"


def _case_page(case_id: int) -> str:
    return f"/batches/{case_id}"


def _batch_title(key: BatchKey) -> str:
    return str(key).capitalize()


def _case_title(case_id: int) -> str:
    return f"Case {case_id}"


_ANSWERS: Mapping[str, Any] = {"retry": BatchAnswer, "skip": BatchAnswer, "fail": BatchAnswer}


def _readers() -> Sequence[Readers]:
    from adapters.files.limits import MB, READER_MEMORY_BYTES
    from adapters.files.texts.pool import READ_AT_ONCE

    # Two processes are kept ready for each: one of docflow's own readers, one of a library.
    kept = 2 * 128 * MB
    return (
        Readers(
            memory_bytes=READER_MEMORY_BYTES,
            at_once=READ_AT_ONCE,
            kept_bytes=kept,
            in_activity_bytes=True,
        ),
    )


BATCHES = Pipeline(
    name=NAME,
    title="Batch",
    task_queue=TASK_QUEUE,
    contracts="workflows.batches",
    activities_package="activities.batches",
    runs=(
        RunKind(
            workflow="BatchLifecycle",
            pattern=re.compile(f"batch/{_BATCH}"),
            parse=_batch,
            title=_batch_title,
            page=_batch_page,
            status=BatchStatus,
            answers=_ANSWERS,
            events={"cancel": ImportCancelled},
            states=(
                Phase.PARKED,
                WAITING,
                *(phase for phase in Phase if phase not in (Phase.PARKED, Phase.DONE)),
                LoaderStatus.FAILED,
                LoaderStatus.INCOMPLETE,
                LoaderStatus.TERMINATED,
                LoaderStatus.CANCELLED,
                LoaderStatus.SKIPPED,
                LoaderStatus.COMPLETE,
            ),
            closed_may_need_attention=True,
        ),
        RunKind(
            workflow="CaseQueue",
            pattern=re.compile(f"case/(?P<case>{_ID})"),
            parse=_case,
            title=_case_title,
            page=_case_page,
            status=CaseStatus,
            is_document=False,
        ),
        RunKind(
            workflow="DocumentLoad",
            pattern=re.compile(f"load/{_BATCH}/.+"),
            parse=_batch,
            status=LoadResult,
        ),
        RunKind(
            workflow="DocumentGroup",
            pattern=re.compile(f"load-group/{_BATCH}/.+"),
            parse=_batch,
            status=GroupStatus,
            is_document=False,
        ),
        scheduled("batch-sweeper", "BatchSweeper"),
    ),
    workflows=_workflows,
    settings=_settings,
    open=_open,
    activities=activities,
    lanes=(
        Lane(
            "loading",
            LOADING_TASK_QUEUE,
            lambda own: LOADING_SLOTS,
            _loading,
            workflows=_loading_workflows,
        ),
    ),
    own_states=tuple(LoaderStatus),
    open_rows=_open_rows,
    kept_rows=_kept_rows,
    probes=_probes,
    worker_help="Work on batches and their documents, and maintain their schedules.",
    libraries=("xberg", "pypdfium2", "docx", "olefile", "oxmsg"),
    # Most of them wait for AWS.
    activity_slots=16,
    activity_bytes=256 << 20,
    readers=_readers,
    enabled_by="DOCFLOW_BATCH_TOPIC_ARN",
    bridges=(
        Bridge(
            name="case-events",
            help="Receive events of batches from the case-events queue and forward them to "
            "their cases.",
            settings=_case_event_settings,
            run="workers.batches.bridges:receive_case_events",
            requirements="workers.batches.setup:case_event_requirements",
            resubmission=Resubmission(
                setting="DOCFLOW_CASE_EVENTS_QUEUE_URL",
                queue=_case_events_queue,
                instead="send the event with `docflow batch start | finish | end | cancel | "
                "redrive CASE BATCH`, or have its publisher send the corrected message",
            ),
        ),
        Bridge(
            name="batch-loader",
            help="Receive documents from the queues of batches that have no function for it.",
            settings=_settings,
            run="workers.batches.bridges:receive",
            with_worker=False,
            needs_resources=False,
            resubmission=Resubmission(
                setting="DOCFLOW_BATCH_PREFIX",
                queue=lambda environment: f"{_prefix(environment)}_doc_loader_CASE_BATCH",
                owns=_is_of_a_batch,
                instead="have its publisher send the corrected message, under a document id of its "
                "own; `docflow batch redrive CASE/BATCH` tries the dead letters of a batch again",
            ),
        ),
    ),
    schedules=_schedules,
    requirements="workers.batches.setup:worker_requirements",
    naming="batch/CASE/BATCH, case/CASE or load/CASE/BATCH/DOCUMENT",
    errands={
        "start": "workers.batches.errands:start",
        "batch-resources": "workers.batches.errands:resources",
        "batch-failed-messages": "workers.batches.errands:failed_messages",
    },
    gateway="workers.batches.pages:open_part",
)
