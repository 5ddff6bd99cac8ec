"""A worker with its bridge, killed inside and between the chunks of many imports."""

import asyncio
import random
import time
from pathlib import Path

from tests.crash.documents import LARGE, MIDDLE, SMALL, Document, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left, lost_attempts
from workers.resources import Resources

KILLS = 20


async def test_killed_workers_lose_and_double_no_row(
    tmp_path: Path, calm: Resources, chance: random.Random
) -> None:
    documents = [*LARGE, *MIDDLE, *SMALL]
    chance.shuffle(documents)
    waves: list[list[Document]] = [documents[number::KILLS] for number in range(KILLS)]
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
        print("killing took", time.monotonic() - began)
        await system.ended(documents, within=180)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
        activities, tasks = await lost_attempts(await system.client(), documents)
        print(
            f"{worker.kills} kills, {len(documents)} documents, {time.monotonic() - began:.0f} s; "
            f"died on the way: {activities} activities, {tasks} workflow tasks"
        )
        # A kill that hits no import proves nothing.
        assert activities >= KILLS / 4 and tasks >= KILLS / 4
