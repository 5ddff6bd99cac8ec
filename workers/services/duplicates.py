"""A message whose run was started before: the same message again, or another one."""

from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecutionStatus

from contracts.origins import MEMO
from workers.services.bodies import RefusedMessage
from workers.services.intake import START_TIMEOUT
from workers.services.standing import standing
from workers.services.verdicts import KEY_REUSED


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The newest run of a workflow id."""

    workflow_id: str
    status: WorkflowExecutionStatus
    digest: str | None
    """None: it was started by a release that kept none."""

    @property
    def is_open(self) -> bool:
        """It has not ended."""
        return self.status is WorkflowExecutionStatus.RUNNING

    @property
    def terminated(self) -> bool:
        """It was ended from outside, and what it held is free again."""
        return self.status is WorkflowExecutionStatus.TERMINATED

    def refuse_other(self, digest: str) -> None:
        """Refuse a message that is not the one that the run was started by.

        Raises:
            RefusedMessage: It is another one.
        """
        if self.digest in (None, digest):
            return
        raise RefusedMessage(
            KEY_REUSED,
            f"{self.workflow_id} was started by a message with other content and "
            f"{standing(self.status)}: this message was not used; send it again under a key that "
            "was not used before",
        )


async def earlier_run(client: Client, workflow_id: str) -> EarlierRun:
    """The run that a start has met.

    Raises:
        RPCError: Temporal does not answer, or has forgotten the run meanwhile.
    """
    found = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=START_TIMEOUT)
    digest = (await found.memo()).get(MEMO)
    return EarlierRun(
        workflow_id,
        found.status or WorkflowExecutionStatus.RUNNING,
        digest if isinstance(digest, str) else None,
    )
