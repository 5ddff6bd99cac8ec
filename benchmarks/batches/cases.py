"""Cases: many events for one, and many cases whose events come in any order."""

import asyncio
import itertools
import logging
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import func, select
from temporalio.worker import Worker

from adapters.database.models.runs import leases
from benchmarks.batches.spent import Spent
from benchmarks.report import Table
from stack.postgres import migrated_database
from stack.temporal import temporal_server
from tests.support.batches.installation import (
    RATES,
    ROOMY,
    BatchInstallation,
    all_complete,
    batch_installation,
    keys_of,
    limit_account,
    parked,
    send_shuffled,
)
from tests.support.batches.scripted import finished, started
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workflows.batches.case_queue import BatchLifecycle, CaseQueue
from workflows.batches.events import CaseEvent
from workflows.batches.names import BatchKey, Timings

EVENTS = 10_000
IN_LINE = 20
"""Batches that those are about."""
BATCHES = 3
SEEN = 100
"""Batches of which the length of the history is read."""
LOOK_SECONDS = 2.0
AT_ONCE = 8
"""A run takes at most ten updates at a time."""
TIMEOUT = 3_600.0
ACCOUNT_TIMEOUT = 4 * TIMEOUT
UNPOLLED = Timings(settle=0, poll=24 * 3600, hold=0)
"""A batch that waits for its end looks at its queue once a day: nothing polls."""
WATCH = 300
"""Seconds between two looks of a case at its batch, as in production."""
_COLUMNS = (
    *("cases", "batches", "cases in order", "waiting at once", "throttled", "parked"),
    *("left behind", "longest history", "s", "CPU s: worker and sender", "Temporal"),
    *("peak MB: worker and sender", "Temporal"),
)


@asynccontextmanager
async def _cases(folder: Path) -> AsyncGenerator[BatchInstallation]:
    async with temporal_server(folder / "temporal", ui=False, in_memory=True) as server:
        client = await connect(server.address)
        async with (
            migrated_database() as url,
            batch_installation(
                client, folder, "batches", url=url, timings=UNPOLLED, watch=WATCH
            ) as installation,
            Worker(
                client,
                task_queue="batches",
                workflows=[CaseQueue, BatchLifecycle],
                activities=installation.activities(),
                max_cached_workflows=2_000,
            ),
        ):
            yield installation


async def events(folder: Path) -> Table:
    """One case takes thousands of events, most of them again, while its first batch ends."""
    table = Table("One case, many events", ("events", "events/s", "runs", "longest history"))
    keys = keys_of(1, IN_LINE)
    stream = itertools.cycle(event for key in keys for event in (started(key), finished(key)))
    async with _cases(folder) as installation:
        installation.ends = False
        began = time.monotonic()
        room = asyncio.Semaphore(AT_ONCE)

        async def send(event: CaseEvent) -> None:
            async with room:
                await installation.send(event)

        await asyncio.gather(*map(send, itertools.islice(stream, EVENTS)))
        took = time.monotonic() - began
        lengths: list[int] = []
        query = f'WorkflowId = "{keys[0].case_workflow_id}"'
        async for run in installation.client.list_workflows(query):
            handle = installation.client.get_workflow_handle(run.id, run_id=run.run_id)
            lengths.append(len((await handle.fetch_history()).events))
    table.add(f"{EVENTS:,}", f"{EVENTS / took:.0f}", f"{len(lengths)}", f"{max(lengths):,} events")
    table.notes.append("Temporal ends a run at 51,200 events of history.")
    return table


async def account(folder: Path, cases: int) -> Table:
    """Every batch is loaded in its order by an account that has limits, rates and delays."""
    table = Table("An account with the limits of AWS", _COLUMNS)
    # Each refusal is expected, and would be a page of the log.
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
    async with _cases(folder) as installation:
        cloud = installation.cloud
        limit_account(cloud, installation.resources.limits, RATES)
        before, began, most_parked, most_waiting = Spent.so_far(), time.monotonic(), 0, 0
        keys = await send_shuffled(installation, random.Random(7), cases=cases, batches=BATCHES)

        async def all_done() -> bool:
            nonlocal most_parked, most_waiting
            most_parked = max(
                most_parked, await parked(installation.client, installation.task_queue)
            )
            most_waiting = max(most_waiting, await _waiting_for_leases(installation))
            return await all_complete(installation, keys) and cloud.is_empty

        await eventually(all_done, seconds=ACCOUNT_TIMEOUT, pause=LOOK_SECONDS)
        took, after = time.monotonic() - began, Spent.so_far()
        in_order = _in_order(installation, keys)
        lengths = [await _events_of(installation, id) for id in _runs_of(keys)]
    left = sum(map(len, (cloud.queues_by_name, cloud.functions_by_name, cloud.subscriptions)))
    figures = (cases, len(keys), in_order, most_waiting, cloud.throttled.total(), most_parked, left)
    table.add(
        *(f"{figure:,}" for figure in (*figures, max(lengths))),
        f"{took:.0f}",
        f"{after.own_seconds - before.own_seconds:.0f}",
        f"{after.temporal_seconds - before.temporal_seconds:.0f}",
        f"{after.own_bytes / 1e6:.0f}",
        f"{after.temporal_bytes / 1e6:.0f}",
    )
    table.notes.append(
        f"{ROOMY.filter_policies} filter policies, {ROOMY.concurrency:,} of concurrency, and of "
        "each call that has a rate no more than AWS takes; canaries are lost, functions pending."
    )
    return table


async def _waiting_for_leases(installation: BatchInstallation) -> int:
    """Batches that have no lease yet and wait for one."""
    query = select(func.count()).where(~leases.c.granted)
    async with installation.common.database.reading() as connection:
        return (await connection.execute(query)).scalar_one()


def _runs_of(keys: Sequence[BatchKey]) -> Sequence[str]:
    """Some of the runs, of batches and of cases."""
    chosen = keys[:: max(len(keys) // SEEN, 1)]
    return [id for key in chosen for id in (key.workflow_id, key.case_workflow_id)]


async def _events_of(installation: BatchInstallation, workflow_id: str) -> int:
    described = await installation.client.get_workflow_handle(workflow_id).describe()
    return described.history_length


def _in_order(installation: BatchInstallation, keys: Sequence[BatchKey]) -> int:
    """Cases whose batches were loaded in their order."""
    return sum(
        [key for key in installation.order if key.case_id == case] == keys_of(case, BATCHES)
        for case in {key.case_id for key in keys}
    )


async def orders(folder: Path, cases: int) -> Table:
    """Every batch is loaded once, in its order, whatever order its events come in."""
    columns = ("cases", "batches", "cases in order", "functions made", "s", "batches/s")
    table = Table("Events in any order, a third of them twice", columns)
    async with _cases(folder) as installation:
        began = time.monotonic()
        keys = await send_shuffled(installation, random.Random(7), cases=cases, batches=BATCHES)
        await eventually(lambda: all_complete(installation, keys), seconds=TIMEOUT, pause=0.5)
        took = time.monotonic() - began
        in_order = _in_order(installation, keys)
        made = installation.cloud.calls["clone"]
    figures = (cases, len(keys), in_order, made)
    table.add(*(f"{figure:,}" for figure in figures), f"{took:.0f}", f"{len(keys) / took:.1f}")
    return table
