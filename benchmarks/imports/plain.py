"""`python -m benchmarks.imports.plain steps|by-hand FILE WARM`: the imports without any engine.

`steps` calls the product's own steps; `by-hand` is the least code that leaves the same rows and
status behind. FILE holds a message a line; the first WARM of them are not timed.
"""

import asyncio
import csv
import dataclasses
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import asyncpg

from benchmarks.imports.steps import open_steps
from benchmarks.stopwatch import Cost, Stopwatch
from workers.imports.messages import read_message
from workers.imports.register import IMPORTS

AT_ONCE = IMPORTS.local_slots

_FIELDS = (
    *("code", "description", "category", "make", "model", "serial"),
    *("ownership", "rate", "rate_unit", "fuel", "status"),
)
_STAMPS = ("project_id", "source_line", "version", "source_task", "created_at", "updated_at")
_COLUMNS = (*_FIELDS, *_STAMPS)
_UPSERT = (
    f"INSERT INTO equipment ({', '.join(_COLUMNS)}) "
    f"SELECT {', '.join(_COLUMNS)} FROM incoming ORDER BY code "
    "ON CONFLICT (project_id, code) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*_FIELDS[1:], "updated_at"))
)


async def drain(bodies: Sequence[bytes], each: Callable[[bytes], Awaitable[None]]) -> Cost:
    """Import documents, so many at once."""
    left = iter(bodies)

    async def work() -> None:
        for body in left:
            await each(body)

    watch = Stopwatch()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return watch.read()


async def by_steps(warm: Sequence[bytes], bodies: Sequence[bytes]) -> Cost:
    """With the product's activities."""
    async with open_steps(dict(os.environ)) as steps:

        async def each(body: bytes) -> None:
            await steps.do(read_message(body))

        await drain(warm, each)
        return await drain(bodies, each)


async def by_hand(warm: Sequence[bytes], bodies: Sequence[bytes]) -> Cost:
    """With a CSV reader, a COPY and an upsert."""
    container = Path(os.environ["DOCFLOW_BLOB_FOLDER"]) / os.environ["AZURE_STORAGE_CONTAINER_NAME"]
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], max_size=AT_ONCE) as pool:

        async def each(body: bytes) -> None:
            message = json.loads(body)
            path, now = container / message["blob_name"], datetime.now(UTC)
            key = (message["project_id"], message["task_id"])
            async with cast(Any, pool.acquire()) as connection:
                await connection.execute(_OPEN, *key, now)
                async with connection.transaction():
                    await connection.execute(_INCOMING)
                    await connection.copy_records_to_table(
                        "incoming", records=_rows(path, *key, now), columns=_COLUMNS
                    )
                    await connection.execute(_UPSERT)
                await connection.execute(_CLOSE, *key, now)
            path.unlink()

        await drain(warm, each)
        return await drain(bodies, each)


def _rows(path: Path, project: str, task: str, now: datetime) -> list[tuple[Any, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        if next(reader)[0].lower() != "code":
            raise ValueError(f"{path} has no column Code")
        return [
            (*row[:7], Decimal(row[7]), *row[8:], project, line, 1, task, now, now)
            for line, row in enumerate(reader, start=2)
            if row[0]
        ]


_INCOMING = (
    f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming ON COMMIT DELETE ROWS "
    f"AS SELECT {', '.join(_COLUMNS)} FROM equipment WITH NO DATA"
)
_OPEN = (
    "INSERT INTO import_tasks (project_id, task_id, document_type, state, created, updated,"
    " unchanged, rejected, deleted, flagged, problem_count, problems, workflow_id, created_at,"
    " updated_at) VALUES ($1, $2, 'equipment', 'running', 0, 0, 0, 0, 0, 0, 0, '[]', '', $3, $3)"
)
_CLOSE = (
    "UPDATE import_tasks SET state = 'completed', created = 200, finished_at = $3"
    " WHERE project_id = $1 AND task_id = $2"
)

if __name__ == "__main__":
    how, file, first = sys.argv[1:]
    messages = Path(file).read_bytes().splitlines()
    program = by_steps if how == "steps" else by_hand
    cost = asyncio.run(program(messages[: int(first)], messages[int(first) :]))
    print(json.dumps(dataclasses.asdict(cost)))
