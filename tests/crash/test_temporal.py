"""The Temporal server, killed while documents are on their way."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.crash.documents import LARGE, MIDDLE, SMALL, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left
from workers.shared.resources import Resources

pytestmark = pytest.mark.chaos(alone=True)

KILLS = 20


async def test_a_killed_temporal_server_forgets_no_document(
    tmp_path: Path, calm: Resources, chance: random.Random
) -> None:
    documents = [*LARGE[:3], *MIDDLE, *SMALL]
    chance.shuffle(documents)
    began, on_their_way = time.monotonic(), 0
    async with running_system(tmp_path, WORKER_WITH_BRIDGE, lock_seconds=30) as system:
        await system.import_all(earlier(documents))
        before = await system.finished_tasks()
        sent = 0
        for number in range(KILLS):
            wave = documents[number::KILLS]
            await system.submit(wave)
            sent += len(wave)
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            await system.temporal.kill()
            on_their_way += sent - len(await system.finished_tasks() - before)
            await system.temporal.start()
        await system.ended(documents)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
        for part in system.docflow:
            part.running()
    print(
        f"{system.temporal.kills} kills, {len(documents)} documents, "
        f"{time.monotonic() - began:.0f} s; on their way at a kill: {on_their_way / KILLS:.1f}"
    )
    # Kills that hit no import prove nothing.
    assert on_their_way >= KILLS / 4
