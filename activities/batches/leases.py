"""What batches take of the limits of an account, before anything of them is built."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.failures import translate_failures
from adapters.ports.leases import Claim, Leases, LeaseWait
from contracts.batches import BatchKey, BatchPlan, ResourceState, StepDone, StepInput
from contracts.errors import NOT_YET

SHORTEST: Final = timedelta(seconds=5)
"""Until the first of those that wait are asked again; others are asked less often."""
FIRST: Final = 10
"""How many are asked that often: room that several batches have left is not idle for long, as none
is passed over by those behind it."""
LONGEST: Final = timedelta(minutes=5)
"""However many wait: those far behind are not asked for nothing every minute."""
KEPT: Final = timedelta(minutes=15)
"""A place is lost when nothing has asked for so long."""


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """What the account takes of all batches together."""

    filter_policies: int
    """Of the topic, for batches."""
    concurrency: int
    """That may be reserved for functions."""
    again: timedelta = SHORTEST
    """Until the first of those that wait are asked again."""


class BatchLeases:
    """Takes leases for batches; they are released in the transaction that ends a batch.

    Args:
        leases: Those of all runs.
        limits: Of the account.
    """

    def __init__(self, leases: Leases, limits: AccountLimits) -> None:
        self._leases = leases
        self._limits = limits

    @activity.defn(name="batches.take_leases")
    @translate_failures
    async def take_leases(self, work: StepInput) -> StepDone:
        """Take what the batch needs of the account, in the order in which batches first asked.

        Raises:
            ApplicationError: `NotYet`, with the position of the batch; the server asks again, as
                often as it takes, and nothing of it is in the history.
        """
        wait = await self._take(work.key, work.plan)
        if wait is None:
            return StepDone(state=ResourceState.READY)
        raise ApplicationError(
            f"position {wait.position} of those that wait for {wait.resource}",
            type=NOT_YET,
            next_retry_delay=min(self._limits.again * -(-wait.position // FIRST), LONGEST),
        )

    async def have_room(self, key: BatchKey, plan: BatchPlan) -> bool:
        """Take what the batch needs if there is room; else it has its place from now on."""
        return await self._take(key, plan) is None

    async def _take(self, key: BatchKey, plan: BatchPlan) -> LeaseWait | None:
        return await self._leases.take(key.workflow_id, list(self._claims(plan)), KEPT)

    def _claims(self, plan: BatchPlan) -> Iterator[Claim]:
        yield Claim(f"filter policies of {plan.topic_arn}", 1, self._limits.filter_policies)
        if plan.with_function:
            most = self._limits.concurrency
            yield Claim("reserved concurrency of functions", plan.concurrency, most)
