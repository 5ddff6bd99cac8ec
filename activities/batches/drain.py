"""Watches a batch's queues run empty, and tries dead letters again."""

from datetime import UTC, datetime

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import BatchQueues, BatchStore, OpenRuns
from contracts.batches import (
    BatchKey,
    PolledDepth,
    QueueDepth,
    Redriven,
    RedriveOrder,
    StepInput,
    names_of,
)


class BatchDrain:
    """Looks at queues and loads.

    Args:
        queues: Queues and dead letters.
        runs: The open runs in Temporal.
        store: Tables.
    """

    def __init__(self, queues: BatchQueues, runs: OpenRuns, store: BatchStore) -> None:
        self._queues = queues
        self._runs = runs
        self._store = store

    @activity.defn(name="batches.look")
    @translate_failures
    async def look(self, work: StepInput) -> PolledDepth:
        """Count messages and open loads; a queue that is gone holds nothing.

        In the order in which a document goes: a message that has left the queue before the first
        count shows as a load in the second, and one that has failed by then as a dead letter in
        the third. The other way round it could hide from all of them.
        """
        names = names_of(work.plan.prefix, work.key)
        async with Heartbeater():
            at = datetime.now(UTC)
            queue = await self._queues.depth(names.queue)
            loads = await self._runs.open_loads(work.key)
            dead_letters = await self._queues.depth(names.dead_letters)
        return PolledDepth(
            at=at,
            queue=queue or QueueDepth(),
            dead_letters=dead_letters or QueueDepth(),
            loads=loads,
        )

    @activity.defn(name="batches.redrive")
    @translate_failures
    async def redrive(self, order: RedriveOrder) -> Redriven:
        """Note which pass it is, then move the dead letters back; a second run moves the rest.

        Noted first: a document that fails at once has to know whether it gets another chance.
        """
        async with Heartbeater():
            await self._store.start_pass(order.key, order.number, order.final)
            return await self._queues.redrive(names_of(order.plan.prefix, order.key))

    @activity.defn(name="batches.cancel_loads")
    @translate_failures
    async def cancel_loads(self, key: BatchKey) -> None:
        """Ask every open load of a batch to stop; a second run asks those that are left."""
        async with Heartbeater():
            asked = await self._runs.cancel_loads(key)
        activity.logger.info("%d loads of %s were asked to stop", asked, key)
