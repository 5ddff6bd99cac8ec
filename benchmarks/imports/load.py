"""`python -m benchmarks.imports.load WAY FILE`: one take-off into its table.

The way `product` is the whole `imports.load_rows` step; `declared` is the same for a type that a
team has declared as a copy of that of take-offs, and `team` for one whose rows go into a table of
the team. The limits `upsert` and `raw` have the fastest
reader there is and look at no value. `upsert` writes into a staging table and from there, by
natural key and in one statement, into the table itself. `raw` is a bulk write into that table with
its indexes.
"""

import asyncio
import csv
import dataclasses
import io
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import asyncpg
from python_calamine import CalamineWorkbook

from benchmarks.imports import workload
from benchmarks.imports.steps import open_steps
from benchmarks.memory import peak_bytes
from benchmarks.stopwatch import Cost, Stopwatch
from workers.imports.messages import read_message

DECLARED = "takeoff"
"""A declared type with the fields of take-offs."""
TEAM = "yard"
"""A declared type with a table of its team, which may refuse rows."""
_COLUMNS = (
    *("drawing", "commodity_code", "size", "line_no", "area", "spec", "description"),
    *("quantity", "unit", "revision", "project_id", "service_id", "sequence", "version"),
    *("source_task", "source_line", "created_at", "updated_at"),
)
_TABLE = "mto_lines"
_STAGING = "staging"
_KEY = (*("project_id", "service_id", "drawing", "commodity_code", "size", "sequence"),)
_VALUES = ("line_no", "area", "spec", "description", "quantity", "unit", "revision")
_CREATE = f"CREATE TEMPORARY TABLE {_STAGING} AS SELECT {', '.join(_COLUMNS)} FROM {_TABLE} LIMIT 0"
_UPSERT = (
    f"INSERT INTO {_TABLE} ({', '.join(_COLUMNS)}) "
    f"SELECT {', '.join(_COLUMNS)} FROM {_STAGING} WHERE true "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in (*_VALUES, "source_line", "updated_at"))
    + f", version = {_TABLE}.version + 1 WHERE "
    + " OR ".join(f"{_TABLE}.{name} IS DISTINCT FROM excluded.{name}" for name in _VALUES)
)
_NOW = "2026-01-01 00:00:00.000000"
_BLOCK = 5_000


async def product(path: Path) -> Cost:
    """With everything that is checked and kept."""
    return await _steps(path, "mto", {"service_id": "S1"})


async def declared(path: Path) -> Cost:
    """With everything that is checked and kept, for a declared type."""
    return await _steps(path, DECLARED, {"scope": {"service_id": "S1"}})


async def team(path: Path) -> Cost:
    """With everything that is checked and kept, into a table of a team; it may refuse all rows."""
    return await _steps(path, TEAM, {"max_rejected_share": 1})


async def _steps(path: Path, kind: str, more: dict[str, Any]) -> Cost:
    async with open_steps(dict(os.environ)) as steps:
        fields = {"blob_name": path.name, "filename": path.name, **more}
        message = read_message(workload.message(kind, path.stem, **fields), [DECLARED, TEAM])
        plan = (await steps.prepare(message)).plan
        assert plan is not None
        watch = Stopwatch()
        outcome = await steps.load(message, plan)
        cost = watch.read()
        assert outcome.counts.rejected == 0 or kind == TEAM, outcome
        await steps.finish(message, plan, outcome)
        return cost


async def upsert(path: Path) -> Cost:
    """With nothing checked, and written so that a second time changes nothing."""
    return await _limit(path, _STAGING)


async def raw(path: Path) -> Cost:
    """With nothing checked, into an empty table."""
    return await _limit(path, None)


async def _limit(path: Path, staging: str | None) -> Cost:
    """Into the table, by way of `staging` where it is given."""
    url, target = os.environ["DATABASE_URL"], staging or _TABLE
    connection = cast(Any, await asyncpg.connect(url))
    try:
        watch = Stopwatch()
        async with connection.transaction():
            if staging:
                await connection.execute(_CREATE)
            await connection.copy_to_table(
                target, source=_blocks(_records(path)), columns=_COLUMNS, format="csv"
            )
            if staging:
                await connection.execute(_UPSERT)
        return watch.read()
    finally:
        await connection.close()


def _records(path: Path) -> Iterator[tuple[object, ...]]:
    stamps = ("bench", "S1", 1, 1, "limit", 1, _NOW, _NOW)
    for row in islice(_read(path), 1, None):
        yield (*row, *stamps)


def _read(path: Path) -> Iterator[Iterable[object]]:
    if path.suffix == ".xlsx":
        yield from CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).iter_rows()
    else:
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.reader(file)


async def _blocks(records: Iterator[tuple[object, ...]]) -> AsyncGenerator[bytes]:
    while rows := list(islice(records, _BLOCK)):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        yield text.getvalue().encode()


if __name__ == "__main__":
    how, file = sys.argv[1:]
    ways = {"product": product, "declared": declared, "team": team, "upsert": upsert, "raw": raw}
    cost = asyncio.run(ways[how](Path(file)))
    peak = peak_bytes(os.getpid())
    print(json.dumps({**dataclasses.asdict(cost), "peak_bytes": peak}))
