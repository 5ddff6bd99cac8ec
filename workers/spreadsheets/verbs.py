"""What can be done to runs of spreadsheets, by id."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic_core import to_jsonable_python

from workers import catalogue
from workers.shared.register import Run, recognise
from workers.shared.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs
from workflows.spreadsheets.mappings import FINAL, SpreadsheetState
from workflows.spreadsheets.runs import Answer, undo_id, workflow_id


class SpreadsheetVerbs:
    """What can be done to runs of spreadsheets."""

    pipeline = "spreadsheets"
    naming = "the UUID of a spreadsheet"
    states: Sequence[str] = tuple(SpreadsheetState)
    filters = frozenset({"type"})
    corrects: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """A bare uuid."""
        found = recognise(catalogue.PIPELINES, workflow_id(text.lower()))
        return None if found is None else [found]

    def name(self, run: Run) -> str:
        """The uuid of an import, the workflow id of any other run."""
        return run.key if run.workflow_id == workflow_id(run.key) else run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Imports of all organisations."""
        from activities.spreadsheets.import_rows import SqlSpreadsheetStatuses
        from activities.spreadsheets.records import ImportFilter
        from workers.shared.tables import open_tables

        async with open_tables(environment) as database:
            views = SqlSpreadsheetStatuses(database)
            page = await views.list(
                await views.organisations(),
                ImportFilter(
                    state=SpreadsheetState(filters.state) if filters.state else None,
                    import_type=filters.more.get("type"),
                ),
                size=filters.limit,
            )
        return [
            RunEntry(
                workflow_id=workflow_id(row.uuid),
                name=row.uuid,
                pipeline=self.pipeline,
                type=row.import_type,
                state=row.state,
                since=row.waiting_since or row.updated_at,
                note=row.reason or row.filename,
                is_open=row.state not in FINAL,
                row=to_jsonable_python(row, by_alias=False),
            )
            for row in page.items
        ]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """What is open afterwards."""
        from workers.shared.services.runs import open_runs
        from workers.spreadsheets.access import open_access

        uuid: str = run.key
        if run.workflow_id == undo_id(uuid):
            runs = await open_runs(environment)
            answer = Answer(by=request.by or "operator", reason=request.reason)
            await runs.update(run.workflow_id, request.verb, answer, type(None), self.pipeline)
            return {"workflow_id": run.workflow_id, "answer": request.verb}
        async with open_access(environment, request.by) as access:
            if request.verb == "cancel":
                taken = await access.service.cancel(access.who, uuid, request.reason)
            else:
                taken = await access.service.retry(access.who, uuid, request.reason)
        return {"uuid": uuid, **taken.model_dump(mode="json")}

    @asynccontextmanager
    async def report(self, environment: Mapping[str, str], run: Run) -> AsyncGenerator[Report]:
        """The rows that did not go in, with comments."""
        from workers.spreadsheets.access import open_access

        async with open_access(environment, None) as access:
            found = await access.service.report(access.who, run.key)
        try:
            yield Report(
                found.filename,
                lambda target: asyncio.to_thread(shutil.copyfile, found.path, target),
                "correct the rows and submit it as a new import",
            )
        finally:
            found.path.unlink(missing_ok=True)


VERBS: Final[RunVerbs] = SpreadsheetVerbs()
