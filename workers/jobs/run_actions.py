"""What can be done to runs of jobs, by id."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from workers.shared.register import Run
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.run_actions import (
    AnswerRequest,
    Report,
    RunActions,
    send_answer,
)


class JobRunActions:
    """What can be done to jobs, their stages and batches."""

    pipeline = "jobs"
    naming = "job/ID, or the first 8 characters of ID or more"
    corrects: frozenset[str] = frozenset({"retry"})
    changes: frozenset[str] = frozenset()

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb; `retry` takes corrected parameters as a JSON object.

        Raises:
            InvalidRequest: The parameters are not a JSON object.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        parameters = correction_of(request.correction, "parameters")
        return await send_answer(environment, run, request, parameters=parameters)

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{run.workflow_id} has no report")


RUN_ACTIONS: Final[RunActions] = JobRunActions()
