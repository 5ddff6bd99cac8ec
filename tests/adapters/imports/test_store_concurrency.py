"""Several writers at once, workers thought dead, a database that goes away."""

import asyncio
import multiprocessing
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import select, text

from activities.imports.store import SqlImportStore
from adapters.database.bulk import engine as bulk
from adapters.database.engine import Database, open_database
from adapters.database.models.imports import import_tasks
from adapters.ports.errors import Unavailable
from tests.support.forks import ended
from tests.support.imports.store import chunk, message, plan, stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Closing, Counts, ImportState, TaskKey
from workflows.shared.cells import RejectedRow

MTO = "project_id service_id drawing commodity_code size sequence quantity"
KEY = TaskKey("p1", "t1")


def line(number: int, quantity: int = 1) -> tuple[Any, ...]:
    return ("p1", "s1", f"D{number}", "PIPE", "", 1, Decimal(quantity))


async def load(store: SqlImportStore, key: TaskKey, numbers: Sequence[int], size: int) -> None:
    for start in range(0, len(numbers), size):
        part = [line(number) for number in numbers[start : start + size]]
        rows = chunk("mto_lines", MTO, *part, cursor=start + len(part), cells=False)
        await store.write(key, rows, Strategy.MERGE)


async def test_writers_of_the_same_rows_in_other_orders_do_not_deadlock(
    store: SqlImportStore, database: Database
) -> None:
    numbers = list(range(600))
    orders = [random.Random(seed).sample(numbers, len(numbers)) for seed in range(4)]
    keys = [TaskKey("p1", f"t{n}") for n in range(4)]
    await asyncio.gather(
        *(load(store, key, order, 150) for key, order in zip(keys, orders, strict=True))
    )
    assert len(await stored(database, "mto_lines", "drawing")) == 600
    marks = [(await store.mark(key)).counts for key in keys]
    assert sum(counts.created for counts in marks) == 600
    assert sum(counts.unchanged for counts in marks) == 1800


async def test_a_replace_and_merges_at_the_same_time_take_turns(
    store: SqlImportStore, database: Database
) -> None:
    scope = {"project_id": "p1", "service_id": "s1"}
    replacing = TaskKey("p1", "replace")
    staged = [line(number, 2) for number in range(300)]
    await store.stage(replacing, chunk("mto_lines", MTO, *staged, cells=False))

    async def swap() -> None:
        await store.swap(replacing, "mto_lines", scope, Strategy.REPLACE, date(2026, 3, 1))

    await asyncio.gather(
        load(store, TaskKey("p1", "t1"), range(299, -1, -1), 50),
        swap(),
        load(store, TaskKey("p1", "t2"), range(300), 50),
    )
    assert len(await stored(database, "mto_lines", "drawing")) == 300


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.APPEND])
async def test_two_attempts_at_a_task_count_and_add_once(
    store: SqlImportStore, database: Database, strategy: Strategy
) -> None:
    chunks = [
        chunk("mto_lines", MTO, line(1), line(2), cursor=2),
        chunk("mto_lines", MTO, line(3), cursor=3),
        chunk("mto_lines", MTO, line(4), line(5), cursor=5),
    ]

    async def attempt() -> None:
        for part in chunks:
            await store.write(KEY, part, strategy)

    await asyncio.gather(*(attempt() for _ in range(4)))
    mark = await store.mark(KEY)
    assert (mark.cursor, mark.counts) == (5, Counts(created=5))
    assert await stored(database, "mto_lines", "sequence") == [(1,)] * 5


async def test_appends_to_the_same_key_get_different_numbers(
    store: SqlImportStore, database: Database
) -> None:
    async def append(number: int) -> None:
        rows = [("p1", "s1", "D", "PIPE", "", n, Decimal(number)) for n in (1, 2)]
        await store.write(
            TaskKey("p1", f"t{number}"), chunk("mto_lines", MTO, *rows), Strategy.APPEND
        )

    await asyncio.gather(*(append(number) for number in range(6)))
    numbers = await stored(database, "mto_lines", "sequence")
    assert numbers == [(number,) for number in range(1, 13)]


