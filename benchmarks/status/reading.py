"""What people read of runs: lists, `docflow status`, the inbox."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import httpx
from temporalio.client import Client
from temporalio.common import SearchAttributePair

from activities.imports.store import SqlImportStore
from activities.imports.views import old_imports
from adapters.database.engine import Database
from adapters.database.records import SqlRejectedMessages
from adapters.database.runs import SqlRuns
from benchmarks.report import Table, at_most, middle, percentile
from benchmarks.status.rows import RARE
from workflows.shared import attributes
from workflows.shared.runs import RunFilter

MOST = 0.1
"""Seconds."""
WAITING = 100
"""Runs in the inbox."""
LINES = 50
_PAGE = 500
_LONG_AGO = timedelta(days=365)

PATHS: Final = (
    *(
        f"/api/v1/runs{options}"
        for options in (
            *("", "?pipeline=imports", "?needs_attention=true", "?state=skipped"),
            *("?state=terminated", "?state=failed", f"?project={RARE}"),
            *("?project=P7&state=completed", "?kind=equipment", "?text=task-77"),
            *("?text=equip", "?text=P7%20equip", "?text=nowhere"),
        )
    ),
    "/api/v1/runs/import%2FP77%2Ftask-77",
    "/api/v1/runs/import%2FP77%2Ftask-77/timeline",
    *(
        "/api/v1/transfers",
        "/api/v1/transfers?status=NoAssigned",
        "/api/v1/transfers?account_id=A7",
    ),
    *("/api/v1/jobs", "/api/v1/jobs?status=FAILED", f"/api/v1/jobs?project={RARE}"),
    *("/api/v1/rejected-messages", "/api/v1/uploads", "/api/v1/batches", "/api/inbox"),
)
"""Lists of a page, and one run."""
Reads = Mapping[str, Callable[[], Awaitable[Any]]]


def reads(database: Database) -> Reads:
    """What sweepers and `docflow status` read, by what it is for."""
    rejected, store = SqlRejectedMessages(database), SqlImportStore(database)
    return {
        "rejected messages by queue": rejected.open,
        "the sweeper's page of open imports": lambda: store.open_rows(datetime.now(UTC), "", _PAGE),
    }


def answers(gateway: httpx.AsyncClient) -> Reads:
    """What people read of a gateway, by its address."""
    return {f"`GET {path}`": partial(_get, gateway, path) for path in PATHS}


async def _get(gateway: httpx.AsyncClient, path: str) -> None:
    answer = await gateway.get(path)
    answer.raise_for_status()


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
