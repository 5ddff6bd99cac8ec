"""The bridge of the case-events queue at work, and cases that only record their events."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.sqs import Pair
from workers.batches.bridges import run_case_event_bridge
from workers.shared.bridges.consumer import BridgeTotals, Retry
from workers.shared.bridges.sqs import Polling
from workflows.batches.case_queue import BatchLifecycle, CaseQueue
from workflows.batches.events import CaseEvent
from workflows.batches.names import TASK_QUEUE
from workflows.batches.runs import NoteEvents, WaitingBatches

QUICK = Retry(first_pause=0.05, longest_pause=0.3, hold=1)
ONE_BY_ONE = Polling(batch=1, wait=1, quiet=2)
TOGETHER = Polling(wait=1, quiet=2)


@dataclass
class RecordedEvents:
    """Stands for the table of batches: keeps what cases write down."""

    events: list[CaseEvent] = field(default_factory=list[CaseEvent])

    @activity.defn(name="batches.note")
    async def note(self, noted: NoteEvents) -> WaitingBatches:
        """Keep events."""
        self.events += noted.events
        return WaitingBatches()

    def of(self, case_id: int) -> list[CaseEvent]:
        """What one case wrote down, in order."""
        return [event for event in self.events if event.case_id == case_id]


@asynccontextmanager
async def working(client: Client, book: RecordedEvents) -> AsyncIterator[None]:
    """A worker that runs cases."""
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[CaseQueue, BatchLifecycle],
        activities=[book.note],
    ):
        yield


@dataclass
class BlockedEvents(RecordedEvents):
    """An unavailable table."""

    @activity.defn(name="batches.note")
    async def note(self, noted: NoteEvents) -> WaitingBatches:
        """Fail."""
        raise ApplicationError("the table is away")


def body(event_type: str, case_id: int, batch_id: int = 1, **more: Any) -> str:
    return json.dumps({"eventType": event_type, "caseId": case_id, "batchId": batch_id, **more})


def cases(count: int) -> list[int]:
    """Ids of cases that no other test uses."""
    first = random.randrange(1, 900_000_000)
    return list(range(first, first + count))


@asynccontextmanager
async def bridging(
    client: Client,
    queues: Pair,
    rejected: MemoryRejectedMessages,
    polling: Polling = ONE_BY_ONE,
) -> AsyncIterator[Callable[[], Awaitable[BridgeTotals]]]:
    """A bridge at work; the yielded call stops it."""
    stop = asyncio.Event()
    run = asyncio.create_task(
        run_case_event_bridge(
            client,
            queues.client,
            rejected,
            queue_url=queues.url,
            stop=stop,
            polling=polling,
            retry=QUICK,
        )
    )

    async def stopped() -> BridgeTotals:
        stop.set()
        return await run

    try:
        yield stopped
    finally:
        await stopped()


async def drain(
    client: Client,
    queues: Pair,
    rejected: MemoryRejectedMessages,
    polling: Polling = ONE_BY_ONE,
) -> BridgeTotals:
    return await run_case_event_bridge(
        client,
        queues.client,
        rejected,
        queue_url=queues.url,
        stop=asyncio.Event(),
        drain=True,
        polling=polling,
        retry=QUICK,
    )
