"""How a batch ends: announced, and recorded."""

from collections.abc import Mapping
from typing import Any

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import BatchStore, BatchTopic
from contracts.batches import (
    Announce,
    Announcement,
    BatchKey,
    Closing,
    DocumentCounts,
    LoaderStatus,
    Publication,
    SweepFacts,
)
from domain.errors import RuleViolation


class BatchCompletion:
    """Announces, records and cleans up.

    Args:
        store: Tables.
        topic: Where announcements go.
    """

    def __init__(self, store: BatchStore, topic: BatchTopic) -> None:
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

    @activity.defn(name="batches.sweep_facts")
    @translate_failures
    async def sweep_facts(self, key: BatchKey) -> SweepFacts:
        """Read what the sweep of a batch has to know of its row; changes nothing."""
        async with Heartbeater():
            facts = await self._store.facts(key)
        if facts is None:
            return SweepFacts()
        return SweepFacts(
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
