"""What can be done to runs of spreadsheets, by id."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from workers.shared.register import Run
from workers.shared.services.run_actions import AnswerRequest, Report

if TYPE_CHECKING:
    from workers.shared.services.identity import Identity
    from workers.spreadsheets.service import SpreadsheetService


class ServedSpreadsheets:
    """What a gateway does to imports of spreadsheets.

    Args:
        service: Of spreadsheets.
    """

    def __init__(self, service: "SpreadsheetService") -> None:
        self._service = service

    async def details(self, who: "Identity", run: Run) -> Mapping[str, Any] | None:
        """An upload, and how far its undoing is."""
        uuid: str = run.key
        row, undo = await self._service.get(who, uuid), await self._service.undo_view(who, uuid)
        return {
            **row.model_dump(mode="json"),
            "undo": undo and undo.model_dump(mode="json"),
        }

    async def answer(self, who: "Identity", run: Run, request: AnswerRequest) -> None:
        """`retry` and `cancel`; columns and values have answers of their own."""
        uuid: str = run.key
        if request.verb == "cancel":
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
