"""Spreadsheet imports whose worker is killed wherever they are, from the upload to the undo."""

import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from contracts.spreadsheets import UndoState
from tests.crash.before import furnish
from tests.crash.club import Club, Life
from tests.crash.places import Phase
from tests.crash.sheet_outcomes import assert_same, target_rows
from tests.crash.sheets import ROWS, Sheet
from tests.support.installation import running_installation
from workers.stack.postgres import postgres_server

SHEETS = tuple(
    Sheet(f"{name}{n}", event_id, maps_first=name == "mapped")
    for event_id, (name, n) in enumerate(
        [(name, n) for name in ("mapped", "started") for n in range(4)], start=100
    )
)
TWENTY = {
    Phase.STAGING: 3,
    Phase.COLLECTING: 3,
    Phase.PROCESSING: 5,
    Phase.LATER: 3,
    Phase.REPORT: 2,
    Phase.UNDO: 4,
}
THREE = dict.fromkeys((Phase.COLLECTING, Phase.LATER, Phase.UNDO), 1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calm(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Life]:
    """What is left of the imports when nothing disturbs them."""
    async with running_installation(tmp_path_factory.mktemp("calm")) as installation:
        await furnish(installation, SHEETS)
        return await Club(installation).live(SHEETS)


async def test_killed_workers_lose_nothing_of_a_spreadsheet(
    tmp_path: Path, calm: Mapping[str, Life], chance: random.Random
) -> None:
    await _disturb(tmp_path, SHEETS, TWENTY, calm, chance)


async def test_killed_workers_lose_nothing_on_postgresql(
    tmp_path: Path, calm: Mapping[str, Life], chance: random.Random
) -> None:
    with postgres_server() as url:
        await _disturb(tmp_path, SHEETS[3:5], THREE, calm, chance, url)


async def _disturb(
    folder: Path,
    sheets: Sequence[Sheet],
    wanted: Mapping[Phase, int],
    calm: Mapping[str, Life],
    chance: random.Random,
    url: str | None = None,
) -> None:
    began = time.monotonic()
    async with running_installation(folder, database_url=url) as installation:
        await furnish(installation, sheets)
        before = await target_rows(installation.resources.database)
        club = Club(installation, wanted, chance)
        found = await club.live(sheets)
        for name, life in found.items():
            expected = calm[name]
            assert_same(name, life.remains, expected.remains)
            assert_same(name, {"parked": life.parked}, {"parked": expected.parked})
            assert life.undone.state is UndoState.UNDONE
            assert (life.undone.counts, life.undone.problems) == (expected.undone.counts, ())
        assert_same("undo", await target_rows(installation.resources.database), before)
    for kill in club.kills:
        print(kill)
    hits = [kill for kill in club.kills if kill.hit]
    print(f"{len(hits)} of {len(club.kills)} kills hit; {time.monotonic() - began:.0f} s")
