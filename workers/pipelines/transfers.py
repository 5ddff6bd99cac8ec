"""The register of `transfers`: events, the jobs that they start, and their queues."""

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from contracts.answers import Answer, Retry
from contracts.dependencies import WAITING, Dependency
from contracts.transfers import (
    FILE_EVENT,
    FILE_JOB,
    TASK_QUEUE,
    TRANSFER_PREFIX,
    WATCH,
    CopyRetentionOrder,
    TransferRetry,
    TransferStatus,
    TransferView,
)
from contracts.transfers.key_expiry import KeyWarningsOrder
from workers.pipelines import transfer_clocks, transfer_resubmission
from workers.pipelines.base import Bridge, Context, Lane, Pipeline, RunKind, load, scheduled

if TYPE_CHECKING:
    from activities.dependencies import NamedProbe, Probe
    from adapters.places.sftp_session import SftpSession
    from adapters.ports import KeptRows, OpenRows
    from domain.transfers.queues import Queue
    from workers.pipelines.schedules import Declared
    from workers.resources.common import Resources
    from workers.resources.transfers import TransfersOpened
    from workers.settings.transfers import EventHubSettings, StorageQueueSettings, TransferSettings

logger = logging.getLogger(__name__)

NAME: Final = "transfers"
_SENDER: Final = "workers.services.transfers.started_events:StartedEvents"
_KEYS: Final = "transfer-keys"
_KEY_WARNINGS: Final = "PartnerKeyWarnings"
_COPIES: Final = "transfer-copies"
_COPY_RETENTION: Final = "TransferCopyRetention"
_TRANSFER: Final = rf"{TRANSFER_PREFIX}/(?P<transfer>[0-9a-f]{{64}})"


def _workflows() -> Sequence[type]:
    from workflows.transfers.copy_retention import TransferCopyRetention
    from workflows.transfers.expected_files import ExpectedFiles, ExpectedFilesCheck
    from workflows.transfers.file_event import FileEvent
    from workflows.transfers.file_job import FileJob
    from workflows.transfers.key_warnings import PartnerKeyWarnings
    from workflows.transfers.watch_look import WatchLook

    return (
        FileEvent,
        FileJob,
        PartnerKeyWarnings,
        TransferCopyRetention,
        WatchLook,
        ExpectedFilesCheck,
        ExpectedFiles,
    )


def _settings(environment: Mapping[str, str]) -> "TransferSettings":
    from workers.settings.check import check_settings
    from workers.settings.transfer_watches import WatchSettings, clocks_of
    from workers.settings.transfers import (
        EndpointSettings,
        RouteSettings,
        TransferFileSettings,
        TransferSettings,
        queues_of,
    )

    groups = (
        TransferSettings,
        RouteSettings,
        EndpointSettings,
        TransferFileSettings,
        WatchSettings,
    )
    check_settings(environment, *groups, others=[queues_of, clocks_of])
    return TransferSettings.read(environment)


@asynccontextmanager
async def _open(
    context: Context, settings: "TransferSettings"
) -> AsyncGenerator["TransfersOpened"]:
    from adapters.database.transfers.partners import SqlPartnerStore
    from adapters.database.transfers.store import SqlTransferStore
    from adapters.places.pool import SessionPool
    from workers.resources.endpoints import endpoint_ports, partner_secrets
    from workers.resources.transfer_files import file_ports
    from workers.resources.transfers import route_store, transfer_resources, watch_loops_in
    from workers.settings.transfer_watches import watches_of
    from workers.settings.transfers import queues_of

    common, environment = context.resources, context.environment
    database, blobs, scratch = common.database, common.blobs, common.scratch
    secrets = partner_secrets(environment)
    files = file_ports(environment, blobs, SqlPartnerStore(database), secrets, scratch)
    queues, routes = queues_of(environment), route_store(environment, database)
    sessions: SessionPool[SftpSession] = SessionPool()
    async with sessions as pool:
        opened = transfer_resources(
            settings,
            queues,
            database,
            blobs,
            common.rejected,
            scratch,
            endpoint_ports(environment, database, blobs, files.staging, secrets, pool),
            files,
            load(_SENDER)(context.client, queues, SqlTransferStore(database)),
            load(_SENDER)(context.client, queues, SqlTransferStore(database), way_in=WATCH),
            routes,
        )
        watches = watches_of(environment)
        for loop in await watch_loops_in(opened.planning.settings, watches, routes):
            logger.warning("a loop: %s", loop)
        yield opened


