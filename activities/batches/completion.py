"""How a batch ends: announced, and recorded."""

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
    Publication,
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
        is the same one. The run's id is part of it: a batch loaded again is announced again.

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
        publication = Publication(
            event_type=event,
            case_id=order.key.case_id,
            batch_id=order.key.batch_id,
            status=order.status,
            message_id=f"{order.key.workflow_id}/{activity.info().workflow_run_id}/{event}",
        )
        async with Heartbeater():
            await self._topic.publish(order.plan, publication)

    @activity.defn(name="batches.close")
    @translate_failures
    async def close(self, closing: Closing) -> DocumentCounts:
        """Record how a batch ended; a second run changes nothing and answers the same.

        Returns:
            Its documents by state.
        """
        await self._store.close(closing)
        return await self._store.counts(closing.key)

    @activity.defn(name="batches.truncate")
    @translate_failures
    async def truncate(self, key: BatchKey) -> None:
        """Empty the temporary tables of a batch."""
        removed = await self._store.truncate(key)
        activity.logger.info("%d temporary rows of %s removed", removed, key)
