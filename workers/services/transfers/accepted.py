"""Events that Temporal has accepted and that have no row yet: no worker has checked them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from contracts.transfers import FileEventOrder, FileNotice, transfer_workflow_id
from domain.transfers.events import NoEvent, read_event
from workers.services.standing import standing


@dataclass(frozen=True, slots=True)
class AcceptedEvent:
    """An event whose run is known to Temporal alone."""

    transfer_id: str
    at: datetime
    """When it arrived."""
    event: FileNotice | None
    """None: the message is not an event, which its run will say."""
    ended: str | None
    """How its run ended before it wrote a row, as in `was terminated`; None: it is open."""


async def accepted_event(client: Client, transfer_id: str) -> AcceptedEvent | None:
    """The event that a run was started with; None: Temporal knows of no such run.

    Raises:
        RPCError: Temporal does not answer.
    """
    handle = client.get_workflow_handle(transfer_workflow_id(transfer_id))
    try:
        found = await handle.describe()
        order = await _order_of(client, handle)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    status = found.status or WorkflowExecutionStatus.RUNNING
    ended = None if status is WorkflowExecutionStatus.RUNNING else standing(status)
    return AcceptedEvent(transfer_id, order.arrived.astimezone(UTC), _event_of(order), ended)


async def _order_of(client: Client, handle: WorkflowHandle[Any, Any]) -> FileEventOrder:
    async for event in handle.fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        [order] = await client.data_converter.decode(payloads, [FileEventOrder])
        return order
    raise AssertionError("a history without its first event")


def _event_of(order: FileEventOrder) -> FileNotice | None:
    try:
        return read_event(order.body, order.arrived)
    except NoEvent:
        return None
