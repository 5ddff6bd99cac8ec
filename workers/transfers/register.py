"""The register of `transfers`: events, the jobs that they start, and their queues."""

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import (
    Bridge,
    Context,
    Lane,
    Pipeline,
    Resubmission,
    RunKind,
    RunRow,
    load,
    scheduled,
)
from workflows.shared.contracts import Answer, Retry
from workflows.shared.dependencies import WAITING, Dependency
from workflows.transfers.events import (
    FILE_EVENT,
    FILE_JOB,
    TASK_QUEUE,
    TRANSFER_PREFIX,
    WATCH,
    TransferStatus,
)
from workflows.transfers.runs import (
    CopyRetentionInput,
    KeyWarningsInput,
    TransferRetry,
    TransferView,
)
from workflows.transfers.watches import (
    EXPECTED_CHECK,
    EXPECTED_FILES,
    EXPECTED_PREFIX,
    GAP_PREFIX,
    WATCH_LOOK,
    WATCH_PREFIX,
    ExpectationCheckInput,
    ExpectedState,
    GapView,
    PollWatchInput,
)

if TYPE_CHECKING:
    from activities.shared.dependencies import NamedProbe, Probe
    from activities.transfers.operators_files import Queue
    from adapters.database.records import KeptRows
    from adapters.places.sftp_session import SftpSession
    from adapters.ports.records import OpenRows
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources
    from workers.transfers.resources import TransfersOpened
    from workers.transfers.settings import EventHubSettings, StorageQueueSettings, TransferSettings


SCHEDULE_PREFIXES: Final = (WATCH_PREFIX, EXPECTED_PREFIX)
_NAME: Final = r"[a-z0-9][a-z0-9-]*?"


def _scheduled(prefix: str, workflow: str) -> RunKind:
    pattern = re.compile(rf"schedule/{prefix}(?P<name>{_NAME})-(?P<at>[0-9]{{4}}-.*T.*)")
    return RunKind(
        workflow, pattern, lambda found: found["name"], scheduled=True, is_document=False
    )


def _gap(found: re.Match[str]) -> tuple[str, date]:
    return found["name"], date.fromisoformat(found["day"])


RUNS: Final = (
    _scheduled(WATCH_PREFIX, WATCH_LOOK),
    _scheduled(EXPECTED_PREFIX, EXPECTED_CHECK),
    RunKind(
        workflow=EXPECTED_FILES,
        pattern=re.compile(
            rf"{GAP_PREFIX}/(?P<name>{_NAME})/(?P<day>\d{{4}}-\d\d-\d\d)/(?P<state>[a-z-]+)"
        ),
        parse=_gap,
        title=lambda key: f"Expected files: {key[0]}, {key[1]}",
        status=GapView,
        answers={"skip": Answer},
        states=("parked", *(each.value for each in ExpectedState if each.value != "pending")),
        is_document=False,
    ),
)


def declared(environment: Mapping[str, str]) -> "Mapping[str, Declared] | None":
    """The schedules that the file of watches declares; None: none is named.

    Raises:
        SettingsError: The file is missing or wrong.
    """
    from workers.shared.declared_schedules import Declared, every
    from workers.transfers.settings import clocks_of

    clocks = clocks_of(environment)
    if clocks is None:
        return None
    # A look, or a check, finds whatever one that was missed would have found.
    catch_up = timedelta(minutes=10)
    watches = {
        f"{WATCH_PREFIX}{each.name}": Declared(
            pipeline=TASK_QUEUE,
            workflow=WATCH_LOOK,
            task_queue=TASK_QUEUE,
            input=PollWatchInput(watch=each),
            at=every(each.every_minutes),
            catch_up=catch_up,
        )
        for each in clocks.watches.values()
    }
    expected = {
        f"{EXPECTED_PREFIX}{each.name}": Declared(
            pipeline=TASK_QUEUE,
            workflow=EXPECTED_CHECK,
            task_queue=TASK_QUEUE,
            input=ExpectationCheckInput(expectation=each),
            at=every(each.every_minutes),
            catch_up=catch_up,
        )
        for each in clocks.expected.values()
    }
    return {**watches, **expected}


_SENT_AGAIN: Final = (
    "have its sender send the corrected event, or send it with `docflow transfer send FILE`"
)


def _intake_queue(environment: Mapping[str, str]) -> str | None:
    from workers.transfers.settings import INTAKE

    return environment.get(INTAKE, "").strip() or None


def _is_storage_queue(environment: Mapping[str, str], queue: str) -> bool:
    from workers.transfers.settings import queues_of

    return queue == _intake_queue(environment) or queue in queues_of(environment)


def _hub_name(environment: Mapping[str, str]) -> str:
    from workers.transfers.settings import EventHubSettings

    named = environment.get("DOCFLOW_TRANSFERS_EVENT_HUB_NAME", "").strip()
    return named or EventHubSettings.model_fields["hub"].default


STORAGE_QUEUES: Final = Resubmission(
    setting="DOCFLOW_TRANSFERS_INTAKE_QUEUE",
    queue=_intake_queue,
    owns=_is_storage_queue,
    instead=_SENT_AGAIN,
)
EVENT_HUB: Final = Resubmission(
    setting="DOCFLOW_TRANSFERS_EVENT_HUB_NAME", queue=_hub_name, instead=_SENT_AGAIN
)


logger = logging.getLogger(__name__)

NAME: Final = "transfers"
_SENDER: Final = "workers.transfers.starts:StartedEvents"
_KEYS: Final = "transfer-keys"
_KEY_WARNINGS: Final = "PartnerKeyWarnings"
_COPIES: Final = "transfer-copies"
_COPY_RETENTION: Final = "TransferCopyRetention"
_TRANSFER: Final = rf"{TRANSFER_PREFIX}/(?P<transfer>[0-9a-f]{{64}})"


