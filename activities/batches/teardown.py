"""What a batch had in the cloud, removed one resource at a time.

Nothing has to be remembered for it: resources are found by their names, and one that is gone
already is removed.
"""

from typing import Final

from temporalio import activity

from activities.batches.calls import to_its_end
from activities.failures import translate_failures
from adapters.ports import BatchFunctions, BatchGrants, BatchQueues, BatchTopic, Denied
from contracts.batches import Names, ResourceState, StepDone, StepInput, names_of

_NO_FUNCTION: Final = StepDone(
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
        queues: BatchQueues,
        topic: BatchTopic,
        functions: BatchFunctions,
        grants: BatchGrants,
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
        return _gone(await self._topic.unsubscribe(_names(work), work.plan))

    @activity.defn(name="batches.detach_mapping")
    @translate_failures
    @to_its_end
    async def detach_mapping(self, work: StepInput) -> StepDone:
        """Stop invocations of the function; retried until the mapping is gone."""
        if not work.plan.with_function:
            return _NO_FUNCTION
        return _gone(await self._functions.detach(_names(work)))

    @activity.defn(name="batches.delete_function")
    @translate_failures
    @to_its_end
    async def delete_function(self, work: StepInput) -> StepDone:
        """Delete the function, and its reservation with it."""
        if not work.plan.with_function:
            return _NO_FUNCTION
        return _gone(await self._functions.delete(_names(work).function, work.key.workflow_id))

    @activity.defn(name="batches.revoke_permissions")
    @translate_failures
    @to_its_end
    async def revoke_permissions(self, work: StepInput) -> StepDone:
        """Take back what the function's role was allowed for this batch.

        Batches have no policy any more; a sweep looks for one that a release before has left, as
        far as the worker may.
        """
        if not work.plan.with_function:
            return _NO_FUNCTION
        try:
            source = await self._functions.source(work.plan)
            return _gone(await self._grants.revoke(_names(work), source.role))
        except Denied as error:
            if not work.plan.static_permissions:
                raise
            return StepDone(state=ResourceState.GONE, note=f"not looked for: {error}"[:500])

    @activity.defn(name="batches.delete_queue")
    @translate_failures
    @to_its_end
    async def delete_queue(self, work: StepInput) -> StepDone:
        """Delete the queue with everything in it."""
        return _gone(await self._queues.delete_queue(_names(work).queue, work.key.workflow_id))

    @activity.defn(name="batches.delete_dead_letters")
    @translate_failures
    @to_its_end
    async def delete_dead_letters(self, work: StepInput) -> StepDone:
        """Delete the dead-letter queue, unless it holds something that is to be kept."""
        queue = _names(work).dead_letters
        if work.keep_dead_letters:
            depth = await self._queues.depth(queue)
            if depth is not None and depth.total > 0:
                return StepDone(
                    state=ResourceState.KEPT, note=f"{depth.total} dead letters are in {queue}"
                )
        return _gone(await self._queues.delete_queue(queue, work.key.workflow_id))


def _gone(was_there: bool) -> StepDone:
    return StepDone(state=ResourceState.GONE, note=None if was_there else "was gone already")


def _names(work: StepInput) -> Names:
    return names_of(work.plan.prefix, work.key)
