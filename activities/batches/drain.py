"""Watches a batch's queues run empty, and tries dead letters again."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import (
    BatchFunctions,
    BatchQueues,
    BatchStore,
    BatchTopic,
    FailedMessage,
    NotYet,
    OpenRuns,
)
from contracts.batches import (
    BatchKey,
    DocumentCounts,
    Names,
    PolledDepth,
    QueueDepth,
    Redriven,
    RedriveOrder,
    Resource,
    StepInput,
    names_of,
)

AT_ONCE: Final = 10
"""Messages that are put back side by side, each of 256 KB at most."""
LONGEST_STOP: Final = timedelta(minutes=5)
"""More than the server takes to notice that the worker of a load was lost."""
STOP_PAUSE: Final = 2.0
"""Seconds until they are looked at again; the attempts that a wait is given last for longer."""


class BatchDrain:
    """Looks at queues and loads.

    Args:
        queues: Queues and dead letters.
        runs: The open runs in Temporal.
        store: Tables.
        functions: Those of batches.
        topic: Where documents are published.
    """

    def __init__(
        self,
        queues: BatchQueues,
        runs: OpenRuns,
        store: BatchStore,
        functions: BatchFunctions,
        topic: BatchTopic,
    ) -> None:
        self._queues = queues
        self._runs = runs
        self._store = store
        self._functions = functions
        self._topic = topic

    @activity.defn(name="batches.look")
    @translate_failures
    async def look(self, work: StepInput) -> PolledDepth:
        """Count messages and open loads; what was deleted by someone else is named.

        In the order in which a document goes: a message that has left the queue before the first
        count shows as a load in the second, and one that has failed by then as a dead letter in
        the third. The other way round it could hide from all of them.
        """
        names, subscription = names_of(work.plan.prefix, work.key), work.subscription
        async with Heartbeater():
            at = datetime.now(UTC)
            queue = await self._queues.depth(names.queue)
            loads = await self._runs.open_loads(work.key)
            dead_letters = await self._queues.depth(names.dead_letters)
            works = not work.plan.with_function or await self._functions.exists(names.function)
            fed = not works or await self._is_fed(work, names, queue)
            listens = subscription is None or await self._topic.is_subscribed(subscription)
        there = {
            Resource.QUEUE: queue is not None,
            Resource.DEAD_LETTERS: dead_letters is not None,
            Resource.SUBSCRIPTION: listens,
            Resource.FUNCTION: works,
            Resource.MAPPING: fed,
        }
        return PolledDepth(
            at=at,
            queue=queue or QueueDepth(),
            dead_letters=dead_letters or QueueDepth(),
            loads=loads,
            missing=tuple(resource for resource, is_there in there.items() if not is_there),
        )

    async def _is_fed(self, work: StepInput, names: Names, queue: QueueDepth | None) -> bool:
        """Whether the function gets what waits in the queue; nothing is asked of an empty one."""
        if not work.plan.with_function or queue is None or not queue.visible:
            return True
        return await self._functions.is_fed(names)

    @activity.defn(name="batches.redrive")
    @translate_failures
    async def redrive(self, order: RedriveOrder) -> Redriven:
        """Note which pass it is, then move the dead letters back; a second run moves the rest.

        Noted first: a document that fails at once has to know whether it gets another chance. What
        is recorded as failed becomes a dead letter again, where it is asked for.
        """
        async with Heartbeater():
            await self._store.start_pass(order.key, order.number, order.final)
            if order.with_failed:
                await self._put_back(order)
            return await self._queues.redrive(names_of(order.plan.prefix, order.key))

    async def _put_back(self, order: RedriveOrder) -> None:
        """Make every message that is recorded as failed a dead letter once more."""
        names, after = names_of(order.plan.prefix, order.key), ("", "")
        while page := await self._store.failed_messages(order.key, after, AT_ONCE):
            await asyncio.gather(*(self._put_back_one(names, message) for message in page))
            after = (page[-1].document_id, page[-1].message_key)

    async def _put_back_one(self, names: Names, message: FailedMessage) -> None:
        key = f"{message.document_id} {message.message_key}"
        await self._queues.dead_letter(names, message.body, message.reason, key)

    @activity.defn(name="batches.cancel_loads")
    @translate_failures
    async def cancel_loads(self, key: BatchKey) -> DocumentCounts | None:
        """Stop every open load of a batch, and close the documents that were being loaded.

        A second run asks the loads that are left. Documents are closed once no load is open, so
        that none writes after it; the server makes the pauses. Loads that do not stop in time, as
        no worker runs them, are closed in the tables all the same.

        Returns:
            The documents of the batch by state; None in histories of releases before.

        Raises:
            ApplicationError: `Throttling` while loads are stopping.
        """
        info = activity.info()
        async with Heartbeater():
            asked = await self._runs.cancel_loads(key)
            waited = datetime.now(UTC) - info.scheduled_time
            if asked and waited < LONGEST_STOP:
                raise NotYet(f"{asked} loads of {key} are stopping", STOP_PAUSE)
            if asked:
                activity.logger.warning("%d loads of %s have not stopped yet", asked, key)
            return await self._store.stop_documents(key)
