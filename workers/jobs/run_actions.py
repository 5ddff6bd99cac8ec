"""What a gateway does to runs of jobs."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from workers.shared.register import Run
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import NotFound
from workers.shared.services.run_actions import (
    AnswerRequest,
    Report,
)
from workflows.jobs.runs import JOB
from workflows.shared.parking import Decision

if TYPE_CHECKING:
    from workers.jobs.service import JobService
    from workers.shared.services.identity import Identity


class ServedJobs:
    """What a gateway does to jobs.

    Args:
        service: Of jobs.
    """

    def __init__(self, service: "JobService") -> None:
        self._service = service

    async def details(self, who: "Identity", run: Run) -> Mapping[str, Any] | None:
        """A job with its stages; a part of one has its status."""
        if run.kind.workflow != JOB:
            return None
        return (await self._service.queries.get(who, run.key)).model_dump(mode="json")

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`retry` takes corrected parameters, which are checked as those of a new job are.

        `changes` are parameters too; texts among them are read as a person has typed them.
        """
        if request.verb == "cancel":
            await self._service.cancel(who, run.key, request.reason)
            return
        parameters = correction_of(request.correction, "parameters") or {}
        if request.changes:
            parameters |= await self._service.typed(who, run.key, request.changes)
        decision = Decision(request.verb)
        await self._service.answer(
            who, run.key, decision, parameters=parameters, reason=request.reason
        )

    def report(self, who: "Identity", run: Run) -> AbstractAsyncContextManager[Report]:
        """No job has one."""
        raise NotFound(f"{run.workflow_id} has no report")