async def test_a_write_that_waits_for_a_close_writes_nothing(
    database_url: str,
) -> None:
    async with open_database(database_url) as database:
        store = SqlImportStore(database)
        await store.begin(message("mto"), plan("mto"), "w", None)
        await store.write(KEY, chunk("mto_lines", MTO, line(1)), Strategy.APPEND)
        async with database.transaction() as connection:
            await connection.execute(
                select(import_tasks).where(import_tasks.c.task_id == "t1").with_for_update()
            )
            closing = Closing(message=message("mto"), state=ImportState.CANCELLED)
            close = asyncio.create_task(store.close(closing, "w"))
            await _until_waiting(database, 1)
            late = chunk("mto_lines", MTO, line(2), cursor=2)
            write = asyncio.create_task(store.write(KEY, late, Strategy.APPEND))
            await _until_waiting(database, 2)
        assert (await close).counts == Counts(created=1)
        assert (await write).finished
        assert await stored(database, "mto_lines", "drawing") == [("D1",)]


async def _until_waiting(database: Database, sessions: int) -> None:
    """Returns when so many sessions wait for a lock."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with asyncio.timeout(60), database.reading() as connection:
        while (await connection.execute(query)).scalar_one() < sessions:
            await asyncio.sleep(0.01)


async def test_a_transaction_that_fails_leaves_nothing(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(KEY, chunk("mto_lines", MTO, line(1)), Strategy.MERGE)
    before = await store.mark(KEY)
    broken = chunk("mto_lines", MTO, line(2), line(3), cursor=3, cells=False)
    unspeakable = RejectedRow(4, [{"not": "a cell"}.keys()], ())
    with pytest.raises(TypeError, match="is not a cell"):
        await store.write(KEY, replace(broken, rejected=[unspeakable]), Strategy.MERGE)
    assert await store.mark(KEY) == before
    assert await stored(database, "mto_lines", "drawing") == [("D1",)]
    await store.write(KEY, chunk("mto_lines", MTO, line(2), cursor=2), Strategy.MERGE)
    assert len(await stored(database, "mto_lines", "drawing")) == 2


@asynccontextmanager
async def _held(database: Database) -> AsyncGenerator[None]:
    """Another writer in the middle of its transaction."""
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE import_progress SET cursor = cursor"))
        yield


async def test_lost_sessions_are_unavailable_and_the_next_attempt_succeeds(
    database_url: str, stop_postgres_sessions: Callable[[str], Awaitable[int]]
) -> None:
    async with open_database(database_url) as database:
        store = SqlImportStore(database)
        await load(store, KEY, range(10), 5)
        with pytest.raises(Unavailable, match="the database is not available"):
            async with _held(database):
                waiting = asyncio.create_task(load(store, KEY, range(20), 5))
                await _until_waiting(database, 1)
                assert await stop_postgres_sessions(database_url) >= 2
        with pytest.raises(Unavailable):
            await waiting
        await load(store, KEY, range(20), 5)
        assert (await store.mark(KEY)).counts == Counts(created=20)
        assert len(await stored(database, "mto_lines", "drawing")) == 20


async def test_sessions_lost_while_idle_cost_one_attempt_at_most(
    database_url: str, stop_postgres_sessions: Callable[[str], Awaitable[int]]
) -> None:
    async with open_database(database_url) as database:
        store = SqlImportStore(database)
        await asyncio.gather(*(store.mark(KEY) for _ in range(5)))
        assert await stop_postgres_sessions(database_url) >= 1
        with pytest.raises(Unavailable):
            await store.mark(KEY)
        await asyncio.gather(*(store.mark(KEY) for _ in range(5)))


async def test_copy_on_a_lost_session_is_unavailable(
    database_url: str,
    stop_postgres_sessions: Callable[[str], Awaitable[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_database(database_url) as database:
        store = SqlImportStore(database)
        fill = bulk.fill

        async def cut(*given: Any) -> None:
            await stop_postgres_sessions(database_url)
            await fill(*given)

        with monkeypatch.context() as patch:
            patch.setattr(bulk, "fill", cut)
            # Few rows are not copied else.
            patch.setattr(bulk, "sent", lambda batch: None)
            with pytest.raises(Unavailable):
                await load(store, KEY, range(5), 5)
        await load(store, KEY, range(5), 5)
        assert len(await stored(database, "mto_lines", "drawing")) == 5


def _load_alone(url: str, name: str) -> None:
    async def run() -> None:
        async with open_database(url) as database:
            await load(SqlImportStore(database), TaskKey("p1", name), range(200), 10)

    asyncio.run(run())


async def test_two_processes_share_a_database(database_url: str) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_load_alone, args=(database_url, f"t{n}")) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await ended(worker, 60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    async with open_database(database_url) as database:
        store = SqlImportStore(database)
        marks = [(await store.mark(TaskKey("p1", f"t{n}"))).counts for n in range(2)]
        assert len(await stored(database, "mto_lines", "drawing")) == 200
    assert marks[0].plus(marks[1]) == Counts(created=200, unchanged=200)
