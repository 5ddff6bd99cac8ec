"""What can be done to runs of spreadsheets, by id."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from workers.shared.register import Run
from workers.shared.services.run_actions import AnswerRequest, Report, RunActions
from workflows.spreadsheets.runs import Answer, undo_id, workflow_id


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


RUN_ACTIONS: Final[RunActions] = SpreadsheetRunActions()
