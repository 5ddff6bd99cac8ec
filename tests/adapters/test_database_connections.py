"""What becomes of connections whose task is cancelled, or that have read."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.pool import QueuePool

from adapters.database import Database, open_database

STEPS = 300
"""Turns of the loop; what is cancelled takes about as many."""


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


async def test_a_connection_that_has_read_begins_no_transaction_by_itself(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'docflow.db'}") as database:
        await read(database)
        async with database.engine.connect() as connection:
            raw = await connection.get_raw_connection()
            assert raw.driver_connection is not None
            assert raw.driver_connection.isolation_level is None
