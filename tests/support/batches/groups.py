"""Groups of documents as Temporal has them."""

from collections import Counter
from collections.abc import Mapping

from temporalio.client import Client

from tests.support.waiting import eventually
from workers.shared.plugin import docflow_plugin
from workflows.batches.loads import DocumentGroupInput, DocumentLoadInput
from workflows.batches.names import BatchKey


async def groups_of(
    address: str, key: BatchKey, documents: Mapping[str, int] | None = None
) -> list[list[DocumentLoadInput]]:
    """What every group of a batch was started with.

    Args:
        address: Of Temporal.
        key: The batch.
        documents: In how many groups each of these is at least: waited for, as the list of runs
            is late by a moment.
    """
    client = await Client.connect(address, plugins=[docflow_plugin()])
    groups: list[list[DocumentLoadInput]] = []

    async def is_listed() -> bool:
        nonlocal groups
        groups = await _listed(client, key)
        return not Counter(documents or {}) - groups_with_documents(groups)

    await eventually(is_listed)
    return groups


def groups_with_documents(groups: list[list[DocumentLoadInput]]) -> Counter[str]:
    """In how many groups each document is."""
    return Counter(name for group in groups for name in {load.event.document_id for load in group})


async def _listed(client: Client, key: BatchKey) -> list[list[DocumentLoadInput]]:
    found: list[list[DocumentLoadInput]] = []
    async for run in client.list_workflows(f"WorkflowId STARTS_WITH '{key.group_prefix}'"):
        history = await client.get_workflow_handle(run.id).fetch_history()
        payloads = history.events[0].workflow_execution_started_event_attributes.input.payloads
        [order] = await client.data_converter.decode(payloads, [DocumentGroupInput])
        found.append(list(order.loads))
    return found
