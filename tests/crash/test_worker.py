"""A worker with its bridge, killed inside and between the chunks of many imports."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.crash.documents import LARGE, MIDDLE, SMALL, Document, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left, lost_attempts
from workers.shared.resources import Resources

pytestmark = pytest.mark.chaos(alone=True)

KILLS = 20
MOST_KILLS = 30
"""Where too few of the first ones hit an import, more follow."""
HITS = KILLS // 4
ALONE = 4
"""Waves before the first large document: a load that is killed again and again waits longer each
time, and one that comes later is killed less often."""


async def test_killed_workers_lose_and_double_no_row(
    tmp_path: Path, calm: Resources, chance: random.Random
) -> None:
    waves = _waves(chance)
    documents: list[Document] = []
    activities = tasks = 0
    async with running_system(tmp_path, WORKER_WITH_BRIDGE) as system:
        await system.import_all(earlier([document for wave in waves for document in wave]))
        (worker,), client = system.docflow, await system.client()
        began = time.monotonic()
        while worker.kills < KILLS or (min(activities, tasks) < HITS and waves):
            wave = waves.pop(0)
            documents += wave
            before = await system.footprint()
            await system.submit(wave)
            await system.work_resumes(before)
            if large := next((document for document in wave if document in LARGE), None):
                # Chance alone hits too few loads where other work has most of the machine.
                await system.loads(large)
            await asyncio.sleep(chance.uniform(0, 0.6))
            await worker.kill()
            await worker.start()
            if worker.kills >= KILLS:
                await system.ended(documents)
                activities, tasks = await lost_attempts(client, documents)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
    print(
        f"{worker.kills} kills, {len(documents)} documents, {time.monotonic() - began:.0f} s; "
        f"died on the way: {activities} activities, {tasks} workflow tasks"
    )
    # Kills that hit no import prove nothing.
    assert activities >= HITS
    assert tasks >= HITS


def _waves(chance: random.Random) -> list[list[Document]]:
    """What is sent before each kill: something every time."""
    documents = [*MIDDLE, *SMALL]
    chance.shuffle(documents)
    waves = [documents[number::MOST_KILLS] for number in range(MOST_KILLS)]
    # Loads that take long enough to be hit come with early waves and with those that may follow.
    for number, document in enumerate(LARGE):
        last = KILLS if number % 2 == 0 else MOST_KILLS
        waves[chance.randrange(ALONE, last)].append(document)
    return waves
