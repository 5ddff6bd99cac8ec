"""Rejected messages recorded by a run, for what receives messages without a database."""

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from adapters.ports import Unavailable
from contracts.rejections import RECORD, Rejection
from workers.connect import reason_of
from workers.services.intake import START_TIMEOUT


class RecordingRuns:
    """Starts a run that records a message; a worker, which has the database, does it.

    Args:
        client: Of the namespace whose workers serve it.
        task_queue: Theirs.
    """

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Have a message recorded; the same one once.

        Raises:
            Unavailable: Temporal has not accepted it.
        """
        rejection = Rejection(
            queue=queue, message_id=message_id, reason=reason, description=description, body=body
        )
        try:
            await self._client.start_workflow(
                RECORD,
                rejection,
                id=rejection.workflow_id,
                task_queue=self._task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                static_summary="Record of a rejected message",
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return
        except RPCError as error:
            raise Unavailable(f"Temporal: {error.status.name}: {reason_of(error)}") from error
