"""What can be done to runs of batches, cases and documents, by id."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from workers.batches import access
from workers.shared.register import Run
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs
from workflows.batches.events import ImportCancelled
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import BatchAnswer


class BatchVerbs:
    """What can be done to runs of batches, cases and documents."""

    pipeline = "batches"
    naming = "batch/CASE/BATCH, case/CASE or load/CASE/BATCH/DOCUMENT"
    states: Sequence[str] = tuple(LoaderStatus)
    filters: frozenset[str] = frozenset()
    corrects: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """There are no short forms."""
        return None

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Batches, as the database has them."""
        status = LoaderStatus(filters.state) if filters.state else None
        async with access.open_store(environment) as store:
            views = await store.list(limit=filters.limit, status=status)
        return [
            RunEntry(
                workflow_id=view.key.workflow_id,
                name=view.key.workflow_id,
                pipeline=self.pipeline,
                type="batch",
                state=view.status,
                since=view.updated_at,
                note=view.reason,
                is_open=not view.status.terminal,
                columns={"dead letters": f"{view.dead_letters:,}"},
                row={
                    **view.key.model_dump(),
                    "reason": view.reason,
                    "documents": view.documents.model_dump(),
                    "dead_letters": view.dead_letters,
                },
            )
            for view in views
        ]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """`cancel` is an event of the case, the others are updates of the batch's run."""
        from workers.batches import service
        from workers.batches.settings import read_timings

        key: BatchKey = run.key
        timings = read_timings(environment)
        opened = await service.open_runs(environment)
        if request.verb == "cancel":
            await service.refuse_in_vain(opened, environment, key)
            event = ImportCancelled(**key.model_dump(), reason=request.reason, by=request.by)
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


VERBS: Final[RunVerbs] = BatchVerbs()
