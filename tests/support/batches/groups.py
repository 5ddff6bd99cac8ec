"""Groups of documents as Temporal has them."""

from temporalio.client import Client

from contracts.batches import BatchKey, GroupOrder, LoadOrder
from tests.support.waiting import eventually
from workers.plugin import docflow_plugin


async def groups_of(address: str, key: BatchKey, at_least: int = 1) -> list[list[LoadOrder]]:
    """What every group of a batch was started with.

    Args:
        address: Of Temporal.
        key: The batch.
        at_least: So many groups are waited for.
    """
    client = await Client.connect(address, plugins=[docflow_plugin()])
    found: list[list[LoadOrder]] = []
    query = f"WorkflowId STARTS_WITH '{key.group_prefix}'"

    async def is_listed() -> bool:
        # The list is late by a moment.
        return (await client.count_workflows(query)).count >= at_least

    await eventually(is_listed)
    async for run in client.list_workflows(query):
        history = await client.get_workflow_handle(run.id).fetch_history()
        payloads = history.events[0].workflow_execution_started_event_attributes.input.payloads
        [order] = await client.data_converter.decode(payloads, [GroupOrder])
        found.append(list(order.loads))
    return found
