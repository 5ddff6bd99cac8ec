"""What can be done to runs of spreadsheets, by id."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from contracts.spreadsheets import Answer, SpreadsheetState, Uuid, undo_id, workflow_id
from workers.services.verbs import AnswerRequest, Filters, Report, RunEntry, RunVerbs

_UUID: Final[TypeAdapter[str]] = TypeAdapter(Uuid)
_PREFIX: Final = workflow_id("")
_UNDO: Final = undo_id("")


def uuid_of(text: str) -> str | None:
    """The uuid of an import, also from the workflow ids of its runs; None: the text has none."""
    bare = text.strip().removeprefix(_PREFIX).removeprefix(_UNDO)
    try:
        return _UUID.validate_python(bare.lower())
    except ValidationError:
        return None


class SpreadsheetVerbs:
    """What can be done to runs of spreadsheets."""

    pipeline = "spreadsheets"
    naming = "the UUID of a spreadsheet"
    states: Sequence[str] = tuple(SpreadsheetState)
    filters = frozenset({"type"})
    corrects: frozenset[str] = frozenset()

    def recognises(self, workflow_id: str) -> bool:
        """Ids of imports and of their undoing."""
        return workflow_id.startswith((_PREFIX, _UNDO)) and uuid_of(workflow_id) is not None

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[str] | None:
        """A bare uuid."""
        uuid = uuid_of(text)
        return None if uuid is None else [workflow_id(uuid)]

    def name(self, workflow_id: str) -> str:
        """The uuid of an import."""
        return workflow_id.removeprefix(_PREFIX)

    def offered(self, workflow_id: str) -> Sequence[str]:
        """A spreadsheet has no row that could be skipped as a whole: it is cancelled."""
        return ("retry",) if workflow_id.startswith(_UNDO) else ("retry", "cancel", "report")

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Imports of all organisations."""
        from adapters.database import open_database, require_current
        from adapters.database.spreadsheets import SqlSpreadsheetViews
        from workers.services.spreadsheets.access import organisations
        from workers.settings.common import DatabaseSettings

        async with open_database(DatabaseSettings.read(environment).url) as database:
            await require_current(database)
            page = await SqlSpreadsheetViews(database).list(
                await organisations(database),
                state=SpreadsheetState(filters.state) if filters.state else None,
                import_type=filters.more.get("type"),
                page=0,
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
                row=to_jsonable_python(row),
            )
            for row in page.items
        ]

    async def answer(
        self, environment: Mapping[str, str], workflow_id: str, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """What is open afterwards."""
        from workers.services.runs import open_runs
        from workers.services.spreadsheets.access import open_access

        uuid = self.name(workflow_id)
        if workflow_id.startswith(_UNDO):
            runs = await open_runs(environment)
            answer = Answer(by=request.by or "operator", reason=request.reason)
            await runs.update(workflow_id, request.verb, answer, type(None), self.pipeline)
            return {"workflow_id": workflow_id, "answer": request.verb}
        async with open_access(environment, request.by) as access:
            if request.verb == "cancel":
                taken = await access.service.cancel(access.who, uuid, request.reason)
            else:
                taken = await access.service.retry(access.who, uuid)
        return {"uuid": uuid, **taken.model_dump(mode="json")}

    @asynccontextmanager
    async def report(
        self, environment: Mapping[str, str], workflow_id: str
    ) -> AsyncGenerator[Report]:
        """The rows that did not go in, with comments."""
        from workers.services.spreadsheets.access import open_access

        async with open_access(environment, None) as access:
            found = await access.service.report(access.who, self.name(workflow_id))
        try:
            yield Report(
                found.filename,
                lambda target: asyncio.to_thread(shutil.copyfile, found.path, target),
                "correct the rows and submit it as a new import",
            )
        finally:
            found.path.unlink(missing_ok=True)


VERBS: Final[RunVerbs] = SpreadsheetVerbs()
