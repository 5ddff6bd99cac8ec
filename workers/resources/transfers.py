"""What the `transfers` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from activities.transfers.archives import ArchivePorts
from activities.transfers.crypto import CryptoPorts
from activities.transfers.endpoints import EndpointPorts
from activities.transfers.expected_files import ExpectedPorts
from activities.transfers.job_end import ClosingPorts
from activities.transfers.plans import PlanningPorts
from activities.transfers.receipt import ReceiptPorts
from activities.transfers.reception import ReceivingPorts
from activities.transfers.route_cache import RouteCache
from activities.transfers.scan import ScanPorts
from activities.transfers.watches import WatchPorts
from adapters.database import Database
from adapters.database.transfers.expected import SqlExpectedStore
from adapters.database.transfers.partners import SqlPartnerStore
from adapters.database.transfers.routes import SqlRouteStore
from adapters.database.transfers.store import SqlTransferStore
from adapters.database.transfers.turns import SqlTurns
from adapters.database.transfers.watches import SqlWatchStore
from adapters.files.job_settings import LocalSettings, RemoteSettings, StoredSettings
from adapters.ports import Blobs, OpenRow, PortError, RejectionRecord
from adapters.ports.transfer_files import OpenPgp
from adapters.ports.transfers import (
    EventSender,
    KeptCopies,
    PartnerStore,
    RouteStore,
    SettingsSource,
    Staging,
    StartedJobs,
)
from adapters.scanning import Clamd
from contracts.transfers import file_job_id
from contracts.transfers.watches import Watch
from domain.errors import RuleViolation
from domain.transfers.job_settings import read_settings
from domain.transfers.queues import Queue
from domain.transfers.routing import RouteTable
from domain.transfers.watch_loops import watch_loops
from workers.resources.transfer_files import FilePorts
from workers.settings.transfers import BLOB, RouteSettings, TransferSettings


class Sender(EventSender, StartedJobs, Protocol):
    """Sends events, and knows the jobs that they have started."""


@dataclass(frozen=True)
class TransfersOpened:
    """The tables of transfers, and what their activities are given."""

    store: SqlTransferStore
    partners: PartnerStore
    queues: Mapping[str, Queue]
    staging: Staging
    receiving: ReceivingPorts
    planning: PlanningPorts
    closing: ClosingPorts
    ends: EndpointPorts
    """What actions at endpoints are given."""
    openpgp: OpenPgp
    crypto: CryptoPorts
    archives: ArchivePorts
    scan: ScanPorts
    receipts: ReceiptPorts
    copies: KeptCopies
    scanner: Clamd | None
    """None: the settings name none."""
    sender: EventSender
    watches: WatchPorts
    expected: ExpectedPorts


class TransferRows:
    """Rows of runs that are over; what such a run has staged is removed with its row.

    Args:
        store: The rows.
        staging: The bytes.
    """

    def __init__(self, store: SqlTransferStore, staging: Staging) -> None:
        self._store, self._staging = store, staging

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Transfers that have not ended."""
        return await self._store.open_rows(before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a transfer as failed, after its bytes: a row that stays open is seen again."""
        transfer_id = id.split("/")[1]
        if id == file_job_id(transfer_id):
            await self._staging.remove(transfer_id)
        return await self._store.terminate(id, reason, unchanged_since)


def transfer_resources(
    settings: TransferSettings,
    queues: Mapping[str, Queue],
    database: Database,
    blobs: Blobs,
    rejected: RejectionRecord,
    scratch: Path,
    ends: EndpointPorts,
    files: FilePorts,
    sender: Sender,
    watch_sender: EventSender,
    routes: RouteStore,
) -> TransfersOpened:
    """Wire the adapters of transfers.

    Args:
        settings: Of its workers.
        queues: By name.
        database: Where rows, rules and partners are kept.
        blobs: The container of documents.
        rejected: Keeps messages that are not events.
        scratch: Folder for temporary files.
        ends: What actions at endpoints are given.
        files: What actions on files are given.
        sender: Has events of jobs carried out.
        watch_sender: Has events of watches carried out.
        routes: The rules.
    """
    store, partners, turns = (
        SqlTransferStore(database),
        SqlPartnerStore(database),
        SqlTurns(database),
    )
    source = settings_source(settings.job_settings, blobs, scratch)
    return TransfersOpened(
        store=store,
        partners=partners,
        queues=queues,
        staging=files.staging,
        receiving=ReceivingPorts(store, RouteCache(routes), queues, rejected, sender),
        planning=PlanningPorts(source, partners, queues, turns, store, files.keeps_copies),
        closing=ClosingPorts(store, files.staging),
        ends=ends,
        openpgp=files.crypto.openpgp,
        crypto=files.crypto,
        archives=files.archives,
        scan=files.scan,
        receipts=files.receipts,
        copies=files.copies,
        scanner=files.scanner,
        sender=sender,
        watches=WatchPorts(
            ends.places, partners, SqlWatchStore(database), watch_sender, store, turns
        ),
        expected=ExpectedPorts(SqlExpectedStore(database), routes),
    )


async def watch_loops_in(
    source: SettingsSource, watches: Mapping[str, Watch], routes: RouteStore
) -> Sequence[str]:
    """Jobs that a watch may start again for the files that they write, as far as is known.

    What cannot be read now is passed over: the runs that need it say so.
    """
    if not watches:
        return ()
    try:
        settings = read_settings((await source.read()).text)
        rules = RouteTable(await routes.rules())
    except (PortError, RuleViolation):
        return ()
    return tuple(watch_loops(settings, watches, rules))


def route_store(environment: Mapping[str, str], database: Database) -> RouteStore:
    """Where the rules are kept, as the settings say.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = RouteSettings.read(environment)
    if settings.account is None:
        return SqlRouteStore(database)
    # Its SDK takes 5 MB of memory, which only installations with such a table need.
    from adapters.azure.route_table import AzureRouteTable

    return AzureRouteTable(settings.account, settings.table, retry_total=2)


def settings_source(place: str, blobs: Blobs, scratch: Path) -> SettingsSource:
    """Where the settings of jobs are, as the setting names it."""
    if place.startswith(BLOB):
        return StoredSettings(blobs, place.removeprefix(BLOB), scratch)
    return RemoteSettings(place) if "://" in place else LocalSettings(Path(place))