def activities(common: "Resources", own: "TransfersOpened") -> Sequence[object]:
    """What every worker of transfers runs, of whichever queue."""
    from activities.transfers.archives import ArchiveSteps
    from activities.transfers.call_http import HttpCalling
    from activities.transfers.checksum import Checksums
    from activities.transfers.crypto import Crypto
    from activities.transfers.expected_files import Expecting
    from activities.transfers.fire_event import Firing
    from activities.transfers.job_end import JobClosing
    from activities.transfers.key_expiry import KeyExpiry
    from activities.transfers.plans import Planning
    from activities.transfers.read_file import FileReading
    from activities.transfers.receipt import CopyRemoval, Receipts
    from activities.transfers.reception import Receiving
    from activities.transfers.scan import Scanning
    from activities.transfers.sources import SourceSettling
    from activities.transfers.watches import Watching
    from activities.transfers.write_file import FileWriting

    return (
        Receiving(own.receiving),
        Planning(own.planning),
        JobClosing(own.closing),
        FileReading(own.ends),
        FileWriting(own.ends),
        HttpCalling(own.ends),
        SourceSettling(own.ends),
        Crypto(own.crypto),
        ArchiveSteps(own.archives),
        Scanning(own.scan),
        Checksums(own.staging),
        Firing(own.sender, own.staging),
        Receipts(own.receipts),
        CopyRemoval(own.copies),
        KeyExpiry(own.partners, own.openpgp),
        Watching(own.watches),
        Expecting(own.expected),
    )


def _probes(own: "TransfersOpened") -> Mapping[Dependency, "Probe"]:
    return {} if own.scanner is None else {Dependency.SCANNER: own.scanner.probe}


def _schedules() -> Mapping[str, "Declared"]:
    from datetime import timedelta

    from workers.pipelines.schedules import Declared, daily

    return {
        _KEYS: Declared(
            pipeline=NAME,
            workflow=_KEY_WARNINGS,
            task_queue=TASK_QUEUE,
            input=KeyWarningsOrder(),
            at=daily(6),
            # Each warning counts for days: the next run gives what one that was missed would have.
            catch_up=timedelta(hours=12),
        ),
        _COPIES: Declared(
            pipeline=NAME,
            workflow=_COPY_RETENTION,
            task_queue=TASK_QUEUE,
            input=CopyRetentionOrder(),
            at=daily(3),
            # The next run removes what one that was missed would have.
            catch_up=timedelta(hours=12),
        ),
    }


def _named_probes(own: "TransfersOpened") -> Mapping[Dependency, "NamedProbe"]:
    from activities.transfers.endpoints import partner_probe

    ends = own.ends
    return {Dependency.PARTNER: partial(partner_probe, ends.probing, ends.partners)}


def _lanes(environment: Mapping[str, str]) -> Sequence[Lane]:
    from workers.settings.transfers import queues_of

    return [
        Lane(
            queue.name,
            queue.task_queue,
            partial(_slots, queue),
            activities,
            workflows=_workflows,
            rate=queue.rate_per_second,
        )
        for queue in queues_of(environment).values()
    ]


def _slots(queue: "Queue", own: Any) -> int:
    return queue.slots


def _open_rows(own: "TransfersOpened") -> "OpenRows":
    from workers.resources.transfers import TransferRows

    return TransferRows(own.store, own.staging)


def _kept_rows(common: "Resources") -> Sequence["KeptRows"]:
    from adapters.database.transfers.retention import old_transfers
    from adapters.ports import KeptRows

    kept = old_transfers(common.database)
    return (KeptRows("status rows of transfers", common.keeps.status, kept),)


def _queue_settings(environment: Mapping[str, str]) -> "StorageQueueSettings":
    from workers.resources.transfer_queues import queue_addresses
    from workers.settings.check import check_settings
    from workers.settings.transfers import StorageQueueSettings, queues_of

    check_settings(environment, StorageQueueSettings, others=[queues_of])
    settings = StorageQueueSettings.read(environment)
    queue_addresses(settings, tuple(queues_of(environment)))
    return settings


