"""What people read of runs: lists, `docflow status`, the inbox."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from temporalio.client import Client
from temporalio.common import SearchAttributePair

from activities.imports.store import SqlImportStore
from activities.imports.views import old_imports
from activities.jobs.store import SqlJobStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database
from adapters.database.records import SqlRejectedMessages
from adapters.database.runs import SqlRuns
from benchmarks.report import Table, at_most, middle, percentile
from benchmarks.status.rows import RARE
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.services.inbox import Inbox
from workflows.jobs.records import JobStatus
from workflows.shared import attributes
from workflows.shared.runs import RunFilter, Visible
from workflows.transfers.events import TransferStatus

MOST = 0.1
"""Seconds."""
WAITING = 100
"""Runs in the inbox."""
LINES = 50
EVERYONE = Visible((), (), others=True)
"""Of a list, as of `docflow list`."""
_PAGE = 500
_LONG_AGO = timedelta(days=365)

Reads = Mapping[str, Callable[[], Awaitable[Any]]]


def reads(database: Database, client: Client) -> Reads:
    """Every read, by what it is for."""
    runs, transfers = SqlRuns(database), SqlTransferStore(database)
    rejected, store = SqlRejectedMessages(database), SqlImportStore(database)
    jobs = SqlJobStore(database)
    operator = Identity("ada", (), frozenset({OPERATOR}))
    return {
        "`docflow list`": lambda: runs.list(RunFilter(LINES)),
        **{
            f"the same, `{options}`": partial(runs.list, wanted)
            for options, wanted in {
                "--pipeline imports": RunFilter(LINES, pipelines=["imports"]),
                "--state needs_attention": RunFilter(LINES, state="needs_attention"),
                "--state skipped": RunFilter(LINES, state="skipped"),
                "--state terminated": RunFilter(LINES, state="terminated"),
                "--state failed": RunFilter(LINES, state="failed"),
                "--project with ten imports": RunFilter(LINES, project=RARE),
                "--project P7 --state completed": RunFilter(LINES, state="completed", project="P7"),
                "--type equipment": RunFilter(LINES, kind="equipment"),
            }.items()
        },
        "`docflow show` by a task id": lambda: runs.find("task-77", EVERYONE),
        "`docflow show` by the beginning of an id": lambda: runs.find("5eed5eed", EVERYONE),
        "the same: rejected messages by queue": rejected.open,
        "the list of rejected messages": rejected.list,
        "transfers in a list of their own": lambda: transfers.newest(limit=LINES),
        "the same, not assigned": lambda: transfers.newest(
            limit=LINES, status=TransferStatus.NO_ASSIGNED
        ),
        "the same, of one account": lambda: transfers.newest(limit=LINES, account_id="A7"),
        "a transfer by the beginning of its id": lambda: transfers.find("5eed5eed"),
        "jobs in a list of their own": lambda: jobs.jobs(limit=LINES),
        "the same, failed": lambda: jobs.jobs(limit=LINES, status=JobStatus.FAILED),
        "the same, `--project` with ten jobs": lambda: jobs.jobs(limit=LINES, project=RARE),
        "the sweeper's page of open imports": lambda: store.open_rows(datetime.now(UTC), "", _PAGE),
        f"the inbox, {WAITING} runs": lambda: Inbox(client, runs).read(operator),
    }


async def fill_inbox(client: Client) -> None:
    """Runs that wait for a person, as visibility knows them; no worker is needed for it."""
    for number in range(WAITING):
        known = attributes.at_start("imports", "equipment", "P1")
        await client.start_workflow(
            "DocumentImport",
            id=f"import/P1/waits-{number}",
            task_queue="no-worker",
            search_attributes=known.updated(
                SearchAttributePair(attributes.NEEDS_ATTENTION, True),
                SearchAttributePair(attributes.STATE, "parked"),
                SearchAttributePair(attributes.WAITING_SINCE, datetime.now(UTC)),
            ),
        )
    async with asyncio.timeout(60):
        while (await client.count_workflows("NeedsAttention = true")).count < WAITING:
            await asyncio.sleep(0.1)


async def timed(table: Table, every: Reads, times: int) -> None:
    """Add a row for each read."""
    slowest = 0.0
    for name, read in every.items():
        seconds = [await _seconds(read) for _ in range(times + 1)]
        first, warm = seconds[0], seconds[1:]
        slowest = max(slowest, percentile(warm, 0.95))
        cells = (first, min(warm), middle(warm), percentile(warm, 0.95))
        table.add(name, *(f"{1e3 * each:.1f}" for each in cells))
    table.notes.append(f"slowest p95 {at_most(1e3 * slowest, 1e3 * MOST, ' ms')}")


async def removed(table: Table, database: Database, most: int) -> None:
    """Remove old rows, and list new ones meanwhile."""
    rows, before = old_imports(database), datetime.now(UTC) - _LONG_AGO
    runs, seconds = SqlRuns(database), list[float]()

    async def read() -> None:
        while True:
            seconds.append(await _seconds(lambda: runs.list(RunFilter(LINES))))
            await asyncio.sleep(0.05)

    reading = asyncio.create_task(read())
    began, gone = time.perf_counter(), 0
    while gone < most and (page := await rows.due(before, _PAGE)):
        gone += await rows.remove(page, before)
    took = time.perf_counter() - began
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    table.notes.append(
        f"retention removes {gone / took:,.0f} status rows a second ({gone:,} of them); "
        f"`docflow list` meanwhile: p95 {1e3 * percentile(seconds, 0.95):.0f} ms"
    )


async def _seconds(read: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await read()
    return time.perf_counter() - began
