"""The demo's spreadsheet: uploaded, answered and finished through the HTTP API, as by a person."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from stack.demo.api import ask
from workflows.imports.runs import Counts
from workflows.shared.contracts import Contract
from workflows.spreadsheets.mappings import FINAL, SpreadsheetState

UPLOADS: Final = "/api/v1/uploads"
LOOK_SECONDS = 0.05
"""Between two looks at where the import stands."""
SEEN_SECONDS = 0.4
"""Long enough for a person to see in the table that it waits."""


class Answers(Contract):
    """The person's answers, in the words of the file."""

    import_type: str
    columns: Mapping[str, str]
    """Header to the field it means."""
    values: Mapping[str, str]
    """Value to the name of the candidate it means."""


class SpreadsheetPerson:
    """A person who imports one spreadsheet.

    Args:
        api: Client of the gateway, with a token.
        answers: Their answers to questions.
        show: Called with each state.
    """

    def __init__(
        self, api: httpx.AsyncClient, answers: Answers, show: Callable[[str], None]
    ) -> None:
        self._api = api
        self._answers = answers
        self._show = show
        self._path = ""

    async def upload(self, file: Path, context_id: int) -> str:
        """Send the file; the uuid of its import.

        Raises:
            ApiError: It is refused.
        """
        content = await asyncio.to_thread(file.read_bytes)
        fields = {"import_type": self._answers.import_type, "context_id": str(context_id)}
        made = await self._ask("POST", UPLOADS, data=fields, files={"file": (file.name, content)})
        self._path = f"{UPLOADS}/{made['uuid']}"
        return str(made["uuid"])

    async def bring_to_its_end(self) -> tuple[SpreadsheetState, Counts]:
        """Answer what is asked until it has ended; final state and outcomes of the rows.

        Raises:
            ApiError: An answer is refused.
        """
        await self._until({SpreadsheetState.COLUMN_MAPPING})
        await self._map_columns()
        await self._until({SpreadsheetState.CELL_MAPPING})
        await self._map_values()
        state = await self._until(FINAL)
        summary = await self._ask("GET", f"{self._path}/summary")
        return state, _counts(summary)

    async def _until(self, states: frozenset[SpreadsheetState] | set[SpreadsheetState]) -> Any:
        while True:
            now = await self._ask("GET", self._path)
            state = SpreadsheetState(now["state"])
            self._show(state.lower().replace("_", " "))
            if state in states or state in FINAL:
                return state
            await asyncio.sleep(LOOK_SECONDS)

    async def _map_columns(self) -> None:
        await asyncio.sleep(SEEN_SECONDS)
        columns = await self._ask("GET", f"{self._path}/columns")
        decisions = [
            {"id": column["id"], "target": self._answers.columns[column["header"]]}
            for column in columns["items"]
            if column["status"] == "UNRESOLVED"
        ]
        await self._ask("PATCH", f"{self._path}/columns", json={"decisions": decisions})
        await self._ask("POST", f"{self._path}/confirm", json={"what": "columns"})

    async def _map_values(self) -> None:
        await asyncio.sleep(SEEN_SECONDS)
        values = await self._ask("GET", f"{self._path}/values")
        decisions = [
            {"id": value["id"], "target_id": await self._candidate(value)}
            for value in values["items"]
            if value["status"] == "UNRESOLVED"
        ]
        await self._ask("PATCH", f"{self._path}/values", json={"decisions": decisions})
        await self._ask("POST", f"{self._path}/confirm", json={"what": "values"})

    async def _candidate(self, value: Mapping[str, Any]) -> int:
        wanted = self._answers.values[value["value"]]
        candidates = await self._ask(
            "GET",
            f"{self._path}/candidates",
            params={"field": value["field"], "text": wanted},
        )
        return next(each["id"] for each in candidates["items"] if each["name"] == wanted)

    async def _ask(self, method: str, path: str, **content: Any) -> Any:
        return await ask(self._api, method, path, **content)


def _counts(summary: Mapping[str, Any]) -> Counts:
    return Counts(
        created=summary["created"],
        updated=summary["updated"],
        unchanged=summary["skipped"],
        rejected=summary["error"],
    )
