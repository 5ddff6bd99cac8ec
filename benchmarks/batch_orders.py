"""Many cases whose events come in any order, some of them twice: every batch once, in its order.

Run as `python -m benchmarks.batch_orders [CASES]`; 500 cases of 3 batches by default. The cloud is
in memory, so the figure is what docflow, Temporal and SQLite cost.
"""

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from temporalio.worker import Worker

from contracts.batches import Timings
from tests.support.case_world import all_complete, case_world, keys_of, tell_shuffled
from tests.support.waiting import eventually
from workers.connect import connect
from workers.stack.temporal import temporal_server
from workflows.batches import BatchLifecycle, CaseQueue

BATCHES = 3
PATIENCE = 1_800.0


async def measure(cases: int) -> None:
    """Run the cases and check what came of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with temporal_server(folder / "temporal", ui=False, in_memory=True) as server:
            client = await connect(server.address)
            # A batch that waits for its end looks at its queue once a day: nothing polls.
            times = Timings(settle=0, poll=24 * 3600, hold=0)
            async with (
                case_world(client, folder, "batches", timings=times) as world,
                Worker(
                    client,
                    task_queue="batches",
                    workflows=[CaseQueue, BatchLifecycle],
                    activities=world.activities(),
                    max_cached_workflows=2_000,
                ),
            ):
                began = time.monotonic()
                keys = await tell_shuffled(world, random.Random(7), cases=cases, batches=BATCHES)
                told = time.monotonic() - began
                await eventually(lambda: all_complete(world, keys), seconds=PATIENCE, pause=0.5)
                took = time.monotonic() - began
                in_order = sum(
                    [key for key in world.order if key.case_id == case] == keys_of(case, BATCHES)
                    for case in {key.case_id for key in keys}
                )
                print(
                    f"{cases} cases x {BATCHES} batches: {in_order} cases in order, "
                    f"{world.cloud.calls['clone']} functions made for {len(keys)} batches; "
                    f"told in {told:.0f} s, complete after {took:.0f} s "
                    f"({len(keys) / took:.1f} batches/s)"
                )


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