def _workflows() -> Sequence[type]:
    from workflows.transfers.expected_files import ExpectedFiles, ExpectedFilesCheck
    from workflows.transfers.file_event import FileEvent
    from workflows.transfers.file_job import FileJob
    from workflows.transfers.scheduled import PartnerKeyWarnings, TransferCopyRetention, WatchLook

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
    from workers.shared.settings.check import check_settings
    from workers.transfers.settings import (
        EndpointSettings,
        RouteSettings,
        TransferFileSettings,
        TransferSettings,
        WatchSettings,
        clocks_of,
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
    from activities.transfers.partner_store import SqlPartnerStore
    from activities.transfers.store import SqlTransferStore
    from adapters.places.partner_places import SessionPool
    from workers.transfers.resources import (
        endpoint_ports,
        file_ports,
        partner_secrets,
        route_store,
        transfer_resources,
        watch_loops_in,
    )
    from workers.transfers.settings import queues_of, watches_of

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
    from activities.transfers.archives import ArchiveSteps, Scanning
    from activities.transfers.crypto import Checksums, Crypto
    from activities.transfers.custom import CustomActions
    from activities.transfers.read_file import FileReading, SourceSettling
    from activities.transfers.receipt import CopyRemoval, JobClosing, Receipts
    from activities.transfers.reception import Firing, Planning, Receiving
    from activities.transfers.watches import Expecting, KeyExpiry, Watching
    from activities.transfers.write_file import FileWriting, HttpCalling

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
        CustomActions(own.custom),
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

    from workers.shared.declared_schedules import Declared, daily

    return {
        _KEYS: Declared(
            pipeline=NAME,
            workflow=_KEY_WARNINGS,
            task_queue=TASK_QUEUE,
            input=KeyWarningsInput(),
            at=daily(6),
            # Each warning counts for days: the next run gives what one that was missed would have.
            catch_up=timedelta(hours=12),
        ),
        _COPIES: Declared(
            pipeline=NAME,
            workflow=_COPY_RETENTION,
            task_queue=TASK_QUEUE,
            input=CopyRetentionInput(),
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
    from workers.transfers.settings import queues_of

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
    from workers.transfers.resources import TransferRows

    return TransferRows(own.store, own.staging)


async def _kept_rows(common: "Resources") -> Sequence["KeptRows"]:
    from activities.transfers.store import old_transfers
    from adapters.database.records import KeptRows

    kept = old_transfers(common.database)
    return (KeptRows("status rows of transfers", common.keeps.status, kept),)


def _queue_settings(environment: Mapping[str, str]) -> "StorageQueueSettings":
    from workers.shared.settings.check import check_settings
    from workers.transfers.resources import queue_addresses
    from workers.transfers.settings import StorageQueueSettings, queues_of

    check_settings(environment, StorageQueueSettings, others=[queues_of])
    settings = StorageQueueSettings.read(environment)
    queue_addresses(settings, tuple(queues_of(environment)))
    return settings


def _hub_settings(environment: Mapping[str, str]) -> "EventHubSettings":
    from workers.transfers.settings import EventHubSettings

    return EventHubSettings.read(environment)


def _id(found: re.Match[str]) -> str:
    return found["transfer"]


def _row(transfer_id: str) -> RunRow:
    return RunRow(f"transfer/{transfer_id}", transfer_id, transfer_id)


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
    contracts="workflows.transfers",
    activities_package="activities.transfers",
    runs=(
        RunKind(
            workflow=FILE_EVENT,
            pattern=re.compile(_TRANSFER),
            parse=_id,
            title=_event_title,
            page=_page,
            row=_row,
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
            row=_row,
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
        *RUNS,
        scheduled(_COPIES, _COPY_RETENTION),
    ),
    workflows=_workflows,
    settings=_settings,
    open=_open,
    activities=activities,
    lanes_of_settings=_lanes,
    own_states=tuple(TransferStatus),
    open_rows=_open_rows,
    kept_rows=_kept_rows,
    probes=_probes,
    named_probes=_named_probes,
    schedules=_schedules,
    schedules_of_settings=declared,
    schedule_prefixes=SCHEDULE_PREFIXES,
    worker_help="Work on events and on the jobs of every queue, or with --queue on those of one.",
    activity_slots=16,
    # A processor is busy with two or three: more only let single events wait behind a burst.
    workflow_slots=4,
    activity_bytes=8 << 20,
    enabled_by="DOCFLOW_TRANSFERS_SETTINGS",
    naming="transfer/ID, transfer/ID/job, or the first 8 characters of ID or more",
    corrects=("retry",),
    gateway="workers.transfers.pages:open_part",
    errands={
        "start": "workers.transfers.errands:start",
        "test-partner": "workers.transfers.errands:test_partner",
        "show-host-key": "workers.transfers.errands:show_host_key",
        "accept-host-key": "workers.transfers.errands:accept_host_key",
        "add-partner-key": "workers.transfers.errands:add_partner_key",
        "partner-key-states": "workers.transfers.errands:partner_key_states",
    },
    bridges=(
        Bridge(
            name="storage-queues",
            help="Receive events from Azure Storage Queues and start their transfers.",
            settings=_queue_settings,
            run="workers.transfers.bridge:receive_queues",
            with_worker=False,
            resubmission=STORAGE_QUEUES,
        ),
        Bridge(
            name="event-hub",
            help="Receive events from an Azure event hub and route them.",
            settings=_hub_settings,
            run="workers.transfers.bridge:receive_hub",
            with_worker=False,
            resubmission=EVENT_HUB,
        ),
    ),
)
