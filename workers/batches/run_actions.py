"""What a gateway does to runs of batches, cases and documents."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from workers.shared.register import Run
from workers.shared.services.errors import NotFound
from workers.shared.services.run_actions import AnswerRequest, Report
from workflows.batches.events import CancelMode
from workflows.batches.names import BatchKey
from workflows.batches.runs import BatchStatus
from workflows.shared.parking import Decision

if TYPE_CHECKING:
    from workers.batches.service import BatchOverview
    from workers.shared.services.identity import Identity


class ServedBatches:
    """What a gateway does to batches.

    Args:
        service: Of batches.
    """

    def __init__(self, service: "BatchOverview") -> None:
        self._service = service

    async def details(self, who: "Identity", run: Run) -> Mapping[str, Any] | None:
        """A batch as its own operation shows it; a case and a load have their status."""
        from workers.batches.v1 import detail_of

        if run.kind.status is not BatchStatus:
            return None
        return detail_of(await self._service.get(who, run.key)).model_dump(mode="json")

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