def _hub_settings(environment: Mapping[str, str]) -> "EventHubSettings":
    from workers.settings.transfers import EventHubSettings

    return EventHubSettings.read(environment)


def _id(found: re.Match[str]) -> str:
    return found["transfer"]


def _page(transfer_id: str) -> str:
    return f"/transfers/{transfer_id}"


def _event_title(transfer_id: str) -> str:
    return f"Event {transfer_id[:8]}"


def _job_title(transfer_id: str) -> str:
    return f"Transfer {transfer_id[:8]}"


TRANSFERS = Pipeline(
    name=NAME,
    title="Transfer",
    task_queue=TASK_QUEUE,
    contracts="contracts.transfers",
    activities_package="activities.transfers",
    runs=(
        RunKind(
            workflow=FILE_EVENT,
            pattern=re.compile(_TRANSFER),
            parse=_id,
            title=_event_title,
            page=_page,
            status=TransferView,
            answers={"retry": Retry, "skip": Answer, "fail": Answer},
            states=(
                "parked",
                WAITING,
                "running",
                TransferStatus.INVALID.lower(),
                TransferStatus.GARBAGE.lower(),
                TransferStatus.FAILED.lower(),
                "skipped",
                TransferStatus.ASSIGNED.lower(),
            ),
            # The job is the document.
            is_document=False,
        ),
        RunKind(
            workflow=FILE_JOB,
            pattern=re.compile(f"{_TRANSFER}/job"),
            parse=_id,
            title=_job_title,
            page=_page,
            status=TransferView,
            answers={"retry": TransferRetry, "skip": Answer, "fail": Answer, "cancel": Answer},
            states=(
                "parked",
                WAITING,
                "running",
                TransferStatus.FAILED.lower(),
                TransferStatus.SUCCEEDED.lower(),
            ),
            parks_alike=True,
        ),
        scheduled(_KEYS, _KEY_WARNINGS),
        *transfer_clocks.RUNS,
        scheduled(_COPIES, _COPY_RETENTION),
    ),
    workflows=_workflows,
    settings=_settings,
    open=_open,
    activities=activities,
    lanes_of_settings=_lanes,
    open_rows=_open_rows,
    kept_rows=_kept_rows,
    probes=_probes,
    named_probes=_named_probes,
    schedules=_schedules,
    schedules_of_settings=transfer_clocks.declared,
    schedule_prefixes=transfer_clocks.SCHEDULE_PREFIXES,
    worker_help="Work on events and on the jobs of every queue, or with --queue on those of one.",
    activity_slots=16,
    # A processor is busy with two or three: more only let single events wait behind a burst.
    workflow_slots=4,
    activity_bytes=8 << 20,
    enabled_by="DOCFLOW_TRANSFERS_SETTINGS",
    commands={
        NAME: "workers.cli.transfers:app",
        "partners": "workers.cli.transfers.partners:app",
        "routes": "workers.cli.transfers.routes:app",
    },
    submit="workers.cli.transfers.submit:app",
    verbs="workers.services.transfers.verbs:VERBS",
    show="workers.cli.transfers.runs:show_run",
    parked="workers.cli.transfers.status:parked",
    gateway="workers.gateway.transfers.part:open_part",
    bridges=(
        Bridge(
            name="storage-queues",
            help="Receive events from Azure Storage Queues and start their transfers.",
            settings=_queue_settings,
            run="workers.bridges.transfer_queues:receive_queues",
            with_worker=False,
            resubmission=transfer_resubmission.STORAGE_QUEUES,
        ),
        Bridge(
            name="event-hub",
            help="Receive events from an Azure event hub and route them.",
            settings=_hub_settings,
            run="workers.bridges.transfer_queues:receive_hub",
            with_worker=False,
            resubmission=transfer_resubmission.EVENT_HUB,
        ),
    ),
    passthrough=(
        "workflows.transfers.assignment",
        "workflows.transfers.attempts",
        "workflows.transfers.job_end",
        "workflows.transfers.job_record",
        "workflows.transfers.progress",
        "workflows.transfers.receipt_steps",
        "workflows.transfers.sequence",
    ),
)
