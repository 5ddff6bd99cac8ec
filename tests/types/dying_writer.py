"""A process that writes chunks into a table of a team, and dies between both commits of one.

`python -m tests.types.dying_writer DATABASE_URL ERP_URL CHUNK`
"""

import asyncio
import os
import signal
import sys
from typing import Any, Final
from unittest import mock

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from adapters.database.foreign import ForeignDatabases
from adapters.types.files import read_type
from adapters.types.tables import register_table
from adapters.types.targets import TargetTables
from workflows.imports.messages import Strategy
from workflows.imports.runs import LoadMark, RowChunk, TaskKey

STOCK: Final = read_type(
    "name: stock\ntitle: Stock\nkey: [article]\n"
    "target: {database: erp, table: stock}\n"
    "fields:\n  article: {kind: code, required: true}\n  amount: {kind: integer}\n",
    "stock.yaml",
)
CHUNKS: Final = 3
ROWS: Final = 40
KEY: Final = TaskKey("P1", "T1")


async def written(store: SqlImportStore) -> LoadMark:
    """Write what is left, as a load does it."""
    mark = await store.mark(KEY)
    if mark.cursor == 0:
        await store.restart(KEY, ("0" * 64, "article", "amount"))
    for number in range(mark.cursor // ROWS, CHUNKS):
        articles = range(number * ROWS, (number + 1) * ROWS)
        chunk = RowChunk(
            table=register_table(STOCK),
            columns=("project_id", "article", "amount"),
            # The last one of each chunk is refused.
            rows=[("P1", f"A-{n}", -1 if n + 1 == articles.stop else n) for n in articles],
            lines=[n + 2 for n in articles],
            cells=[],
            rejected=[],
            cursor=articles.stop,
        )
        await store.write(KEY, chunk, Strategy.MERGE)
    return await store.finish(KEY, register_table(STOCK))


async def _die(url: str, erp: str, last: int) -> None:
    write, calls = TargetTables.write, 0

    async def dying(*arguments: Any) -> Any:
        nonlocal calls
        done = await write(*arguments)
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    mock.patch.object(TargetTables, "write", dying).start()
    async with open_database(url) as database, ForeignDatabases(database, {"erp": erp}) as there:
        await written(SqlImportStore(database, targets=TargetTables(there)))


if __name__ == "__main__":
    asyncio.run(_die(sys.argv[1], sys.argv[2], int(sys.argv[3])))
