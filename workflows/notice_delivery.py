"""The delivery of one notice whose run does not wait for it."""

from temporalio import workflow

from contracts.notices import DELIVERY, NoticeOrder
from workflows.notices import send


@workflow.defn(name=DELIVERY)
class NoticeDelivery:
    """Sends one notice, and fails when it could not be sent within a day."""

    @workflow.run
    async def run(self, order: NoticeOrder) -> None:
        """Send it."""
        await send(order)
