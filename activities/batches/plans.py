"""What a batch is built from."""

from temporalio import activity

from activities.failures import translate_failures
from adapters.ports import BatchStore
from contracts.batches import FEWEST_AT_ONCE, MOST_AT_ONCE, BatchKey, BatchPlan, names_of
from domain.batches.concurrency import granted
from domain.errors import RuleViolation


class BatchPlans:
    """Makes plans.

    Args:
        store: Tables.
        defaults: What every batch of the installation has in common.
    """

    def __init__(self, store: BatchStore, defaults: BatchPlan) -> None:
        self._store = store
        self._defaults = defaults

    @activity.defn(name="batches.plan")
    @translate_failures
    async def plan(self, key: BatchKey) -> BatchPlan:
        """Read what a batch is built from; the run keeps it.

        Returns:
            The installation's plan, with the concurrency of the case where it has one.

        Raises:
            ApplicationError: `Permanent` when a resource's name would be too long.
        """
        return await self.read(key)

    async def read(self, key: BatchKey) -> BatchPlan:
        """As the step does it, inside another one.

        Raises:
            RuleViolation: A resource's name would be too long.
        """
        try:
            names_of(self._defaults.prefix, key)
        except ValueError as error:
            raise RuleViolation(f"{key} cannot be built: {error}") from error
        facts = await self._store.facts(key)
        if facts is None or facts.concurrency is None:
            return self._defaults
        wanted = facts.concurrency
        concurrency = granted(wanted)
        if concurrency != wanted:
            activity.logger.warning(
                "max_processing_daemons of case %d is %d: %s runs with %d, because an event source "
                "mapping takes %d to %d",
                *(key.case_id, wanted, key, concurrency, FEWEST_AT_ONCE, MOST_AT_ONCE),
            )
        return self._defaults.model_copy(update={"concurrency": concurrency})
