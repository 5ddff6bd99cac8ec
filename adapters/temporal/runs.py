"""How runs ended in Temporal, for `Runs`."""

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import RunEnd
from adapters.temporal.errors import RPC_TIMEOUT, temporal

_DOCUMENT_TYPE = SearchAttributeKey.for_keyword("DocumentType")
_OPEN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)


class TemporalRunEnds:
    """Asks Temporal.

    Args:
        client: Of the namespace in which the runs are.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def end(self, workflow_id: str) -> RunEnd | None:
        """How the newest run of an id ended; None: it is open, or continues as a new one."""
        handle = self._client.get_workflow_handle(workflow_id)
        with temporal():
            try:
                found = await handle.describe(rpc_timeout=RPC_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return RunEnd("unknown")
                raise
        # A paused run has no close time, whatever its status is called.
        if found.close_time is None or found.status is None or found.status in _OPEN:
            return None
        kind = found.typed_search_attributes.get(_DOCUMENT_TYPE)
        return RunEnd(found.status.name.lower(), found.close_time, kind or found.workflow_type)
