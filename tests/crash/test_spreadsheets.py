"""Spreadsheet imports whose worker is killed wherever they are, from the upload to the undo."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.crash.existing_people import add_existing_people
from tests.crash.kill_points import Phase
from tests.crash.spreadsheet_files import ROWS, Sheet
from tests.crash.spreadsheet_load import FinishedImport, Kill, SpreadsheetLoad
from tests.crash.spreadsheet_outcomes import StoredRows, assert_same, target_rows
from tests.support.installation import running_installation
from workflows.spreadsheets.mappings import UndoState

pytestmark = [pytest.mark.chaos(alone=True), pytest.mark.asyncio(loop_scope="module")]

SHEETS = tuple(
    Sheet(f"{name}{n}", event_id, maps_first=name == "mapped")
    for event_id, (name, n) in enumerate(
        [(name, n) for name in ("mapped", "started") for n in range(4)], start=100
    )
)
WANTED = (
    {
        Phase.STAGING: 2,
        Phase.COLLECTING: 1,
        Phase.PROCESSING: 3,
        Phase.LATER: 1,
        Phase.REPORT: 1,
        Phase.UNDO: 2,
    },
    {
        Phase.STAGING: 1,
        Phase.COLLECTING: 2,
        Phase.PROCESSING: 2,
        Phase.LATER: 2,
        Phase.REPORT: 1,
        Phase.UNDO: 2,
    },
)
"""Of two installations, each with every other spreadsheet."""
KILLS = 20


@dataclass(frozen=True)
class Outcome:
    """What some imports came to.

    Attributes:
        finished: Each import, by name.
        kills: Where the worker died.
        before: Rows of the club before any import.
        after: And after all of them were taken back.
    """

    finished: Mapping[str, FinishedImport]
    kills: Sequence[Kill]
    before: StoredRows
    after: StoredRows


@dataclass(frozen=True)
class Outcomes:
    """The same imports, undisturbed and with kills."""

    calm: Outcome
    killed: Sequence[Outcome]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(tmp_path_factory: pytest.TempPathFactory, chance: random.Random) -> Outcomes:
    # A killed worker goes unnoticed for ten seconds: the others work meanwhile.
    folder = tmp_path_factory.mktemp("clubs")
    async with asyncio.TaskGroup() as group:
        calm = group.create_task(_import(folder / "calm", SHEETS, {}, chance))
        killed = [
            group.create_task(
                _import(folder / f"killed{n}", SHEETS[n :: len(WANTED)], wanted, chance)
            )
            for n, wanted in enumerate(WANTED)
        ]
    return Outcomes(calm.result(), [task.result() for task in killed])


async def test_killed_workers_lose_nothing_of_a_spreadsheet(outcomes: Outcomes) -> None:
    for found in outcomes.killed:
        _compare(found, outcomes.calm)
    _assert_hits([kill for found in outcomes.killed for kill in found.kills], KILLS)


async def _import(
    folder: Path, sheets: Sequence[Sheet], wanted: Mapping[Phase, int], chance: random.Random
) -> Outcome:
    began = time.monotonic()
    folder.mkdir()
    async with AsyncExitStack() as stack:
        installation = await stack.enter_async_context(running_installation(folder))
        await add_existing_people(installation, sheets)
        database = installation.resources.database
        before = await target_rows(database)
        load = SpreadsheetLoad(installation, wanted, chance)
        finished = await load.run(sheets)
        print(f"{folder.name}: {len(load.kills)} kills, {time.monotonic() - began:.0f} s")
        return Outcome(finished, load.kills, before, await target_rows(database))


def _compare(found: Outcome, calm: Outcome) -> None:
    for name, one in found.finished.items():
        expected = calm.finished[name]
        assert_same(name, one.outcomes, expected.outcomes)
        assert_same(name, {"waiting": one.parked}, {"waiting": expected.parked})
        assert one.undone.state is UndoState.UNDONE
        assert (one.undone.counts, one.undone.problems) == (expected.undone.counts, ())
        status = dict(one.outcomes["status"])
        outcomes = (status[each] for each in ("created", "updated", "skipped", "error"))
        assert sum(outcomes) == status["total"] == ROWS
    assert_same("undone", found.after, found.before)


def _assert_hits(kills: Sequence[Kill], wanted: int) -> None:
    for kill in kills:
        print(kill)
    # A kill that comes too late for its phase proves nothing about it.
    assert sum(kill.hit for kill in kills) >= wanted * 3 // 4
