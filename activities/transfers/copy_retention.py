"""`transfers.remove_copies`: kept copies whose last day is over."""

from collections.abc import Callable
from datetime import datetime

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.transfers.endpoints import now_utc
from adapters.ports.transfers import KeptCopies
from contracts.transfers import CopyRetentionOrder, CopyRetentionResult


class CopyRemoval:
    """Removes copies.

    Args:
        copies: Where they are.
        now: The time.
    """

    def __init__(self, copies: KeptCopies, now: Callable[[], datetime] = now_utc) -> None:
        self._copies, self._now = copies, now

    @activity.defn(name="transfers.remove_copies")
    @translate_failures
    async def remove_copies(self, order: CopyRetentionOrder) -> CopyRetentionResult:
        """Remove what was kept up to yesterday."""
        async with Heartbeater():
            removed = await self._copies.remove_before(self._now().date())
        return CopyRetentionResult(removed=removed)
