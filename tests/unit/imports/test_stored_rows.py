"""Rows of documents in a real database: the same end, wherever a worker was killed."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from activities.imports.lifecycle import ImportLifecycle
from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from adapters.database.engine import Database, open_database
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import ActivityPorts, Killed, environment, message_of
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.memory.runs import MemoryRuns
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportState,
)

TAKE_OFF = (
    b"Drawing,Commodity,Size,Qty\n"
    b"D-1,P,2,1\nD-1,P,2,two\nD-1,P,2,3\n,P,2,1\nD-2,Q,,4.5\nD-2,Q,,5\nD-3,Q,,6\n"
)


@dataclass
class Dying:
    """A store whose worker is killed after so many calls: committed, but not reported."""

    store: SqlImportStore
    calls_left: int = 1_000

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if name in ("rejects", "types"):
            return method

        async def call(*args: Any) -> Any:
            self.calls_left -= 1
            result = await method(*args)
            if self.calls_left < 0:
                raise Killed(name)
            return result

        return call


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    url = fresh_url()
    async with open_database(url) as database:
        yield database


async def rows_of(database: Database) -> list[tuple[Any, ...]]:
    async with database.reading() as connection:
        columns = "drawing, commodity_code, size, sequence, quantity"
        query = f"SELECT {columns} FROM mto_lines ORDER BY {columns}"
        return [tuple(row) for row in await connection.execute(text(query))]


async def imported(ports: ActivityPorts, store: Any, task_id: str, **fields: Any) -> HandlerOutcome:
    """One import, from plan to record, as a workflow runs it."""
    message = message_of("mto", task_id=task_id, blob_name="in/file", service_id="S1", **fields)
    lifecycle = ImportLifecycle(store, ports.blobs, MemoryRuns(), MemoryRejectedMessages())
    loads = RowImports(store, ports.blobs, ports.documents, ports.reports, ports.scratch, 2)
    preparation = await environment().run(lifecycle.prepare, ImportInput(message=message))
    assert preparation.plan is not None, preparation.skip
    work = HandlerInput(message=message, plan=preparation.plan)
    outcome = await survived(store, loads.load_rows, work)
    closing = Closing(message=message, plan=work.plan, state=ImportState.COMPLETED, outcome=outcome)
    return await survived(store, lifecycle.finish, closing)


async def survived(store: Any, step: Any, argument: Any) -> HandlerOutcome:
    """Run a step, and once more when its worker is killed."""
    try:
        return await environment().run(step, argument)
    except Killed:
        store.calls_left = 1_000
        return await environment().run(step, argument)


@pytest.mark.parametrize(
    ("fields", "rows_in_the_end"),
    [
        ({}, 5),
        ({"strategy": "replace"}, 5),
        ({"strategy": "append", "idempotency_key": "K"}, 10),
        ({"all_or_nothing": True}, 0),
    ],
    ids=str,
)
async def test_a_killed_worker_leaves_no_trace(
    tmp_path: Path, database: Database, fields: dict[str, Any], rows_in_the_end: int
) -> None:
    ports, store = ActivityPorts(tmp_path), SqlImportStore(database)
    ends: set[tuple[Any, ...]] = set()
    # Two calls prepare the import; then each call is the worker's last one once.
    for calls in (1_000, *range(2, 10)):
        async with database.transaction() as connection:
            await connection.execute(text("DELETE FROM mto_lines"))
        fixed = {**fields, "idempotency_key": f"K-{calls}"} if "strategy" in fields else fields
        if "strategy" in fields:
            await ports.put("in/file", TAKE_OFF)
            await imported(ports, store, f"first-{calls}")
        await ports.put("in/file", TAKE_OFF)
        dying = Dying(store, calls)
        outcome = await imported(ports, dying, f"T-{calls}", **fixed)
        ends.add((outcome.counts, outcome.problems, outcome.note, tuple(await rows_of(database))))
    assert len(ends) == 1
    ((counts, problems, _, rows),) = ends
    assert counts.rejected == 2
    assert [problem.line for problem in problems] == [3, 5]
    assert len(rows) == rows_in_the_end


async def test_only_what_was_asked_for_changes(tmp_path: Path, database: Database) -> None:
    ports, store = ActivityPorts(tmp_path), SqlImportStore(database)
    await ports.put("in/file", b"Drawing,Commodity,Size,Qty\nD-1,P,2,1\nD-9,P,2,1\n")
    first = await imported(ports, store, "T1")
    await ports.put("in/file", b"Drawing,Commodity,Size,Qty\nD-1,P,2,1.50\nD-2,P,,1\n")
    second = await imported(ports, store, "T2", strategy="update_only")
    assert (first.counts, second.counts) == (Counts(created=2), Counts(updated=1, rejected=1))
    assert second.report is not None
    header, row = await ports.read(second.report.name)
    assert header == ["what is wrong", "Drawing", "Commodity", "Size", "Qty", "sequence"]
    assert row[1:] == ["D-2", "P", None, "1", 1]
