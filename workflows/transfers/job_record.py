"""What a job writes about itself into the row of its transfer."""

from typing import Any

from temporalio import workflow

from activities.transfers.reception import Receiving
from contracts.transfers import FileJobOrder, StatusOrder, TransferStatus
from workflows import policies


def standing(order: FileJobOrder, status: TransferStatus, **fields: Any) -> StatusOrder:
    """What is written of a job now.

    Args:
        order: Of the job.
        status: The state of its transfer.
        fields: Further fields of the row.
    """
    return StatusOrder(
        transfer_id=order.transfer_id,
        status=status,
        at=workflow.now(),
        run=workflow.info().workflow_id,
        digest=order.digest,
        event=order.event,
        **fields,
    )


async def record(order: StatusOrder, summary: str) -> None:
    """Write it.

    Args:
        order: What is written.
        summary: Of the step, in Temporal's user interface.
    """
    await workflow.execute_local_activity_method(
        Receiving.record, order, summary=summary, **policies.SHORT
    )
