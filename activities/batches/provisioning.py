"""What a batch has in the cloud: made, removed, and found when runs have left it behind.

What a batch needs in the cloud, made one resource at a time.

Each step may run twice and may find its work half done; its compensation stands in
`activities.batches.provisioning`.

What a batch had in the cloud, removed one resource at a time.

Nothing has to be remembered for it: resources are found by their names, and one that is gone
already is removed.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.batches.store import SqlBatchStore
from activities.batches.validation import to_its_end
from activities.shared.failures import Heartbeater, translate_failures
from adapters.aws.functions import AwsFunctions, AwsGrants
from adapters.aws.queues import AwsQueues
from adapters.aws.topic import AwsTopic
from adapters.ports.errors import Denied
from adapters.temporal import TemporalOpenRuns
from workflows.batches.names import BatchKey, BatchPlan, Names, ResourceState, names_of
from workflows.batches.runs import (
    LEFT_ALONE,
    CanaryCheckInput,
    DeliverySeen,
    Orphans,
    StepDone,
    StepInput,
    SweepInput,
)
from workflows.batches.validation import (
    FoundResource,
    delivery_failure,
    is_strange,
    is_young,
    remaining_dlq,
)
from workflows.shared.errors import RuleViolation

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
        queues: AwsQueues,
        topic: AwsTopic,
        functions: AwsFunctions,
        grants: AwsGrants,
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
    async def look_for_delivery(self, order: CanaryCheckInput) -> DeliverySeen:
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
        raise RuleViolation(delivery_failure(work))

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


_FUNCTION_GONE: Final = StepDone(
    state=ResourceState.GONE, note="no function: polled by docflow bridge batch-loader"
)


class BatchTeardown:
    """Removes the resources of batches.

    Args:
        queues: Queues and dead letters.
        topic: Where documents are published.
        functions: Functions, and what feeds them.
        grants: What functions may do.
    """

    def __init__(
        self,
        queues: AwsQueues,
        topic: AwsTopic,
        functions: AwsFunctions,
        grants: AwsGrants,
    ) -> None:
        self._queues = queues
        self._topic = topic
        self._functions = functions
        self._grants = grants

    @activity.defn(name="batches.unsubscribe")
    @translate_failures
    @to_its_end
    async def unsubscribe(self, work: StepInput) -> StepDone:
        """Let nothing more come in."""
        return _gone(await self._topic.unsubscribe(_names_of(work), work.plan))

    @activity.defn(name="batches.detach_mapping")
    @translate_failures
    @to_its_end
    async def detach_mapping(self, work: StepInput) -> StepDone:
        """Stop invocations of the function; retried until the mapping is gone."""
        if not work.plan.with_function:
            return _FUNCTION_GONE
        return _gone(await self._functions.detach(_names_of(work)))

    @activity.defn(name="batches.delete_function")
    @translate_failures
    @to_its_end
    async def delete_function(self, work: StepInput) -> StepDone:
        """Delete the function, and its reservation with it."""
        if not work.plan.with_function:
            return _FUNCTION_GONE
        return _gone(await self._functions.delete(_names_of(work).function, work.key.workflow_id))

    @activity.defn(name="batches.revoke_permissions")
    @translate_failures
    @to_its_end
    async def revoke_permissions(self, work: StepInput) -> StepDone:
        """Take back what the function's role was allowed for this batch.

        Batches have no policy any more; a sweep looks for one that a release before has left, as
        far as the worker may.
        """
        if not work.plan.with_function:
            return _FUNCTION_GONE
        try:
            source = await self._functions.source(work.plan)
            return _gone(await self._grants.revoke(_names_of(work), source.role))
        except Denied as error:
            if not work.plan.static_permissions:
                raise
            return StepDone(state=ResourceState.GONE, note=f"not looked for: {error}"[:500])

    @activity.defn(name="batches.delete_queue")
    @translate_failures
    @to_its_end
    async def delete_queue(self, work: StepInput) -> StepDone:
        """Delete the queue with everything in it."""
        return _gone(await self._queues.delete_queue(_names_of(work).queue, work.key.workflow_id))

    @activity.defn(name="batches.delete_dead_letters")
    @translate_failures
    @to_its_end
    async def delete_dead_letters(self, work: StepInput) -> StepDone:
        """Delete the dead-letter queue, unless it holds something that is to be kept."""
        queue = _names_of(work).dead_letters
        if work.keep_dead_letters:
            depth = await self._queues.depth(queue)
            if depth is not None and depth.total > 0:
                return StepDone(
                    state=ResourceState.KEPT, note=f"{depth.total} dead letters are in {queue}"
                )
        return _gone(await self._queues.delete_queue(queue, work.key.workflow_id))


def _gone(was_there: bool) -> StepDone:
    return StepDone(state=ResourceState.GONE, note=None if was_there else "was gone already")


def _names_of(work: StepInput) -> Names:
    return names_of(work.plan.prefix, work.key)


class BatchOrphans:
    """Finds orphans.

    Args:
        queues: Queues and dead letters.
        topic: Where documents are published.
        functions: Functions, and what feeds them.
        grants: What functions may do.
        runs: The open runs in Temporal.
        plan_defaults: What every batch of the installation has in common.
        store: Which batches have ended unannounced; None: that is not asked.
    """

    def __init__(
        self,
        queues: AwsQueues,
        topic: AwsTopic,
        functions: AwsFunctions,
        grants: AwsGrants,
        runs: TemporalOpenRuns,
        plan_defaults: BatchPlan,
        store: SqlBatchStore | None = None,
    ) -> None:
        self._queues = queues
        self._topic = topic
        self._functions = functions
        self._grants = grants
        self._runs = runs
        self._plan = plan_defaults
        self._store = store

    @activity.defn(name="batches.orphans")
    @translate_failures
    async def orphans(self, order: SweepInput) -> Orphans:
        """Name batches that left something, or the word of their end, and have no open run.

        Changes nothing.

        Whatever was made a moment ago is left alone, and so is a batch of which anything carries
        another owner's tag: names alone are not proof. A dead-letter queue that is alone and not
        empty was kept on purpose. A batch whose LOADER_FINISHED is not published is swept although
        nothing of it exists: its run was terminated at the very end.

        Returns:
            Up to `order.most` batches, by case and id, and those met on the way that are not ours.
        """
        grace = timedelta(seconds=order.grace)
        keys: list[BatchKey] = []
        strange: list[BatchKey] = []
        async with Heartbeater():
            unsaid = await self._unannounced(grace)
            batches = await self._batches()
            # Asked after the listing: a run that is open now may have made what was listed.
            now = datetime.now(UTC)
            for key in unsaid:
                batches.setdefault(key, [])
            for key in sorted(batches, key=lambda key: (key.case_id, key.batch_id)):
                made = batches[key]
                if is_young(made, now, grace) or await self._runs.is_open(key.workflow_id):
                    continue
                if not _all_ours(key, made):
                    strange.append(key)
                elif key in unsaid or not await self._are_kept(made):
                    keys.append(key)
                if len(keys) > order.most:
                    break
        return Orphans(
            keys=tuple(keys[: order.most]),
            more=len(keys) > order.most,
            not_ours=tuple(strange[:LEFT_ALONE]),
        )

    async def _unannounced(self, grace: timedelta) -> frozenset[BatchKey]:
        if self._store is None:
            return frozenset()
        return frozenset(await self._store.unannounced(datetime.now(UTC) - grace))

    async def _batches(self) -> dict[BatchKey, list[FoundResource]]:
        batches: dict[BatchKey, list[FoundResource]] = defaultdict(list)
        async for found in self.everything():
            batches[found.key].append(found)
        return batches

    async def everything(self) -> AsyncIterator[FoundResource]:
        """Whatever exists in the cloud and is called as docflow would call it."""
        plan = self._plan
        async for found in self._queues.found(plan.prefix):
            yield found
        async for found in self._topic.found(plan.prefix, plan.topic_arn):
            yield found
        if not plan.with_function:
            return
        async for found in self._functions.found(plan.prefix):
            yield found
        try:
            # Someone may have deleted it, which is no reason to leave everything else.
            source = await self._functions.source(plan)
            async for found in self._grants.found(plan.prefix, source.role):
                yield found
        except Denied as error:
            if not plan.static_permissions:
                raise
            activity.logger.info("policies of releases before are not looked for: %s", error)

    async def _are_kept(self, made: Sequence[FoundResource]) -> bool:
        """Whether all there is are dead letters that were kept on purpose."""
        alone = remaining_dlq(made)
        if alone is None:
            return False
        depth = await self._queues.depth(alone.name)
        return depth is None or depth.total > 0


def _all_ours(key: BatchKey, made: Sequence[FoundResource]) -> bool:
    strange = [found for found in made if is_strange(found)]
    if strange:
        activity.logger.warning(
            "%s is not swept: %s has one of our names but is not tagged as %s",
            *(key, ", ".join(f"{each.resource} {each.name}" for each in strange)),
            key.workflow_id,
        )
    return not strange
