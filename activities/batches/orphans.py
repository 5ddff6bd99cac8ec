"""Finds what runs that were terminated left behind."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import (
    BatchFunctions,
    BatchGrants,
    BatchQueues,
    BatchStore,
    BatchTopic,
    Denied,
    OpenRuns,
)
from contracts.batches import LEFT_ALONE, BatchKey, BatchPlan, Orphans, SweepOrder
from domain.batches.resources import FoundResource
from domain.batches.validation import is_strange, is_young, only_dead_letters


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
        queues: BatchQueues,
        topic: BatchTopic,
        functions: BatchFunctions,
        grants: BatchGrants,
        runs: OpenRuns,
        plan_defaults: BatchPlan,
        store: BatchStore | None = None,
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
    async def orphans(self, order: SweepOrder) -> Orphans:
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
        alone = only_dead_letters(made)
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
