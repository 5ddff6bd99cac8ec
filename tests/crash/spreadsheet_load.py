"""People who import spreadsheets, and what kills the worker while it does as they say."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio.client import WorkflowUpdateFailedError

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from tests.crash.harness import until
from tests.crash.kill_points import KillPoint, Phase, activities_under_way, open_kill_point
from tests.crash.spreadsheet_files import CHOSEN, CREATED, SENIOR, Sheet
from tests.crash.spreadsheet_outcomes import Lines, StoredRows, outcomes_of, parked_rows
from tests.support.installation import Installation
from workers.spreadsheets.runs import SpreadsheetRuns
from workflows.shared.contracts import Contract
from workflows.shared.errors import WRONG_STATE
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    MappingsAnswer,
    MappingStatus,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    Confirmation,
    SpreadsheetInput,
    UndoInput,
    UndoResult,
    undo_id,
)

_BY = "ada"
_BREATH = 0.02
"""Seconds: some hundred rows."""


@dataclass(frozen=True)
class Kill:
    """Where a worker was when it died.

    Attributes:
        sheet: Name of the spreadsheet that it was working on.
        phase: What it did.
        reached: How far the phase had come, as far as can be seen from outside.
        hit: The phase was not over.
    """

    sheet: str
    phase: Phase
    reached: int
    hit: bool


@dataclass(frozen=True)
class FinishedImport:
    """What is left of an import that is over.

    Attributes:
        parked: Rows that waited for a person, where rows came first.
        remains: When it was completed.
        undone: After it was taken back.
    """

    parked: Lines
    outcomes: StoredRows
    undone: UndoResult


@dataclass
class SpreadsheetLoad:
    """Imports of some spreadsheets, each answered by a person of its own.

    Attributes:
        installation: Where they run; its first worker is the one that is killed.
        wanted: How often it has to die in each phase.
        chance: Random places.
        kills: Where it died.
    """

    installation: Installation
    wanted: Mapping[Phase, int] = field(default_factory=dict[Phase, int])
    chance: random.Random = field(default_factory=random.Random)
    kills: list[Kill] = field(default_factory=list[Kill])

    def __post_init__(self) -> None:
        self._runs = SpreadsheetRuns(self.installation.client)
        self._views = SqlSpreadsheetViews(self.installation.resources.database)
        self._turn = asyncio.Lock()

    async def run(self, sheets: Sequence[Sheet]) -> Mapping[str, FinishedImport]:
        """Import spreadsheets, all at once, and take them back; what is left of each."""
        async with asyncio.TaskGroup() as group:
            finished = {sheet.name: group.create_task(self._import(sheet)) for sheet in sheets}
        return {name: one.result() for name, one in finished.items()}

    async def _import(self, sheet: Sheet) -> FinishedImport:
        resources = self.installation.resources
        await self._do(sheet, self._upload(sheet), Phase.STAGING)
        await self._waits(sheet, SpreadsheetState.COLUMN_MAPPING)
        group = ColumnDecision(id=len(sheet.header) - 1, target="EVENT_CATEGORY_NAME")
        await self._send(
            sheet, "update_column_mappings", ColumnDecisions(by=_BY, decisions=(group,))
        )
        await self._is_idle(sheet)
        yes = Confirmation(by=_BY)
        if sheet.maps_first:
            said = self._send(sheet, "confirm_column_mappings", yes)
            await self._do(sheet, said, Phase.COLLECTING)
        else:
            await self._do(sheet, self._send(sheet, "start", yes), Phase.PROCESSING)
        await self._waits(sheet, SpreadsheetState.CELL_MAPPING)
        parked = await parked_rows(resources.database, sheet)
        await self._send(sheet, "update_cell_mappings", await self._meanings(sheet))
        rows = Phase.PROCESSING if sheet.maps_first else Phase.LATER
        said = self._send(sheet, "confirm_cell_mappings", yes)
        await self._do(sheet, said, rows, Phase.REPORT)
        await self.installation.client.get_workflow_handle(sheet.run).result()
        folder = self.installation.folder / sheet.name
        folder.mkdir()
        outcomes = await outcomes_of(resources, sheet, folder)
        await self._do(sheet, self._undo(sheet), Phase.UNDO)
        undo = self.installation.client.get_workflow_handle(
            undo_id(sheet.uuid), result_type=UndoResult
        )
        return FinishedImport(parked, outcomes, await undo.result())

    async def _do(self, sheet: Sheet, said: Coroutine[Any, Any, Any], *phases: Phase) -> None:
        """Say something to an import; the worker dies of what follows if it still has to."""
        async with self._turn:
            phase = self._most_wanted(phases)
            if phase is not None:
                kill_point = open_kill_point(self.installation, sheet, phase, self.chance)
                saying = asyncio.create_task(said)
                await self._die(kill_point, saying)
                said = saying
        await said

    def _most_wanted(self, phases: Sequence[Phase]) -> Phase | None:
        hits = Counter(kill.phase for kill in self.kills if kill.hit)
        left = {phase: self.wanted.get(phase, 0) - hits[phase] for phase in phases}
        most = max(left, key=lambda phase: left[phase])
        return most if left[most] > 0 else None

    async def _die(self, kill_point: KillPoint, saying: asyncio.Task[Any]) -> None:
        worker = self.installation.workers[0]

        async def reached() -> bool:
            if saying.done():
                saying.result()
            return await kill_point.is_reached()

        await until(
            reached, f"{kill_point.sheet.name} comes to {kill_point}", within=300, every=0.01
        )
        await asyncio.sleep(self.chance.uniform(0, _BREATH))
        await worker.kill()
        # Nothing moves now: this is where it died.
        kill = Kill(
            kill_point.sheet.name,
            kill_point.phase,
            await kill_point.reached(),
            await kill_point.is_under_way(),
        )
        self.kills.append(kill)
        await worker.start()

    async def _upload(self, sheet: Sheet) -> None:
        file = self.installation.folder / f"{sheet.name}.csv"
        file.write_bytes(sheet.content())
        source = await self.installation.resources.blobs.upload(
            file, f"spreadsheets/{sheet.uuid}/x"
        )
        await self._runs.start(
            SpreadsheetInput(
                uuid=sheet.uuid,
                organisation_id=self.installation.club.organisation_id,
                import_type="EVENT_PARTICIPANT",
                context_id=sheet.event_id,
                source=source,
                filename=file.name,
                by=_BY,
            )
        )

    async def _send(self, sheet: Sheet, update: str, answer: Contract) -> None:
        handle = self.installation.client.get_workflow_handle(sheet.run)

        async def taken() -> bool:
            try:
                await handle.execute_update(update, answer, result_type=MappingsAnswer)
            except WorkflowUpdateFailedError as error:
                # A run that lost its worker is behind its status row for a moment, and says so.
                if getattr(error.cause, "type", None) != WRONG_STATE:
                    raise
                return False
            return True

        await until(taken, f"{sheet.name} takes {update}", every=0.5)

    async def _undo(self, sheet: Sheet) -> None:
        await self._runs.undo(
            UndoInput(
                uuid=sheet.uuid,
                organisation_id=self.installation.club.organisation_id,
                by=_BY,
                filename=f"{sheet.name}.csv",
                requested_at=datetime.now(UTC),
            )
        )

    async def _waits(self, sheet: Sheet, state: SpreadsheetState) -> None:
        organisation = self.installation.club.organisation_id

        async def waits() -> bool:
            row = await self._views.get(sheet.uuid, (organisation,))
            return row is not None and row.state is state and row.waiting_since is not None

        await until(waits, f"{sheet.name} waits in {state}", within=300, every=0.05)

    async def _is_idle(self, sheet: Sheet) -> None:
        """Rows are put aside while a person looks at columns: what comes next waits for that."""

        async def idle() -> bool:
            return not await activities_under_way(self.installation, sheet.run)

        await until(idle, f"{sheet.name} does nothing", within=300, every=0.1)

    async def _meanings(self, sheet: Sheet) -> CellDecisions:
        """A person's decisions about the unknown values."""
        senior = sheet.category_id(SENIOR)
        said: list[CellDecision] = []
        store = SqlSpreadsheetStore(self.installation.resources.database)
        async for page in store.mappings(sheet.uuid):
            for mapping in page:
                if mapping.status is not MappingStatus.UNMATCHED:
                    continue
                what = mapping.value.split()[0]
                said.append(
                    CellDecision(id=mapping.id, target_id=senior)
                    if what == CHOSEN
                    else CellDecision(id=mapping.id, create=what == CREATED, ignore=what != CREATED)
                )
        return CellDecisions(by=_BY, decisions=tuple(said))
