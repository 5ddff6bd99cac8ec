"""What can be done to runs of spreadsheets, by id."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import Run
from workers.shared.services.run_actions import AnswerRequest, Report, RunActions
from workflows.spreadsheets.runs import undo_id, workflow_id

if TYPE_CHECKING:
    from workers.shared.services.identity import Identity
    from workers.spreadsheets.service import SpreadsheetService


class SpreadsheetRunActions:
    """What can be done to runs of spreadsheets."""

    pipeline = "spreadsheets"
    naming = "the UUID of a spreadsheet"
    corrects: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()

    def name(self, run: Run) -> str:
        """The uuid of an import, the workflow id of any other run."""
        return run.key if run.workflow_id == workflow_id(run.key) else run.workflow_id

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """What is open afterwards."""
        from workers.spreadsheets.access import open_access

        uuid: str = run.key
        if run.workflow_id == undo_id(uuid):
            async with open_access(environment, request.by) as access:
                await access.service.retry_undo(access.who, uuid, request.reason)
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

        async with (
            open_access(environment, None) as access,
            fetched(access.service, access.who, run.key) as report,
        ):
            yield report


class ServedSpreadsheets:
    """What a gateway does to imports of spreadsheets.

    Args:
        service: Of spreadsheets.
    """

    def __init__(self, service: "SpreadsheetService") -> None:
        self._service = service

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`retry` and `cancel`; columns and values have answers of their own."""
        uuid: str = run.key
        if run.workflow_id == undo_id(uuid):
            await self._service.retry_undo(who, uuid, request.reason)
        elif request.verb == "cancel":
            await self._service.cancel(who, uuid, request.reason)
        else:
            await self._service.retry(who, uuid, request.reason)

    @asynccontextmanager
    async def report(self, who: "Identity", run: Run) -> AsyncGenerator[Report]:
        """The rows that did not go in, with comments."""
        async with fetched(self._service, who, run.key) as report:
            yield report


@asynccontextmanager
async def fetched(
    service: "SpreadsheetService", who: "Identity", uuid: str
) -> AsyncGenerator[Report]:
    """The report of an import, on the local disk while it is used."""
    found = await service.report(who, uuid)
    try:
        yield Report(
            found.filename,
            lambda target: asyncio.to_thread(shutil.copyfile, found.path, target),
            "correct the rows and submit it as a new import",
        )
    finally:
        found.path.unlink(missing_ok=True)


RUN_ACTIONS: Final[RunActions] = SpreadsheetRunActions()
