"""What can be done to runs of batches, cases and documents, by id."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from contracts.batches import (
    LARGEST_ID,
    BatchAnswer,
    BatchKey,
    ImportCancelled,
    LoaderStatus,
)
from workers.services.errors import InvalidRequest
from workers.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs

if TYPE_CHECKING:
    from adapters.database.batches import SqlBatchStore

_ID: Final = rf"([1-9][0-9]{{0,8}}|{LARGEST_ID})"
_BATCH: Final = re.compile(f"batch/{_ID}/{_ID}")
_OTHERS: Final = re.compile(f"case/{_ID}|load/{_ID}/{_ID}/.+")


def key_of(workflow_id: str) -> BatchKey | None:
    """The batch of a workflow id; None: it names no batch."""
    found = _BATCH.fullmatch(workflow_id)
    return None if found is None else BatchKey(case_id=int(found[1]), batch_id=int(found[2]))


@asynccontextmanager
async def open_store(environment: Mapping[str, str]) -> AsyncGenerator["SqlBatchStore"]:
    """The tables of batches.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database import open_database, require_current
    from adapters.database.batches import SqlBatchStore
    from workers.settings.common import DatabaseSettings

    async with open_database(DatabaseSettings.read(environment).url) as database:
        await require_current(database)
        yield SqlBatchStore(database)


class BatchVerbs:
    """What can be done to runs of batches, cases and documents."""

    pipeline = "batches"
    naming = "batch/CASE/BATCH, case/CASE or load/CASE/BATCH/DOCUMENT"
    states: Sequence[str] = tuple(LoaderStatus)
    filters: frozenset[str] = frozenset()
    corrects: frozenset[str] = frozenset()

    def recognises(self, workflow_id: str) -> bool:
        """Ids of batches, cases and loads of documents."""
        return key_of(workflow_id) is not None or _OTHERS.fullmatch(workflow_id) is not None

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[str] | None:
        """There are no short forms."""
        return None

    def name(self, workflow_id: str) -> str:
        """The workflow id."""
        return workflow_id

    def offered(self, workflow_id: str) -> Sequence[str]:
        """Answers go to batches; cases and documents follow them."""
        return ("retry", "skip", "fail", "cancel") if key_of(workflow_id) else ()

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Batches, as the database has them."""
        async with open_store(environment) as store:
            # The table has no filter by status: a page of it is looked through.
            views = await store.list(None, filters.limit if filters.state is None else 10_000)
        entries = [
            RunEntry(
                workflow_id=view.key.workflow_id,
                name=view.key.workflow_id,
                pipeline=self.pipeline,
                type="batch",
                state=view.status,
                since=view.updated_at,
                note=view.reason,
                columns={"dead letters": f"{view.dead_letters:,}"},
                row={
                    **view.key.model_dump(),
                    "reason": view.reason,
                    "documents": view.documents.model_dump(),
                    "dead_letters": view.dead_letters,
                },
            )
            for view in views
            if filters.state in (None, view.status)
        ]
        return entries[: filters.limit]

    async def answer(
        self, environment: Mapping[str, str], workflow_id: str, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """`cancel` is an event of the case, the others are updates of the batch's run."""
        from workers.services.batches import runs
        from workers.settings.batches import read_timings

        key = key_of(workflow_id)
        assert key is not None, "no other run offers an answer"
        timings = read_timings(environment)
        opened = await runs.open_runs(environment)
        if request.verb == "cancel":
            event = ImportCancelled(case_id=key.case_id, batch_id=key.batch_id)
            await opened.send(event, timings)
        else:
            await opened.answer(
                key, request.verb, BatchAnswer(reason=request.reason, by=request.by)
            )
        return {**key.model_dump(), "answer": request.verb, "link": opened.link(workflow_id)}

    def report(
        self, environment: Mapping[str, str], workflow_id: str
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{workflow_id} has no report")


VERBS: Final[RunVerbs] = BatchVerbs()
