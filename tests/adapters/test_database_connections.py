"""What becomes of connections whose task is cancelled, or that have read."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text
from sqlalchemy.pool import QueuePool

from adapters.database.engine import Database

STEPS = 300
"""Turns of the loop; what is cancelled takes about as many."""
MOMENTS = 100
"""Spread over the time that a writer takes; about every tenth of them is one between a statement
and the fetch of its rows."""
ROWS = 400


async def read(database: Database) -> None:
    async with database.reading() as connection:
        await connection.execute(text("SELECT 1"))


async def write(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("SELECT 1"))


@pytest.mark.parametrize("use", [read, write])
async def test_a_cancel_at_any_moment_gives_the_connection_back(
    database: Database, use: Callable[[Database], Awaitable[None]]
) -> None:
    await use(database)
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    for steps in range(STEPS):
        task = asyncio.ensure_future(use(database))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert pool.checkedout() == 0, steps
    await use(database)


async def write_rows(database: Database) -> None:
    counting = " UNION ALL ".join("SELECT 1" for _ in range(ROWS))
    async with database.transaction() as connection:
        for _ in range(4):
            adding = f"INSERT INTO numbers (number) {counting} RETURNING number"
            assert len((await connection.execute(text(adding))).all()) == ROWS


async def numbers(database: Database) -> int:
    async with database.reading() as connection:
        return (await connection.execute(text("SELECT count(*) FROM numbers"))).scalar_one()


async def test_a_cancelled_writer_blocks_no_other_writer(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("CREATE TABLE numbers (number integer)"))
    await write_rows(database)
    began = time.perf_counter()
    await write_rows(database)
    takes = time.perf_counter() - began
    # Code that handles an error keeps what its traceback refers to alive.
    held: list[BaseException] = []
    for moment in range(MOMENTS):
        task = asyncio.ensure_future(write_rows(database))
        await asyncio.sleep(1.1 * takes * moment / MOMENTS)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            held.append(error)
        # A lock that is held would keep it waiting.
        async with asyncio.timeout(15), database.transaction() as connection:
            await connection.execute(text("INSERT INTO numbers (number) VALUES (2)"))
    assert len(held) >= MOMENTS // 2
    written = await numbers(database)
    assert (written - MOMENTS) % (4 * ROWS) == 0
