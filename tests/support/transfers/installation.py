"""Workers of transfers over real tables and a real server; endpoints are played by the test."""

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client

from activities.shared.failures import translate_failures
from activities.transfers.operators_files import read_queues
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.receipt import FinalizerDeps, JobClosing
from activities.transfers.reception import (
    Planning,
    PlanningPorts,
    Receiving,
    ReceivingPorts,
    RouteCache,
)
from activities.transfers.store import SqlRouteStore, SqlSequenceLocks, SqlTransferStore
from adapters.ports.places import PartnerAway
from tests.gateway.test_commands import Terminal
from tests.support.gateway import build_app, served, token
from tests.support.transfers.events import READ, WRITE
from tests.support.waiting import eventually
from workers.shared.register import Lane, Pipeline
from workers.shared.resources import Resources, open_resources
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.worker_factory import build_lanes, build_worker
from workers.transfers.factory import transfer_service
from workers.transfers.register import TRANSFERS
from workers.transfers.resources import settings_source
from workers.transfers.service import TransferService
from workers.transfers.settings import TransferSettings
from workers.transfers.starts import StartedEvents, TransferIntake
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency
from workflows.transfers.events import TransferStatus
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import (
    ActionInput,
    ActionResult,
    KeepCopyInput,
    KeptCopy,
    Manifest,
    ReceiptInput,
    SettleInput,
    SettleResult,
    StoredReceipt,
    TransferView,
    file_job_id,
)

QUEUES = """
queues:
- name: jobs
  handler: FileJobHandler
- name: jobstmsroute
  handler: FileJobHandler-TMSRoute
  priority: 2
"""
OLGA = Identity("olga", (), frozenset({OPERATOR}))


