"""Memory of a worker of batches while one batch loads its documents."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from activities.batches.store import SqlBatchStore
from adapters.database.engine import open_database
from benchmarks.batches.deliveries import deliver, store_documents
from benchmarks.report import Table
from benchmarks.stack import open_servers
from stack.children import free_port
from stack.embedded import batch_pointers, docflow_part, install_on
from stack.ministack import ministack
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workers.shared.settings.common import BlobSettings
from workers.shared.tables import open_blobs
from workflows.batches.names import BatchKey, names_of

KEY: Final = BatchKey(case_id=1, batch_id=1)
LOOKS: Final = 10
"""Times that memory is looked at, after each such part of the documents."""
TIMEOUT: Final = 7_200.0


@dataclass
class _Setup:
    """A worker in a process of its own, and what it reads and writes."""

    temporal: str
    store: SqlBatchStore
    blobs: BlobSettings
    worker: psutil.Process


async def memory(folder: Path, count: int) -> Table:
    """Load documents by groups of ten; the worker, as installed, in one process of its own.

    Blobs lie in a folder and tables in PostgreSQL, so that nothing of the documents stays in a
    process that is measured.

    Args:
        folder: For servers, blobs and tables.
        count: Of documents.
    """
    table = Table(
        f"Memory while {count:,} small text documents are loaded",
        ("documents loaded", "documents/s", "worker MB", "its readers MB, all"),
    )
    async with _setup(folder) as setup:
        table.add("0", "", *_resident(setup.worker))
        client = await connect(setup.temporal)
        await store_documents(open_blobs(setup.blobs), folder, KEY, count)
        queue = names_of("docflow", KEY).queue
        per_look, began = max(1, count // LOOKS), time.monotonic()
        for first in range(0, count, per_look):
            last = min(first + per_look, count)
            await deliver(client, KEY, queue, last, first)

            async def are_loaded(expected: int = last) -> bool:
                return (await setup.store.counts(KEY)).loaded >= expected

            await eventually(are_loaded, seconds=TIMEOUT, pause=0.5)
            rate = last / (time.monotonic() - began)
            table.add(f"{last:,}", f"{rate:.0f}", *_resident(setup.worker))
    table.notes += [
        "resident memory; pages that processes share count in each of them",
        f"the documents are handed over in {LOOKS} parts, each when the one before is loaded",
    ]
    return table


@asynccontextmanager
async def _setup(folder: Path) -> AsyncGenerator[_Setup]:
    async with (
        open_servers(folder, in_memory=True) as servers,
        ministack(folder) as aws,
    ):
        port = free_port()
        environment = {
            **servers.environment,
            **batch_pointers(aws, await install_on(aws, servers.temporal)),
        }
        command = ("worker", "batches", "--health-port", str(port))
        part = docflow_part("worker", command, port, folder, environment)
        async with part.ready() as worker, open_database(servers.database_url) as database:
            yield _Setup(
                servers.temporal,
                SqlBatchStore(database),
                BlobSettings.read(environment),
                psutil.Process(worker.pid),
            )


def _resident(worker: psutil.Process) -> tuple[str, str]:
    """Megabytes of the worker, and of the processes that read documents for it."""
    readers = sum(each.memory_info().rss for each in worker.children(recursive=True))
    return f"{worker.memory_info().rss / 1e6:.0f}", f"{readers / 1e6:.0f}"
