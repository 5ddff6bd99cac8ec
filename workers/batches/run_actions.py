"""What can be done to runs of batches, cases and documents, by id."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import Run
from workers.shared.services.errors import InvalidRequest, NotFound
from workers.shared.services.run_actions import AnswerRequest, Report, RunActions
from workflows.batches.events import CancelMode, ImportCancelled
from workflows.batches.names import BatchKey
from workflows.batches.runs import BatchAnswer
from workflows.shared.parking import Decision

if TYPE_CHECKING:
    from workers.batches.service import BatchOverview
    from workers.shared.services.identity import Identity


class BatchRunActions:
    """What can be done to runs of batches, cases and documents."""

    pipeline = "batches"
    naming = "batch/CASE/BATCH, case/CASE or load/CASE/BATCH/DOCUMENT"
    corrects: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """`cancel` is an event of the case, the others are updates of the batch's run."""
        from workers.batches import access, service
        from workers.batches.settings import read_timings

        key: BatchKey = run.key
        timings = read_timings(environment)
        opened = await service.open_runs(environment)
        if request.verb == "cancel":
            event = ImportCancelled(**key.model_dump(), reason=request.reason, by=request.by)
            async with access.open_store(environment) as store:
                await service.refuse_in_vain(opened, store, event)
            await opened.send(event, timings)
        else:
            await opened.answer(
                key, request.verb, BatchAnswer(reason=request.reason, by=request.by)
            )
        return {**key.model_dump(), "answer": request.verb, "link": opened.link(run.workflow_id)}

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{run.workflow_id} has no report")


class ServedBatches:
    """What a gateway does to batches.

    Args:
        service: Of batches.
    """

    def __init__(self, service: "BatchOverview") -> None:
        self._service = service

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`cancel` is an event of the case, the others are updates of the batch's run."""
        key: BatchKey = run.key
        if request.verb == "cancel":
            await self._service.cancel(who, key, CancelMode.FULL, request.reason)
        else:
            await self._service.answer(who, key, Decision(request.verb), request.reason)

    def report(self, who: "Identity", run: Run) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise NotFound(f"{run.workflow_id} has no report")


RUN_ACTIONS: Final[RunActions] = BatchRunActions()
