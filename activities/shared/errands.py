"""What people ask of a pipeline's worker."""

from collections.abc import Awaitable, Callable

from temporalio import activity

from activities.shared.failures import Heartbeater, translate_failures
from workflows.shared.errands import ErrandInput, ErrandResult


class Errands:
    """Does what people ask of a pipeline's worker.

    Args:
        carry_out: Does it; what it refuses is an answer.
    """

    def __init__(self, carry_out: Callable[[ErrandInput], Awaitable[ErrandResult]]) -> None:
        self._carry_out = carry_out

    @activity.defn(name="errands.carry_out")
    @translate_failures
    async def carry_out(self, order: ErrandInput) -> ErrandResult:
        """Carry one errand out; a second run repeats it."""
        async with Heartbeater():
            return await self._carry_out(order)
