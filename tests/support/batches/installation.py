"""An installation of batches with a cloud in memory: everything else is real."""

import asyncio
import itertools
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from temporalio.client import (
    Client,
    RPCTimeoutOrCancelledError,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from activities.batches.validation import AccountLimits
from adapters.database.engine import open_database
from adapters.database.models.batches import batches as batch_rows
from adapters.database.records import SqlLeases
from adapters.files.texts.pool import FileTexts
from adapters.temporal import TemporalOpenRuns
from tests.support.batches.scripted import TODAY
from tests.support.fresh_database import fresh_url
from tests.support.memory.blobs import MemoryBlobs
from tests.support.memory.cloud import MemoryCloud
from tests.support.waiting import eventually
from workers.batches.register import BATCHES
from workers.batches.resources import BatchResources
from workers.shared.register import activities_of
from workers.shared.resources import Resources
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import (
    Announcement,
    BatchEndFinished,
    CaseEvent,
    JobFinished,
    JobStarted,
    Publication,
)
from workflows.batches.names import BatchKey, LoaderStatus, Timings
from workflows.batches.runs import CaseInput
from workflows.shared import attributes
from workflows.shared.notifications import NotificationPolicies

QUICK = Timings(settle=0, poll=1, hold=0)
ROOMY = AccountLimits(filter_policies=200, concurrency=2_000)
TAKEN_SECONDS = 900
"""What a server with thousands of new cases may take to answer one event."""
RATES = {"clone": 15, "attach": 15, "reserve": 15, "delete_function": 15, "subscribe": 100}
"""Requests a second that AWS takes of an account; those of functions that change something share
their rate there, and each has it here."""


@dataclass
class BatchInstallation:
    """Cases with their table, and the other services, which end every batch that asks for it."""

    client: Client
    task_queue: str
    store: SqlBatchStore
    common: Resources
    resources: BatchResources
    cloud: MemoryCloud
    timings: Timings = QUICK
    idle: int = 3600
    watch: int = 1
    """Seconds between two looks of a case at its batch."""
    ends: bool = True
    """Other services answer BATCH_END_START."""
    order: list[BatchKey] = field(default_factory=list[BatchKey])
    """Batches as their loading began."""
    _answers: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    def activities(self) -> list[Callable[..., Any]]:
        """Those of the catalogue, all of them."""
        return list(activities_of(*BATCHES.activities(self.common, self.resources)))

    async def send(self, event: CaseEvent) -> WorkflowHandle[Any, Any]:
        """Send an event to its case, as the bridge does: again, until Temporal has taken it."""
        async with asyncio.timeout(TAKEN_SECONDS):
            for pause in itertools.chain((1, 2, 4, 8), itertools.repeat(15)):
                try:
                    return await self._send(event)
                except (RPCError, RPCTimeoutOrCancelledError):
                    await asyncio.sleep(pause)
            raise AssertionError("the pauses have no end")

    async def _send(self, event: CaseEvent) -> WorkflowHandle[Any, Any]:
        start = WithStartWorkflowOperation(
            CaseQueue.run,
            CaseInput(
                case_id=event.case_id, timings=self.timings, idle=self.idle, watch=self.watch
            ),
            id=event.key.case_workflow_id,
            task_queue=self.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            search_attributes=attributes.at_start("batches", "case", str(event.case_id)),
        )
        await self.client.execute_update_with_start_workflow(
            CaseQueue.take, event, start_workflow_operation=start
        )
        return await start.workflow_handle()

    def receive(self, announced: Publication) -> None:
        """Other services: note what begins, and answer what asks for an answer."""
        key = BatchKey(case_id=announced.case_id, batch_id=announced.batch_id)
        if announced.event_type is Announcement.LOADER_STARTED:
            self.order.append(key)
        if announced.event_type is Announcement.BATCH_END_START and self.ends:
            answer = self.send(BatchEndFinished(case_id=key.case_id, batch_id=key.batch_id))
            task = asyncio.create_task(answer)
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    def announced(self, key: BatchKey) -> list[str]:
        """What was announced about a batch."""
        return [
            one.event_type.value
            for one in self.cloud.published
            if (one.case_id, one.batch_id) == (key.case_id, key.batch_id)
        ]

    async def status(self, key: BatchKey) -> LoaderStatus | None:
        """What the table says about a batch; None: nothing."""
        view = await self.store.get(key)
        return view and view.status

    async def reaches(self, key: BatchKey, status: LoaderStatus) -> None:
        """Wait until the table says so of a batch."""

        async def reached() -> bool:
            return await self.status(key) is status

        await eventually(reached)

    async def loads(self, key: BatchKey) -> None:
        """Wait until the loading of a batch has begun."""

        async def begun() -> bool:
            return key in self.order

        await eventually(begun)

    async def ended(self, key: BatchKey) -> None:
        """Wait until the run of a batch has ended."""
        handle = self.client.get_workflow_handle(key.workflow_id)

        async def over() -> bool:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

        await eventually(over)


Installations = Callable[..., AbstractAsyncContextManager[BatchInstallation]]
"""Builds an installation whose runs have a worker; options are those of `BatchInstallation`."""


@asynccontextmanager
async def batch_installation(
    client: Client,
    folder: Path,
    task_queue: str,
    limits: AccountLimits = ROOMY,
    url: str | None = None,
    **options: Any,
) -> AsyncGenerator[BatchInstallation]:
    """Tables in a file of their own or an empty database, and a cloud in which nothing exists."""
    url = url or fresh_url()
    cloud = MemoryCloud()
    async with open_database(url) as database, FileTexts() as texts:
        store = SqlBatchStore(database)
        unused: Any = None
        batch = BatchResources(
            plan=TODAY,
            queues=cloud.queues,
            topic=cloud.topic,
            functions=cloud.functions,
            grants=cloud.grants,
            store=store,
            loads=SqlLoadStore(database),
            texts=texts,
            runs=TemporalOpenRuns(client),
            leases=SqlLeases(database),
            limits=limits,
        )
        common = Resources(
            database=database,
            rejected=unused,
            blobs=MemoryBlobs(),
            notices={},
            policies=NotificationPolicies(),
            scratch=folder,
        )
        installation = BatchInstallation(client, task_queue, store, common, batch, cloud, **options)
        cloud.listeners.append(installation.receive)
        yield installation


def new_case() -> int:
    """A case that no other test knows."""
    return uuid.uuid4().int % 1_000_000_000 + 1


def keys_of(case_id: int, batches: int) -> list[BatchKey]:
    """The first batches of a case."""
    return [BatchKey(case_id=case_id, batch_id=number) for number in range(1, batches + 1)]


async def send_shuffled(
    installation: BatchInstallation, dice: random.Random, *, cases: int, batches: int
) -> list[BatchKey]:
    """Send every event of many cases in any order, some of them twice; the batches."""
    chosen = dice.sample(range(1, 1_000_000_000), cases)
    keys = [key for case in chosen for key in keys_of(case, batches)]
    await installation.store.expect(keys)
    room = asyncio.Semaphore(20)

    async def send(event: CaseEvent) -> None:
        async with room:
            await installation.send(event)

    await asyncio.gather(*map(send, shuffled(keys, dice)))
    return keys


def shuffled(
    keys: Sequence[BatchKey], dice: random.Random, timings: Timings | None = None
) -> list[JobStarted | JobFinished]:
    """The events of batches in any order, a third of them twice."""
    events: list[JobStarted | JobFinished] = []
    for key in keys:
        events.append(JobStarted(case_id=key.case_id, batch_id=key.batch_id, timings=timings))
        events.append(JobFinished(case_id=key.case_id, batch_id=key.batch_id))
    events += dice.sample(events, len(events) // 3)
    dice.shuffle(events)
    return events


def limit_account(cloud: MemoryCloud, limits: AccountLimits, rates: Mapping[str, float]) -> None:
    """Let a cloud take no more than an account does, and be consistent after a while only.

    Args:
        cloud: In which nothing exists.
        limits: Those of the leases, and no room beyond them.
        rates: Calls a second, by their names.
    """
    cloud.filter_policies = limits.filter_policies
    cloud.reservable = limits.concurrency
    cloud.rates.update(rates)
    cloud.lost_deliveries = cloud.pending_looks = 1


async def parked(client: Client, task_queue: str) -> int:
    """How many runs wait for a person."""
    query = f"NeedsAttention = true AND TaskQueue = '{task_queue}'"
    return (await client.count_workflows(query)).count


async def all_complete(installation: BatchInstallation, keys: Sequence[BatchKey]) -> bool:
    """Whether every batch is complete."""
    # The list of batches counts the documents of each, which would cost more than the batches do.
    complete = func.count().filter(batch_rows.c.loader_status == LoaderStatus.COMPLETE.value)
    async with installation.common.database.reading() as connection:
        return await connection.scalar(select(complete)) == len(keys)
