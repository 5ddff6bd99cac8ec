"""A worker of batches that dies in the middle of a transaction."""

import asyncio
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import event

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database
from adapters.database.records import SqlLeases
from adapters.files.texts.pool import FileTexts
from adapters.temporal import TemporalOpenRuns
from tests.support.batches.installation import ROOMY
from tests.support.batches.scripted import TODAY
from tests.support.forks import to_log
from tests.support.memory.cloud import MemoryCloud
from workers.batches.register import BATCHES
from workers.batches.resources import BatchResources
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workers.shared.worker_factory import build_worker


def die_at(database: Database, last: int) -> None:
    """Kill the process before one of its statements or commits.

    Args:
        database: Which takes them.
        last: The number of that one; 0: none.
    """
    passed = 0

    def passes(*_: Any) -> None:
        nonlocal passed
        passed += 1
        if passed == last:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "commit"):
        event.listen(database.engine.sync_engine, name, passes)


def main(folder: Path, settings: Mapping[str, str], last: int) -> None:
    """Work until killed; what it says goes to `worker.log`.

    Args:
        folder: For its files.
        settings: Of the worker.
        last: The number of the statement or commit before which it dies; 0: it does not.
    """
    to_log(folder / "worker.log")
    asyncio.run(_work(settings, last))


async def _work(settings: Mapping[str, str], last: int) -> None:
    client = await connect(settings["TEMPORAL_ADDRESS"])
    async with open_resources(settings) as common, FileTexts() as texts:
        cloud = MemoryCloud()
        own = BatchResources(
            plan=TODAY,
            queues=cloud.queues,
            topic=cloud.topic,
            functions=cloud.functions,
            grants=cloud.grants,
            store=SqlBatchStore(common.database),
            loads=SqlLoadStore(common.database),
            texts=texts,
            runs=TemporalOpenRuns(client),
            leases=SqlLeases(common.database),
            limits=ROOMY,
        )
        die_at(common.database, last)
        async with build_worker(client, replace(BATCHES, cached_runs=0), common, own):
            await asyncio.Event().wait()
