"""Registrations from a workbook into their tables, against the limit of reader and database."""

import os
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import asyncpg
from sqlalchemy import make_url

from adapters.database.schema import upgrade
from benchmarks.children import Failed, measured
from benchmarks.memory import peak_bytes
from benchmarks.report import Table, at_least, at_most, middle, spread
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.stack import SheetStack, open_sheet_stack
from stack.postgres import postgres_server
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import RowCounts

ROWS: Final = 100_000
LARGE_ROWS: Final = 1_000_000
SHARE: Final = 0.5
MEMORY: Final = 300e6
MOST_EVENTS: Final = 2_000


@dataclass
class Rounds:
    """Seconds of one database; each list has one figure a round."""

    limit: list[float] = field(default_factory=list[float])
    started: list[float] = field(default_factory=list[float])
    """From `start`, with the columns on a person's screen, to COMPLETED."""
    straight: list[float] = field(default_factory=list[float])
    """From the first byte of the upload to COMPLETED, without questions."""
    peaks: list[int] = field(default_factory=list[int])
    """Memory of the worker, in bytes."""

    def shares(self, ours: list[float]) -> float:
        """The median of what each round reaches of its limit."""
        return middle([limit / own for limit, own in zip(self.limit, ours, strict=True)])


async def compare(folder: Path, rounds: int) -> Table:
    """The limit and the product in turn."""
    columns = ("limit s", "start to COMPLETED s", "of the limit")
    table = Table(
        f"{ROWS:,} rows x {len(workload.HEADER)} columns of XLSX, "
        "3 of them with 500 distinct values",
        (*columns, "upload to COMPLETED s", "of the limit", "worker's peak MB"),
    )
    master = folder / "registrations.xlsx"
    workload.write_workbook(master, ROWS)
    figures = Rounds()
    with postgres_server(durable=True) as server:
        for number in range(rounds):
            await _round(folder / str(number), server, master, figures)
    share = figures.shares(figures.started)
    table.add(
        spread(figures.limit, 2),
        spread(figures.started, 2),
        f"{share:.0%}",
        spread(figures.straight, 2),
        f"{figures.shares(figures.straight):.0%}",
        f"{max(figures.peaks) / 1e6:.0f}",
    )
    table.notes += [
        f"start to COMPLETED: {at_least(100 * share, 100 * SHARE, ' % of the limit')}",
        "limit: python-calamine, then COPY of the same rows into the same three "
        "tables, ids given out beforehand, in one transaction, nothing checked or kept",
        "before `start` the rows are staged while the columns are on the screen; the upload "
        "goes through the gateway with autoStart and waits for no person",
    ]
    return table


async def large(folder: Path) -> Table:
    """A workbook as long as they get."""
    table = Table(
        f"{LARGE_ROWS:,} rows of XLSX into PostgreSQL, straight through",
        ("MB", "s", "rows/s", "worker's peak MB", "events of its history"),
    )
    master = folder / "large.xlsx"
    workload.write_workbook(master, LARGE_ROWS)
    with postgres_server(durable=True) as server:
        database = await new_database(server)
        async with open_sheet_stack(folder / "large", database) as stack:
            uuid, seconds = await _straight(stack, master, LARGE_ROWS)
            peak, events = peak_bytes(stack.worker.pid), await stack.events(uuid)
    table.add(
        f"{master.stat().st_size / 1e6:.0f}",
        f"{seconds:.0f}",
        f"{LARGE_ROWS / seconds:,.0f}",
        f"{peak / 1e6:.0f}",
        str(events),
    )
    table.notes += [
        f"peak memory of the worker: {at_most(peak / 1e6, MEMORY / 1e6, ' MB')}",
        f"history: {at_most(events, MOST_EVENTS, ' events')}",
    ]
    master.unlink()
    return table


async def _round(folder: Path, server: str, master: Path, figures: Rounds) -> None:
    database = await new_database(server)
    await upgrade(database)
    environment = {**os.environ, "DATABASE_URL": database}
    cost = await measured("spreadsheets.limit", str(master), environment=environment)
    figures.limit.append(cost["wall"])
    for how, seconds in ((_started, figures.started), (_straight, figures.straight)):
        own = folder / how.__name__.strip("_")
        async with open_sheet_stack(own, await new_database(server)) as stack:
            seconds.append((await how(stack, master, ROWS))[1])
            figures.peaks.append(peak_bytes(stack.worker.pid))


async def _started(stack: SheetStack, master: Path, rows: int) -> tuple[str, float]:
    """Uuid, and seconds from `start` on."""
    uuid = await stack.upload(master)
    await stack.until_staged(uuid)
    began = time.perf_counter()
    await stack.start(uuid)
    await _completed(stack, uuid, rows)
    return uuid, time.perf_counter() - began


async def _straight(stack: SheetStack, master: Path, rows: int) -> tuple[str, float]:
    """Uuid, and seconds from the upload on."""
    began = time.perf_counter()
    uuid = await stack.upload(master, auto_start=True)
    await _completed(stack, uuid, rows)
    return uuid, time.perf_counter() - began


async def _completed(stack: SheetStack, uuid: str, rows: int) -> None:
    result = await stack.finished(uuid)
    if (result.state, result.counts) != (SpreadsheetState.COMPLETED, RowCounts(created=rows)):
        raise Failed(f"the import of {rows:,} rows ended as {result}")


async def new_database(server: str) -> str:
    """URL of a database that holds nothing."""
    name = f"bench_{secrets.token_hex(8)}"
    connection = cast(Any, await asyncpg.connect(server))
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return make_url(server).set(database=name).render_as_string(hide_password=False)
