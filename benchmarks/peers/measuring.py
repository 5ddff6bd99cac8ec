"""One contender: how fast, at which cost, and what a SIGKILL in the middle leaves."""

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.imports import workload
from benchmarks.peers.contenders import Contender, kill
from benchmarks.report import percentile
from benchmarks.stack import CpuMeter, Servers
from benchmarks.stopwatch import Stopwatch

WARM = 20
SINGLY = 15
"""Documents one by one, for the latency."""
QUIET = 90.0
"""Seconds without progress, after which what is missing counts as lost: longer than any of them
waits for a worker that was killed. The lock of a Service Bus message is the longest, a minute."""
_TIMEOUT = 300.0
_POLL = 0.02
_PEER = (
    "SELECT count(*) FROM peer_documents WHERE state = 'completed' AND task LIKE $1",
    "SELECT count(*) AS all, count(DISTINCT (task, line)) AS different FROM peer_rows "
    "WHERE task LIKE $1",
)
_OURS = (
    "SELECT count(*) FROM import_tasks WHERE state = 'completed' AND task_id LIKE $1",
    "SELECT count(*) AS all, count(DISTINCT code) AS different FROM equipment WHERE code LIKE $1",
)


@dataclass(frozen=True)
class Measured:
    """Figures of one contender."""

    rate: float
    """Documents a second."""
    cpu: float
    """CPU milliseconds of a document, of worker and servers."""
    p50: float
    """Seconds of one document on an idle stack, from the sender's call to its status."""
    p95: float
    lost: int
    """Rows that a SIGKILL in the middle has lost."""
    doubled: int
    """Rows that it has doubled."""
    lines: int


async def measure(
    servers: Servers, pool: Any, contender: Contender, tag: str, count: int
) -> Measured:
    """All figures of one contender.

    Args:
        servers: Where it runs.
        pool: Of connections to the database.
        contender: Which.
        tag: Begins all of its tasks.
        count: Documents.
    """
    seconds: list[float] = []
    async with contender.worker(f"{tag}-worker") as worker:
        bodies = workload.small_documents(servers.container, f"{tag}w", WARM)
        await contender.send(worker, bodies)
        await _completed(pool, contender, f"{tag}w", WARM)
        for number in range(SINGLY):
            name = f"{tag}l{number}"
            [body] = workload.small_documents(servers.container, name, 1)
            began = time.perf_counter()
            await contender.send(worker, [body])
            await _completed(pool, contender, name + "-", 1)
            seconds.append(time.perf_counter() - began)
            await asyncio.sleep(random.uniform(0.1, 0.3))
        bodies = workload.small_documents(servers.container, f"{tag}r", count)
        meter = CpuMeter({"worker": psutil.Process(worker.pid), **contender.servers})
        watch = Stopwatch()
        await contender.send(worker, bodies)
        await _completed(pool, contender, f"{tag}r", count)
        wall, cpu = watch.read().wall, sum(meter.read().values())
    lost, doubled = await _killed(servers, pool, contender, f"{tag}k", count)
    return Measured(
        rate=count / wall,
        cpu=1e3 * cpu / count,
        p50=percentile(seconds, 0.5),
        p95=percentile(seconds, 0.95),
        lost=lost,
        doubled=doubled,
        lines=sum(lines_of(file) for file in contender.files),
    )


async def _killed(
    servers: Servers, pool: Any, contender: Contender, tag: str, count: int
) -> tuple[int, int]:
    """Rows lost and rows doubled by a SIGKILL when a third of the documents is done."""
    bodies = workload.small_documents(servers.container, tag, count)
    async with contender.worker(f"{tag}-first") as worker:
        sending = asyncio.create_task(contender.send(worker, bodies))
        await _completed(pool, contender, tag, count // 3)
        kill(worker)
        await worker.wait()
        await sending
    async with contender.worker(f"{tag}-second"):
        await _quiet(pool, contender, tag, count)
        row = await pool.fetchrow((_OURS if contender.is_docflow else _PEER)[1], f"{tag}%")
    return count * workload.ROWS - row["different"], row["all"] - row["different"]


async def _done(pool: Any, contender: Contender, tag: str) -> int:
    return int(await pool.fetchval((_OURS if contender.is_docflow else _PEER)[0], f"{tag}%"))


async def _completed(pool: Any, contender: Contender, tag: str, count: int) -> None:
    async with asyncio.timeout(_TIMEOUT):
        while await _done(pool, contender, tag) < count:
            await asyncio.sleep(_POLL)


async def _quiet(pool: Any, contender: Contender, tag: str, count: int) -> None:
    """Wait until all is done, or nothing more happens."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET:
        done = await _done(pool, contender, tag)
        if done >= count:
            return
        if done != last:
            last, since = done, time.monotonic()
        await asyncio.sleep(0.2)


def lines_of(module: str) -> int:
    """Lines of a contender's program that are neither blank nor comment."""
    text = (Path(__file__).parent / f"{module}.py").read_text()
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.split("\n"))
