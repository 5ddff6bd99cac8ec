"""A worker with its bridge, killed inside and between the chunks of many imports."""

import asyncio
import random
import time
from pathlib import Path

from tests.crash.documents import LARGE, MIDDLE, SMALL, Document, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left, lost_attempts
from workers.resources.common import Resources

KILLS = 20
ALONE = 4
"""Waves before the first large document: a load that is killed again and again waits longer each
time, and one that comes later is killed less often."""


async def test_killed_workers_lose_and_double_no_row(
    tmp_path: Path, calm: Resources, chance: random.Random
) -> None:
    waves = _waves(chance)
    documents = [document for wave in waves for document in wave]
    async with running_system(tmp_path, WORKER_WITH_BRIDGE) as system:
        await system.import_all(earlier(documents))
        (worker,) = system.docflow
        began = time.monotonic()
        for wave in waves:
            before = await system.footprint()
            await system.submit(wave)
            await system.work_goes_on(before)
            await asyncio.sleep(chance.uniform(0, 0.6))
            await worker.kill()
            await worker.start()
        await system.ended(documents, within=180)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
        activities, tasks = await lost_attempts(await system.client(), documents)
    print(
        f"{worker.kills} kills, {len(documents)} documents, {time.monotonic() - began:.0f} s; "
        f"died on the way: {activities} activities, {tasks} workflow tasks"
    )
    # Kills that hit no import prove nothing.
    assert activities >= KILLS / 4
    assert tasks >= KILLS / 4


def _waves(chance: random.Random) -> list[list[Document]]:
    """What is sent before each kill: something every time."""
    documents = [*MIDDLE, *SMALL]
    chance.shuffle(documents)
    waves = [documents[number::KILLS] for number in range(KILLS)]
    for document in LARGE:
        waves[chance.randrange(ALONE, KILLS)].append(document)
    return waves
