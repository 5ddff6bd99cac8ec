"""What a batch needs in the cloud, made one resource at a time.

Each step may run twice and may find its work half done; its compensation stands in
`activities.batches.teardown`.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.batches.calls import to_its_end
from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import BatchFunctions, BatchGrants, BatchQueues, BatchTopic
from contracts.batches import (
    DeliveryOrder,
    DeliverySeen,
    Names,
    ResourceState,
    StepDone,
    StepInput,
    names_of,
)
from domain.batches.resources import unproven
from domain.errors import RuleViolation

TIMEOUTS_HIDDEN: Final = 6
"""How often a function may time out before a message that it holds is seen by another: AWS asks
for six times, so that a throttled function does not use up a message's receives."""
HIDDEN_WITHOUT_FUNCTION: Final = 120
"""Seconds that the bridge has to start a document's load and settle its message."""

_READY: Final = StepDone(state=ResourceState.READY)
_NO_FUNCTION: Final = StepDone(
    state=ResourceState.READY, note="no function: polled by docflow bridge batch-loader"
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often delivery is looked for, in seconds."""

    first: float = 1.0
    """Before the second look; it doubles from look to look."""
    longest: float = 5.0
    again: float = 15.0
    """Between two canaries. The last one gets as long, also when workers were away meanwhile."""


class BatchProvisioning:
    """Makes the resources of batches.

    Args:
        queues: Queues and dead letters.
        topic: Where documents are published.
        functions: Functions, and what feeds them.
        grants: What functions may do.
        pace: How often delivery is looked for.
    """

    def __init__(
        self,
        queues: BatchQueues,
        topic: BatchTopic,
        functions: BatchFunctions,
        grants: BatchGrants,
        pace: Pace = Pace(),
    ) -> None:
        self._queues = queues
        self._topic = topic
        self._functions = functions
        self._grants = grants
        self._pace = pace

    @activity.defn(name="batches.create_queue")
    @translate_failures
    @to_its_end
    async def create_queue(self, work: StepInput) -> StepDone:
        """Make the queue; what it has received stays hidden for long enough to be worked on."""
        visibility = HIDDEN_WITHOUT_FUNCTION
        if work.plan.with_function:
            source = await self._functions.source(work.plan)
            visibility = TIMEOUTS_HIDDEN * source.timeout
        await self._queues.ensure_queue(_names(work), work.plan, work.key.workflow_id, visibility)
        return _READY

    @activity.defn(name="batches.create_dead_letters")
    @translate_failures
    @to_its_end
    async def create_dead_letters(self, work: StepInput) -> StepDone:
        """Make the dead-letter queue."""
        await self._queues.ensure_dead_letters(_names(work), work.plan, work.key.workflow_id)
        return _READY

    @activity.defn(name="batches.set_redrive_policy")
    @translate_failures
    @to_its_end
    async def set_redrive_policy(self, work: StepInput) -> StepDone:
        """Send what was received too often to the dead letters."""
        await self._queues.set_redrive_policy(_names(work), work.plan)
        return _READY

    @activity.defn(name="batches.set_queue_policy")
    @translate_failures
    @to_its_end
    async def set_queue_policy(self, work: StepInput) -> StepDone:
        """Let the topic send to the queue."""
        await self._queues.allow_topic(_names(work), work.plan)
        return _READY

    @activity.defn(name="batches.subscribe")
    @translate_failures
    @to_its_end
    async def subscribe(self, work: StepInput) -> StepDone:
        """Subscribe the queue to the events of its batch."""
        name = await self._topic.subscribe(_names(work), work.plan, work.key)
        return StepDone(state=ResourceState.READY, name=name)

    @activity.defn(name="batches.grant_permissions")
    @translate_failures
    @to_its_end
    async def grant_permissions(self, work: StepInput) -> StepDone:
        """Let the function's role use the secrets and database users of the plan.

        Once for all batches; for a batch that a release before began, with its queues.
        """
        if not work.plan.with_function:
            return _NO_FUNCTION
        source = await self._functions.source(work.plan)
        if work.plan.static_permissions:
            await self._grants.grant_once(work.plan, source.role)
            return _READY
        await self._grants.grant(_names(work), work.plan, source.role)
        return _READY

    @activity.defn(name="batches.create_function")
    @translate_failures
    @to_its_end
    async def create_function(self, work: StepInput) -> StepDone:
        """Clone the source function; tried again until the clone is active."""
        if not work.plan.with_function:
            return _NO_FUNCTION
        await self._functions.clone(_names(work), work.plan, work.key, work.key.workflow_id)
        return _READY

    @activity.defn(name="batches.attach_mapping")
    @translate_failures
    @to_its_end
    async def attach_mapping(self, work: StepInput) -> StepDone:
        """Let the queue invoke the function; tried again until the mapping is enabled."""
        if not work.plan.with_function:
            return _NO_FUNCTION
        await self._functions.attach(_names(work), work.plan)
        return _READY

    @activity.defn(name="batches.reserve_concurrency")
    @translate_failures
    @to_its_end
    async def reserve_concurrency(self, work: StepInput) -> StepDone:
        """Reserve the function's concurrency."""
        if not work.plan.with_function:
            return _NO_FUNCTION
        await self._functions.reserve(_names(work), work.plan)
        return _READY

    @activity.defn(name="batches.look_for_delivery")
    @translate_failures
    async def look_for_delivery(self, order: DeliveryOrder) -> DeliverySeen:
        """Look once whether what is published reaches the queue; the run waits between two looks.

        A second run publishes the same canary again.
        """
        async with Heartbeater():
            if order.send:
                await self._topic.send_canary(order.plan, order.key, order.canary)
            queue = names_of(order.plan.prefix, order.key).queue
            return DeliverySeen(arrived=await self._queues.has_proof(queue, order.canary))

    @activity.defn(name="batches.prove_delivery")
    @translate_failures
    async def prove_delivery(self, work: StepInput) -> StepDone:
        """Publish canaries until one of them arrives, for batches that a release before began.

        A filter policy may take a quarter of an hour to work, and what is published before is
        lost: publishers are notified only after this is done. Attempts share the time
        that is given.

        Raises:
            ApplicationError: `Permanent` when none has arrived in time.
        """
        names, info = _names(work), activity.info()
        canary = f"{work.key.workflow_id}/{info.attempt}"
        async with Heartbeater():
            deadline = info.scheduled_time + timedelta(seconds=work.delivery)
            for is_due, pause in self._looks(deadline):
                if is_due:
                    await self._topic.send_canary(work.plan, work.key, canary)
                if await self._queues.has_proof(names.queue, canary):
                    return _READY
                await asyncio.sleep(pause)
        raise RuleViolation(unproven(work))

    def _looks(self, deadline: datetime) -> Iterator[tuple[bool, float]]:
        """For every look, the last one at the end: is another canary due, and the pause after."""
        clock = asyncio.get_running_loop().time
        left = max((deadline - datetime.now(UTC)).total_seconds(), self._pace.again)
        ends, canary_at, pause = clock() + left, clock(), self._pace.first
        while (now := clock()) < ends:
            is_due = now >= canary_at
            if is_due:
                canary_at = now + self._pace.again
            yield is_due, min(pause, ends - now)
            pause = min(2 * pause, self._pace.longest)
        yield False, 0


def _names(work: StepInput) -> Names:
    return names_of(work.plan.prefix, work.key)
