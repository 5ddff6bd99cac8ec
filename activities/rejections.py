"""Messages that were rejected where there is no database."""

from temporalio import activity

from activities.failures import translate_failures
from adapters.ports import RejectionRecord
from contracts.rejections import Rejection


class Rejections:
    """Records rejected messages.

    Args:
        rejected: The record.
    """

    def __init__(self, rejected: RejectionRecord) -> None:
        self._rejected = rejected

    @activity.defn(name="rejections.record")
    @translate_failures
    async def record(self, rejection: Rejection) -> None:
        """Record one message; a second run finds it."""
        await self._rejected.record(
            rejection.queue,
            # The record knows a message that comes twice by its id.
            rejection.message_id or rejection.workflow_id,
            rejection.reason,
            rejection.description,
            rejection.body,
        )
