"""`python -m benchmarks.imports.load product|limit FORMAT FILE`: one take-off into its table.

`product` is the whole `imports.load_rows` step; `limit` is the fastest reader there is and a raw
bulk write into the same table with its indexes, without looking at a single value.
"""

import asyncio
import csv
import dataclasses
import io
import json
import os
import sqlite3
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
from workers.services.imports.messages import read_message

_COLUMNS = (
    *("drawing", "commodity_code", "size", "line_no", "area", "spec", "description"),
    *("quantity", "unit", "revision", "project_id", "service_id", "sequence", "version"),
    *("source_task", "source_line", "created_at", "updated_at"),
)
_NOW = "2026-01-01 00:00:00.000000"
_BLOCK = 5_000


async def product(path: Path) -> Cost:
    """With everything that is checked and kept."""
    async with open_steps(dict(os.environ)) as steps:
        fields = {"blob_name": path.name, "filename": path.name, "service_id": "S1"}
        message = read_message(workload.message("mto", path.stem, **fields))
        plan = await steps.prepare(message)
        watch = Stopwatch()
        outcome = await steps.load(message, plan)
        cost = watch.read()
        assert outcome.counts.rejected == 0, outcome
        await steps.finish(message, plan, outcome)
        return cost


async def limit(path: Path) -> Cost:
    """With nothing checked."""
    url = os.environ["DATABASE_URL"]
    if url.startswith("postgresql"):
        connection = cast(Any, await asyncpg.connect(url))
        try:
            watch = Stopwatch()
            await connection.copy_to_table(
                "mto_lines", source=_blocks(_records(path)), columns=_COLUMNS, format="csv"
            )
            return watch.read()
        finally:
            await connection.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute("PRAGMA synchronous = NORMAL")
        names = ", ".join(f'"{name}"' for name in _COLUMNS)
        marks = ", ".join("?" * len(_COLUMNS))
        watch = Stopwatch()
        database.executemany(f"INSERT INTO mto_lines ({names}) VALUES ({marks})", _records(path))
        database.commit()
        return watch.read()


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
    cost = asyncio.run((product if how == "product" else limit)(Path(file)))
    peak = peak_bytes(os.getpid())
    print(json.dumps({**dataclasses.asdict(cost), "peak_bytes": peak}))
