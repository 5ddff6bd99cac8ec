"""Places in an import at which its worker dies, as they can be seen from outside."""

import contextlib
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from sqlalchemy import Select, func, select
from temporalio.service import RPCError, RPCStatusCode

from adapters.database.models.spreadsheets import (
    spreadsheet_imports,
    spreadsheet_journal,
    spreadsheet_values,
)
from tests.crash.spreadsheet_files import Sheet
from tests.support.installation import Installation
from workflows.spreadsheets.runs import undo_id

CHUNK = 5_000
"""Rows of a transaction."""
_TOP = 4096
"""Bytes in which a file says whose it is."""
_REPORT = 200_000
"""Bytes that a report has at least while it is written."""


class Phase(Enum):
    """A long step of an import."""

    STAGING = "spreadsheets.stage"
    COLLECTING = "spreadsheets.collect_values"
    PROCESSING = "spreadsheets.process"
    LATER = "spreadsheets.process (parked rows)"
    REPORT = "spreadsheets.write_report"
    UNDO = "spreadsheets.undo"

    @property
    def activity(self) -> str:
        return self.value.partition(" ")[0]


@dataclass
class KillPoint(ABC):
    """A point of a phase of an import.

    Attributes:
        installation: Where the import runs.
        sheet: What is imported.
        phase: The phase.
        goal: How far it shall come, in its own units.
    """

    installation: Installation
    sheet: Sheet
    phase: Phase
    goal: int

    def __str__(self) -> str:
        return f"{self.goal} of {self.phase.name}"

    @abstractmethod
    async def reached(self) -> int:
        """How far it has come; -1 where that cannot be seen, before and after it."""

    @abstractmethod
    async def is_over(self) -> bool:
        """Whether it has come to its end before it was seen at its goal."""

    async def is_reached(self) -> bool:
        """Whether there is anything to wait for."""
        return await self.reached() >= self.goal or await self.is_over()

    async def is_under_way(self) -> bool:
        """Whether its activity has begun and not ended, as far as Temporal knows."""
        id = undo_id(self.sheet.uuid) if self.phase is Phase.UNDO else self.sheet.run
        return self.phase.activity in await activities_under_way(self.installation, id)

    async def _ask(self, query: Select[Any]) -> Any:
        async with self.installation.resources.database.reading() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    def _status(self, name: str) -> Select[Any]:
        imports = spreadsheet_imports
        return select(imports.c[name]).where(imports.c.uuid == self.sheet.uuid)


class _Marked(KillPoint):
    """The database has the mark of it."""

    async def reached(self) -> int:
        if await self.is_under_way():
            return await self._ask(self._mark()) or 0
        return -1

    async def is_over(self) -> bool:
        return self.goal > 0 and (await self._ask(self._mark()) or 0) >= self.goal

    def _mark(self) -> Select[Any]:
        own = self._status("id").scalar_subquery()
        match self.phase:
            case Phase.PROCESSING:
                return self._status("mark_cursor")
            case Phase.LATER:
                return self._status("mark_cursor").where(spreadsheet_imports.c.mark_round > 0)
            case Phase.UNDO:
                journal = spreadsheet_journal
                return select(func.count()).where(
                    journal.c.import_id == own, journal.c.undone.is_(True)
                )
            case _:
                return select(func.count()).where(spreadsheet_values.c.import_id == own)


@dataclass
class _Written(KillPoint):
    """The worker's scratch folder has it, byte by byte."""

    made_from: str
    """File that the phase reads; what it writes stands beside it."""
    over: str
    """Column of the status row that is filled at its end."""

    def __post_init__(self) -> None:
        self._before = set(self._folders())

    async def reached(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            for folder in set(self._folders()) - self._before:
                with (folder / self.made_from).open("rb") as source:
                    is_mine = self.sheet.name.encode() in source.read(_TOP)
                if is_mine:
                    return self._bytes(folder)
        return -1

    async def is_over(self) -> bool:
        return await self._ask(self._status(self.over)) is not None

    def _folders(self) -> list[Path]:
        return [*Path(self.installation.settings["DOCFLOW_SCRATCH"]).glob("docflow-*")]

    def _bytes(self, folder: Path) -> int:
        made = [file for file in folder.iterdir() if file.name != self.made_from]
        return sum(file.stat().st_size for file in made)


async def activities_under_way(installation: Installation, id: str) -> set[str]:
    """Names of the activities of a run that have begun and not ended, as far as Temporal knows."""
    try:
        run = await installation.client.get_workflow_handle(id).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return set()
    return {each.activity_type.name for each in run.raw_description.pending_activities}


def open_kill_point(
    installation: Installation, sheet: Sheet, phase: Phase, chance: random.Random
) -> KillPoint:
    """A random place in a phase that has not begun."""
    match phase:
        case Phase.STAGING:
            goal = chance.randrange(len(sheet.content()) // 2)
            return _Written(installation, sheet, phase, goal, "document", "total")
        case Phase.REPORT:
            goal = chance.randrange(_REPORT)
            return _Written(installation, sheet, phase, goal, "rows", "finished_at")
        case Phase.COLLECTING:
            return _Marked(installation, sheet, phase, chance.choice((0, 1_000)))
        case Phase.UNDO:
            return _Marked(installation, sheet, phase, chance.randrange(2))
        case _:
            return _Marked(installation, sheet, phase, CHUNK * chance.randrange(2))
