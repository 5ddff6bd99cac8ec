"""One document import by hand, in three steps that every contender but docflow runs.

The least code that does it: a status row, the rows of the file by COPY, the status row again. Rows
have no key: a step that runs twice leaves them twice, which is what is measured.
"""

import csv
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import asyncpg

AT_ONCE = 16
VISIBILITY_SECONDS = 10
"""After which Redis gives a message to another worker; Celery's own default is an hour."""
TABLES = """
CREATE TABLE IF NOT EXISTS peer_documents (
  task text PRIMARY KEY, state text NOT NULL, began timestamptz NOT NULL DEFAULT now(),
  ended timestamptz);
CREATE TABLE IF NOT EXISTS peer_rows (
  task text NOT NULL, line integer NOT NULL, code text, description text, category text, make text,
  model text, serial text, ownership text, rate numeric, rate_unit text, fuel text, status text);
CREATE INDEX IF NOT EXISTS peer_rows_task ON peer_rows (task);
"""
_OPEN = "INSERT INTO peer_documents (task, state) VALUES ($1, 'running') ON CONFLICT DO NOTHING"
_CLOSE = "UPDATE peer_documents SET state = 'completed', ended = now() WHERE task = $1"


class Steps:
    """The three steps, over a pool of connections."""

    def __init__(self, pool: Any, container: Path) -> None:
        self._pool, self._container = pool, container

    async def prepare(self, body: str) -> str:
        """Open the status row; the path of the document."""
        message = json.loads(body)
        await self._pool.execute(_OPEN, message["task_id"])
        return str(self._container / message["blob_name"])

    async def load(self, body: str, path: str) -> int:
        """Write the rows of the document; how many."""
        task = json.loads(body)["task_id"]
        rows = _rows(Path(path), task)
        async with self._pool.acquire() as connection:
            await connection.copy_records_to_table("peer_rows", records=rows)
        return len(rows)

    async def finish(self, body: str) -> None:
        """Close the status row."""
        await self._pool.execute(_CLOSE, json.loads(body)["task_id"])


def _rows(path: Path, task: str) -> list[tuple[Any, ...]]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        return [
            (task, number, *line[:7], Decimal(line[7]), *line[8:])
            for number, line in enumerate(lines, start=2)
        ]


@asynccontextmanager
async def open_steps(connections: int = AT_ONCE) -> AsyncGenerator[Steps]:
    """The steps, as the environment says where database and documents are."""
    container = Path(os.environ["DOCFLOW_BLOB_FOLDER"]) / "imports"
    pool = asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1, max_size=connections)
    async with cast(Any, pool) as opened:
        yield Steps(opened, container)
