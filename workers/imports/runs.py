"""Import runs in Temporal: where one stands, how it ended, answers."""

from typing import Final

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from workers.shared.services.errors import TemporalUnavailable, WrongState
from workers.shared.services.runs import TemporalRuns, temporal_errors
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import ImportInput, ImportResult, ImportStatus, Retry
from workflows.shared.contracts import Answer

PIPELINE: Final = "imports"


class ImportRuns(TemporalRuns):
    """Import runs of one namespace."""

    async def status(self, workflow_id: str) -> ImportStatus | None:
        """Where a run stands, from its worker; None when there is no answer."""
        try:
            return await self.query(workflow_id, "status", ImportStatus)
        except TemporalUnavailable:
            return None

    async def message(self, workflow_id: str) -> ImportMessage | None:
        """The message of a run, as people have corrected it; None when there is no answer."""
        try:
            found = await self.query(workflow_id, "message", ImportInput)
        except TemporalUnavailable:
            return None
        return None if found is None else found.message

    async def result(self, workflow_id: str) -> ImportResult:
        """The result of a closed run, failed ones included.

        Raises:
            WrongState: It was terminated, cancelled in Temporal or timed out.
        """
        handle = self.client.get_workflow_handle(workflow_id, result_type=ImportResult)
        with temporal_errors():
            try:
                return await handle.result()
            except WorkflowFailureError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.details:
                    return ImportResult.model_validate(cause.details[0])
                raise WrongState(
                    f"the run of {workflow_id} ended without a result: {cause}",
                    workflow_id=workflow_id,
                ) from error

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        """Send an update (`retry`, `skip`, `fail`, `cancel`) and wait until it is applied.

        Raises:
            NotFound: There is no such open run.
            Refused: The run refused; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        return await self.update(workflow_id, name, answer, ImportStatus, PIPELINE)
