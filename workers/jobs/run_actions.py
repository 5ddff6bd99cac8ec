"""What can be done to runs of jobs, by id."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import Run
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest, NotFound
from workers.shared.services.run_actions import (
    AnswerRequest,
    Report,
    RunActions,
    send_answer,
)
from workflows.shared.parking import Decision

if TYPE_CHECKING:
    from workers.jobs.service import JobService
    from workers.shared.services.identity import Identity


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


class ServedJobs:
    """What a gateway does to jobs.

    Args:
        service: Of jobs.
    """

    def __init__(self, service: "JobService") -> None:
        self._service = service

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`retry` takes corrected parameters, which are checked as those of a new job are."""
        if request.verb == "cancel":
            await self._service.cancel(who, run.key, request.reason)
            return
        parameters = correction_of(request.correction, "parameters")
        decision = Decision(request.verb)
        await self._service.answer(
            who, run.key, decision, parameters=parameters, reason=request.reason
        )

    def report(self, who: "Identity", run: Run) -> AbstractAsyncContextManager[Report]:
        """No job has one."""
        raise NotFound(f"{run.workflow_id} has no report")


RUN_ACTIONS: Final[RunActions] = JobRunActions()
