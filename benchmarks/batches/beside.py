"""What new cases wait for while another case loads ten thousand documents.

One process works for both task queues, as a worker of batches does by default on two processors. A
figure counts only where the large case had documents to load before and after it.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.batches.deliveries import deliver, store_documents
from benchmarks.report import Table, at_most, middle, percentile
from stack.postgres import migrated_database
from stack.temporal import temporal_server
from tests.support.batches.installation import BatchInstallation, batch_installation
from tests.support.waiting import eventually
from workers.batches.register import LOADING_SLOTS
from workers.shared.connect import connect
from workflows.batches.case_queue import BatchLifecycle, CaseQueue
from workflows.batches.document_load import DocumentGroup, DocumentLoad
from workflows.batches.events import JobStarted
from workflows.batches.names import LOADING_TASK_QUEUE, TASK_QUEUE, BatchKey, Timings, names_of
from workflows.batches.runs import CaseInput

SECONDS: Final = 2.0
LARGE: Final = BatchKey(case_id=1, batch_id=1)
TIMEOUT: Final = 3_600.0
WATCH: Final[int] = CaseInput.model_fields["watch"].default
"""Seconds between two looks of a case at its batch, as shipped. Tests look every second: the cases
that were new before would ask more of Temporal than the documents do."""


@dataclass
class Waits:
    """Seconds until what was asked for was there, beside the large case."""

    queues: list[float] = field(default_factory=list[float])
    documents: list[float] = field(default_factory=list[float])


async def beside(folder: Path, count: int, cases: int) -> Table:
    """New cases, each with a batch and one document, one after another beside a large case.

    Args:
        folder: For servers and tables.
        count: Documents of the large case, all of them handed over before the first new case.
        cases: New ones.
    """
    waits = Waits()
    async with migrated_database() as url, _installation(folder, url) as installation:
        began = time.monotonic()
        await _hand_over(installation, LARGE, count)
        first = await _loaded(installation, LARGE)
        for case in range(2, 2 + cases):
            key = BatchKey(case_id=case, batch_id=1)
            queue = await _seconds(_new_case(installation, key))
            document = await _seconds(_document(installation, key))
            if await _loaded(installation, LARGE) >= count:
                break
            waits.queues.append(queue)
            waits.documents.append(document)
        last = await _loaded(installation, LARGE)
        took = time.monotonic() - began
    return _table(count, cases, waits, f"{first:,} to {last:,}", last / took)


@asynccontextmanager
async def _installation(folder: Path, url: str) -> AsyncGenerator[BatchInstallation]:
    async with temporal_server(folder / "temporal", ui=False, in_memory=True) as server:
        client = await connect(server.address)
        async with (
            batch_installation(
                client, folder, TASK_QUEUE, url=url, timings=Timings(), watch=WATCH
            ) as installation,
            _worker(client, TASK_QUEUE, installation, 100),
            _worker(client, LOADING_TASK_QUEUE, installation, LOADING_SLOTS),
        ):
            yield installation


def _worker(client: Client, task_queue: str, installation: BatchInstallation, slots: int) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[CaseQueue, BatchLifecycle, DocumentGroup, DocumentLoad],
        activities=installation.activities(),
        max_concurrent_activities=slots,
    )


async def _hand_over(installation: BatchInstallation, key: BatchKey, count: int) -> None:
    common = installation.common
    await store_documents(common.blobs, common.scratch, key, count)
    await deliver(installation.client, key, _queue(installation, key), count)


def _queue(installation: BatchInstallation, key: BatchKey) -> str:
    return names_of(installation.resources.plan.prefix, key).queue


async def _new_case(installation: BatchInstallation, key: BatchKey) -> None:
    await installation.send(JobStarted(case_id=key.case_id, batch_id=key.batch_id))
    name = _queue(installation, key)

    async def stands() -> bool:
        return name in installation.cloud.queues_by_name

    await eventually(stands, seconds=TIMEOUT, pause=0.02)


async def _document(installation: BatchInstallation, key: BatchKey) -> None:
    await _hand_over(installation, key, 1)

    async def is_loaded() -> bool:
        return await _loaded(installation, key) == 1

    await eventually(is_loaded, seconds=TIMEOUT, pause=0.02)


async def _loaded(installation: BatchInstallation, key: BatchKey) -> int:
    return (await installation.store.counts(key)).loaded


async def _seconds(work: Awaitable[None]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


def _table(count: int, cases: int, waits: Waits, progress: str, rate: float) -> Table:
    columns = ("what", "measured", "median s", "p95 s")
    table = Table(f"New cases beside {count:,} documents of another one", columns)
    measured = f"{len(waits.queues)} of {cases}"
    say: Callable[[float], str] = "{:.2f}".format
    for name, seconds in (
        ("first queue of a new case", waits.queues),
        ("its single document, loaded", waits.documents),
    ):
        if not seconds:
            table.add(name, measured, "-", "-")
            table.notes.append(f"{name}: **not measured**, the large case had ended by then")
            continue
        p95 = percentile(seconds, 0.95)
        table.add(name, measured, say(middle(seconds)), say(p95))
        table.notes.append(f"{name}: {at_most(p95, SECONDS, ' s')}")
    table.notes.append(
        f"Loaded of the large case from the first to the last of them: {progress}, "
        f"{rate:.0f} documents/s; load average {psutil.getloadavg()[0]:.1f}."
    )
    return table
