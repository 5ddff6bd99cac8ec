"""Small text documents of one batch, from their messages to rows in the database."""

import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from temporalio.worker import Worker

from benchmarks.batches.deliveries import deliver, store_documents
from benchmarks.report import Table
from stack.postgres import migrated_database
from stack.temporal import temporal_server
from tests.support.batches.installation import batch_installation
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workflows.batches.document_load import DocumentGroup, DocumentLoad
from workflows.batches.names import LOADING_TASK_QUEUE, TASK_QUEUE, BatchKey, names_of

KEY = BatchKey(case_id=1, batch_id=1)
TIMEOUT = 3_600.0
_OWN = "own"
TARGETS = "target: at least 40 documents/s, and at most 20 ms of CPU each"


async def load(folder: Path, count: int) -> Table:
    """Load documents by groups of ten, as the bridge brings them.

    Args:
        folder: For servers and tables.
        count: Of documents.
    """
    columns = (
        *("tables", "documents", "documents/s", "CPU ms each"),
        *("worker and sender", "readers", "Temporal", "load average"),
    )
    table = Table("Small text documents, by groups of ten", columns, notes=[TARGETS])
    async with migrated_database() as url:
        table.add("PostgreSQL", *await _loaded(folder / "postgresql", count, url))
    table.notes.append("The server of PostgreSQL is not part of the CPU.")
    return table


async def _loaded(folder: Path, count: int, url: str) -> Sequence[str]:
    """The cells of one database."""
    folder.mkdir()
    async with temporal_server(folder / "temporal", ui=False, in_memory=True) as server:
        client = await connect(server.address)
        async with (
            batch_installation(client, folder, TASK_QUEUE, url=url) as installation,
            Worker(
                client,
                task_queue=LOADING_TASK_QUEUE,
                workflows=[DocumentGroup, DocumentLoad],
                activities=installation.activities(),
            ),
        ):
            await store_documents(installation.common.blobs, folder, KEY, count)
            before, began = _cpu(), time.monotonic()

            await deliver(client, KEY, names_of("docflow", KEY).queue, count)

            async def is_loaded() -> bool:
                return (await installation.store.counts(KEY)).loaded == count

            await eventually(is_loaded, seconds=TIMEOUT, pause=0.5)
            took, after = time.monotonic() - began, _cpu()
    spent = {name: 1000 * (after[name] - before.get(name, 0)) / count for name in after}
    own = spent.pop(_OWN)
    temporal = sum(cost for name, cost in spent.items() if "temporal" in name)
    total, readers = own + sum(spent.values()), sum(spent.values()) - temporal
    costs = (f"{cost:.1f}" for cost in (total, own, readers, temporal))
    return (f"{count:,}", f"{count / took:.0f}", *costs, f"{psutil.getloadavg()[0]:.1f}")


def _cpu() -> dict[str, float]:
    """Seconds of the processor by process, with those of the forks of each that have ended."""
    own = psutil.Process()
    times = own.cpu_times()
    found = {_OWN: times.user + times.system}
    for process in own.children(recursive=True):
        if process.name() == "postgres":
            continue
        times = process.cpu_times()
        spent = times.user + times.system + times.children_user + times.children_system
        found[f"{process.name()} {process.pid}"] = spent
    return found