@dataclass
class Endpoints:
    """Actions that remember what they were asked, and fail as a test says."""

    away: set[str] = field(default_factory=set[str])
    """Partners that cannot be reached."""
    fails: dict[str, list[Exception]] = field(default_factory=lambda: defaultdict(list))
    """What the next calls raise, by name."""
    done: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Action, and id of the transfer."""

    @activity.defn(name="transfers.read_file")
    @translate_failures
    async def read_file(self, order: ActionInput) -> ActionResult:
        """Read one file of ten bytes."""
        return self._act("read", order)

    @activity.defn(name="transfers.write_file")
    @translate_failures
    async def write_file(self, order: ActionInput) -> ActionResult:
        """Write it."""
        return self._act("write", order)

    @activity.defn(name="transfers.settle_source")
    async def settle_source(self, order: SettleInput) -> SettleResult:
        """Leave it."""
        return SettleResult()

    @activity.defn(name="transfers.keep")
    async def keep(self, order: KeepCopyInput) -> KeptCopy:
        """Keep it for ever."""
        return KeptCopy(files=order.files, until=date(2999, 1, 1))

    @activity.defn(name="transfers.receipt")
    async def receipt(self, order: ReceiptInput) -> StoredReceipt:
        """A receipt of no content."""
        blob = BlobRef(name=f"receipts/{order.job.transfer_id}", size=1)
        return StoredReceipt(blob=blob, steps=len(order.steps), sha256="")

    async def probe(self, name: str) -> None:
        """Whether a partner can be reached."""
        if name in self.away:
            raise PartnerAway(name, "no route to host")

    def _act(self, name: str, order: ActionInput) -> ActionResult:
        partner = getattr(order.action, "partner", "")
        if partner in self.away:
            raise PartnerAway(partner, "no route to host")
        if self.fails[name]:
            raise self.fails[name].pop(0)
        self.done.append((f"{name} {partner}", order.job.transfer_id))
        blob = BlobRef(name=f"staging/{order.index}", size=10)
        return ActionResult(files=Manifest(files=1, bytes=10, blob=blob))


class NothingStaged:
    """A staging area that is empty."""

    async def remove(self, run: str) -> int:
        """Nothing is there."""
        return 0


@dataclass
class Installation:
    """What a test of whole transfers is given."""

    client: Client
    resources: Resources
    far: Endpoints
    store: SqlTransferStore
    routes: SqlRouteStore
    service: TransferService
    settings: Path

    def intake(self, queue: str | None = None) -> TransferIntake:
        """Of a queue whose messages are routed already, or of one whose are not."""
        found = self.service.queues[queue] if queue else None
        return TransferIntake(
            self.client,
            self.resources.rejected,
            way_in=queue or "intake",
            queue=found,
            known=self.store,
        )

    def configure(self, *actions: Mapping[str, Any], **fields: Any) -> None:
        """Write `jobsettings.json`: one job of each queue."""
        jobs = [
            {
                "Job": "orders",
                "Queue": queue,
                **fields,
                "Actions": {
                    "RetryFailureSource": 0,
                    "RetryFailureDestination": 0,
                    "List": actions or [READ, WRITE],
                },
            }
            for queue in self.service.queues
        ]
        self.settings.write_text(json.dumps({"Jobs": jobs}))

    async def states(self, transfer_id: str) -> list[str]:
        """Every state that a transfer was in."""
        return [each.status.value for each in await self.store.trail(transfer_id)]


@asynccontextmanager
async def open_installation(
    client: Client, database_url: str, folder: Path
) -> AsyncGenerator[Installation]:
    """Workers of events and of two queues, on a database at the newest schema."""
    environment = {
        "DATABASE_URL": database_url,
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
        "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
    }
    (folder / "queues.yaml").write_text(QUEUES)
    far = Endpoints()
    async with AsyncExitStack() as exits:
        resources = await exits.enter_async_context(open_resources(environment))
        database = resources.database
        own = _opened(environment, resources, client)
        register = _played_by(far)
        partners = SqlPartnerStore(database)
        for name in ("acme", "store"):
            await partners.put(Partner(name=name, kind=PlaceKind.FOLDER))
        routes = SqlRouteStore(database)
        await routes.put(RouteRule(queue="jobs", rule="1", source="TMS.Route"))
        await exits.enter_async_context(build_worker(client, register, resources, own))
        for lane in build_lanes(client, register, resources, own, environment=environment):
            await exits.enter_async_context(lane)
        service = transfer_service(environment, client, database)
        settings = folder / "jobsettings.json"
        opened = Installation(client, resources, far, own.store, routes, service, settings)
        opened.configure()
        yield opened


@dataclass(frozen=True)
class Opened:
    """What the activities are given that are not those of actions."""

    store: SqlTransferStore
    staging: NothingStaged
    receiving: ReceivingPorts
    planning: PlanningPorts
    closing: FinalizerDeps


def _opened(environment: Mapping[str, str], resources: Resources, client: Client) -> Opened:
    database, queues = resources.database, read_queues(QUEUES)
    store, turns = SqlTransferStore(database), SqlSequenceLocks(database)
    place = TransferSettings.read(environment).job_settings
    source = settings_source(place, resources.blobs, resources.scratch)
    staging: Any = NothingStaged()
    routes = RouteCache(SqlRouteStore(database))
    return Opened(
        store,
        staging,
        ReceivingPorts(
            store, routes, queues, resources.rejected, StartedEvents(client, queues, store)
        ),
        PlanningPorts(source, SqlPartnerStore(database), queues, turns, store),
        FinalizerDeps(store, staging),
    )


def _played_by(far: Endpoints) -> Pipeline:
    """The register, with actions and partners of the test."""

    def activities(common: Resources, own: Any) -> Sequence[object]:
        return (Receiving(own.receiving), Planning(own.planning), JobClosing(own.closing), far)

    def lanes(environment: Mapping[str, str]) -> Sequence[Lane]:
        named = TRANSFERS.lanes_in(environment)
        return [replace(lane, activities=activities) for lane in named]

    return replace(
        TRANSFERS,
        activities=activities,
        lanes_of_settings=lanes,
        probes=lambda own: {},
        named_probes=lambda own: {Dependency.PARTNER: far.probe},
    )


async def until(transfers: Installation, transfer_id: str, status: TransferStatus) -> None:
    """Wait until a transfer has a status."""

    async def has_status() -> bool:
        row = await transfers.store.get(transfer_id)
        return row is not None and row.status is status

    await eventually(has_status)


async def ended(transfers: Installation, transfer_id: str) -> TransferView:
    """Wait for the success of a transfer; what its run says of it."""
    await until(transfers, transfer_id, TransferStatus.SUCCEEDED)
    run = transfers.client.get_workflow_handle(file_job_id(transfer_id), result_type=TransferView)
    return await run.result()


@asynccontextmanager
async def at_terminal(transfers: Installation) -> AsyncGenerator[Terminal]:
    """An operator at a gateway over the installation."""
    queues = {"DOCFLOW_TRANSFERS_QUEUES": str(transfers.settings.parent / "queues.yaml")}
    app, _ = build_app(
        transfers.client, transfers.resources, allowed_hosts=("127.0.0.1",), environment=queues
    )
    async with served(app) as address:
        yield Terminal(address, token("ida", 1, "operator"))
