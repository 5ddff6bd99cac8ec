"""How a batch runs empty and how it ends."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from temporalio import activity

from activities.batches.records import FailedMessage
from activities.batches.store import SqlBatchStore
from activities.shared.failures import Heartbeater, translate_failures
from adapters.aws.functions import AwsFunctions
from adapters.aws.queues import AwsQueues
from adapters.aws.topic import AwsTopic
from adapters.ports.errors import NotYet
from adapters.temporal import TemporalOpenRuns
from workflows.batches.events import Announcement, Publication
from workflows.batches.names import BatchKey, LoaderStatus, Names, QueueDepth, Resource, names_of
from workflows.batches.runs import (
    Announce,
    BatchAttention,
    Closing,
    DocumentCounts,
    PolledDepth,
    RedriveInput,
    Redriven,
    StepInput,
    SweepInfo,
)
from workflows.shared.errors import RuleViolation

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
        queues: AwsQueues,
        runs: TemporalOpenRuns,
        store: SqlBatchStore,
        functions: AwsFunctions,
        topic: AwsTopic,
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
    async def redrive(self, order: RedriveInput) -> Redriven:
        """Note which pass it is, then move the dead letters back; a second run moves the rest.

        Noted first: a document that fails at once has to know whether it gets another chance. What
        is recorded as failed becomes a dead letter again, where it is asked for.
        """
        async with Heartbeater():
            await self._store.start_pass(order.key, order.number, order.final)
            if order.with_failed:
                await self._put_back(order)
            return await self._queues.redrive(names_of(order.plan.prefix, order.key))

    async def _put_back(self, order: RedriveInput) -> None:
        """Make every message that is recorded as failed a dead letter once more."""
        names, after = names_of(order.plan.prefix, order.key), ("", "")
        while page := await self._store.failed_messages(order.key, after, AT_ONCE):
            await asyncio.gather(*(self._put_back_one(names, message) for message in page))
            after = page[-1].place

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


class BatchCompletion:
    """Announces, records and cleans up.

    Args:
        store: Tables.
        topic: Where announcements go.
    """

    def __init__(self, store: SqlBatchStore, topic: AwsTopic) -> None:
        self._store = store
        self._topic = topic

    @activity.defn(name="batches.announce")
    @translate_failures
    async def announce(self, order: Announce) -> None:
        """Publish an announcement.

        A second run publishes it again under the same message id, by which receivers see that it
        is the same one. The run's id is part of it: a batch loaded again is announced again. What
        docflow does not use of the batch's events is passed on. Until its row says that
        LOADER_FINISHED is published, the sweeper publishes it where the run is gone.

        Raises:
            ApplicationError: `Permanent` when there is no such announcement.
        """
        try:
            event = Announcement(order.event_type)
        except ValueError as error:
            known = ", ".join(Announcement)
            raise RuleViolation(
                f"{order.event_type} is not an announcement; known are {known}"
            ) from error
        async with Heartbeater():
            passed_on = await self._store.passed_on(order.key, event)
            await self._topic.publish(order.plan, _publication(order, event, passed_on))
            if event is Announcement.LOADER_FINISHED:
                await self._store.announced(order.key)

    @activity.defn(name="batches.close")
    @translate_failures
    async def close(self, closing: Closing) -> DocumentCounts:
        """Record how a batch ended; a second run changes nothing and answers the same.

        Returns:
            Its documents by state.
        """
        await self._store.close(closing)
        return await self._store.counts(closing.key)

    @activity.defn(name="batches.call")
    @translate_failures
    async def call(self, attention: BatchAttention) -> None:
        """Record why people are asked to look at an open batch, or that they no longer are."""
        await self._store.call(attention.key, attention.reason)

    @activity.defn(name="batches.sweep_facts")
    @translate_failures
    async def sweep_facts(self, key: BatchKey) -> SweepInfo:
        """Read what the sweep of a batch has to know of its row; changes nothing."""
        async with Heartbeater():
            facts = await self._store.facts(key)
        if facts is None:
            return SweepInfo()
        return SweepInfo(
            processing=facts.status is LoaderStatus.PROCESSING,
            cancelled=facts.cancelled,
            unannounced=facts.status if facts.unannounced and facts.status.terminal else None,
            not_loaded=max(facts.dead_letters, int(facts.lost is not None)),
        )

    @activity.defn(name="batches.count")
    @translate_failures
    async def count(self, key: BatchKey) -> DocumentCounts:
        """Count the documents of a batch by state."""
        return await self._store.counts(key)

    @activity.defn(name="batches.truncate")
    @translate_failures
    async def truncate(self, key: BatchKey) -> None:
        """Empty the temporary tables of a batch."""
        removed = await self._store.truncate(key)
        activity.logger.info("%d temporary rows of %s removed", removed, key)


def _publication(order: Announce, event: Announcement, passed_on: Mapping[str, Any]) -> Publication:
    return Publication(
        event_type=event,
        case_id=order.key.case_id,
        batch_id=order.key.batch_id,
        status=order.status,
        documents=order.documents and order.documents.model_dump(),
        message_id=f"{order.key.workflow_id}/{activity.info().workflow_run_id}/{event}",
        passed_on=dict(passed_on),
    )
