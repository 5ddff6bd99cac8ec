"""Small documents, from the queue to committed rows, against what cannot be avoided."""

import asyncio
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import asyncpg
import psutil

from benchmarks.children import Failed, measured
from benchmarks.imports import workload
from benchmarks.report import Table, at_least, at_most, middle, spread
from benchmarks.stack import EMPTY_QUEUE, CpuMeter, Servers
from benchmarks.stopwatch import Stopwatch
from stack.children import child, free_port
from stack.embedded import QUEUE, worker_process
from workers.shared.connect import connect

WARM = 40
"""Documents before the clock starts: connections, prepared statements, imports."""
TIMEOUT = 300.0
MOST_OF_SUM = 1.25
FASTER_THAN_DBOS = 1.5
MOST_EVENTS = 9
_POLL = 0.02


@dataclass
class Runs:
    """Rounds of one contender."""

    seconds: list[float] = field(default_factory=list[float])
    cpu: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """CPU seconds by process."""

    def rates(self, count: int) -> list[float]:
        """Documents per second."""
        return [count / seconds for seconds in self.seconds]

    def milliseconds(self, count: int) -> str:
        """CPU per document, by process."""
        names = self.cpu[0] if self.cpu else {}
        costs = {name: 1000 * middle([cpu[name] for cpu in self.cpu]) / count for name in names}
        parts = ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items() if cost >= 0.05)
        return f"{sum(costs.values()):.1f} ({parts})" if costs else ""


@dataclass(frozen=True)
class Size:
    """History of one run."""

    events: int
    bytes: int


async def compare(servers: Servers, count: int, rounds: int, store: str) -> Table:
    """Every contender on the same servers, round by round.

    Args:
        servers: Where they run.
        count: Documents of a round.
        rounds: How often; figures are medians.
        store: Where Temporal keeps its state, for the title.
    """
    product, engine, steps, by_hand, dbos = (Runs() for _ in range(5))
    for number in range(rounds):
        await import_all(servers, product, f"p{number}", count)
        await _engine(servers, engine, f"e{number}", count)
        await _program(servers, steps, f"s{number}", count, "imports.plain", "steps")
        await _program(servers, by_hand, f"h{number}", count, "imports.plain", "by-hand")
        await _program(servers, dbos, f"d{number}", count, "imports.dbos_queue")
    size = await _history(servers, f"p{rounds - 1}-{WARM:05}")
    table = Table(
        f"{count:,} documents of {workload.ROWS} rows (20 KB), Temporal's state {store}",
        ("how", "documents/s", "CPU ms per document"),
    )
    for name, runs in (
        ("docflow: queue, workflow, rows", product),
        ("(a) empty workflows, one empty local activity", engine),
        ("(b) docflow's own steps without an engine", steps),
        ("the least code by hand without an engine", by_hand),
        ("DBOS, its queue, the same steps", dbos),
    ):
        table.add(name, spread(runs.rates(count)), runs.milliseconds(count))
    _judge(table, product, engine, steps, by_hand, dbos)
    table.notes.append(
        f"history of a document: {at_most(size.events, MOST_EVENTS, ' events')}; "
        f"{size.bytes:,} bytes"
    )
    return table


def _judge(
    table: Table, product: Runs, engine: Runs, steps: Runs, by_hand: Runs, dbos: Runs
) -> None:
    def ratios(work: Runs) -> list[float]:
        together = zip(product.seconds, engine.seconds, work.seconds, strict=True)
        return [whole / (a + b) for whole, a, b in together]

    faster = [theirs / ours for theirs, ours in zip(dbos.seconds, product.seconds, strict=True)]
    table.notes += [
        f"docflow takes {at_most(middle(ratios(steps)), MOST_OF_SUM, ' x (a + b)')}",
        f"with the code by hand as (b): {middle(ratios(by_hand)):.2f} x (a + b)",
        "docflow against DBOS: " + at_least(middle(faster), FASTER_THAN_DBOS, " x its speed"),
    ]


async def import_all(servers: Servers, runs: Runs, tag: str, count: int) -> None:
    """Import documents once, by a worker of its own.

    Args:
        servers: Where they are sent.
        runs: Takes what it costs.
        tag: Begins the names of the documents.
        count: How many are measured.
    """
    bodies = workload.small_documents(servers.container, tag, WARM + count)
    async with (
        asyncpg.create_pool(servers.database_url, min_size=1, max_size=1) as pool,
        worker_process(servers.folder, servers.environment, free_port()) as worker,
    ):
        await workload.send(servers.queue, QUEUE, bodies[:WARM])
        await _completed(pool, tag, WARM)
        done = _completed(pool, tag, WARM + count)
        await _measure(servers, runs, worker.pid, QUEUE, bodies[WARM:], done)
        await _all_closed(servers)


async def _engine(servers: Servers, runs: Runs, tag: str, count: int) -> None:
    log = servers.folder / f"engine-{tag}.log"
    bodies = [f"{tag}-{number:05}".encode() for number in range(WARM + count)]
    async with child(
        (sys.executable, "-m", "benchmarks.imports.engine"), log, servers.environment
    ) as worker:
        await _logged(log, "ready", 1)
        await workload.send(servers.queue, EMPTY_QUEUE, bodies[:WARM])
        await _logged(log, "finished", WARM)
        done = _logged(log, "finished", WARM + count)
        await _measure(servers, runs, worker.pid, EMPTY_QUEUE, bodies[WARM:], done)
        await _all_closed(servers)


async def _measure(
    servers: Servers,
    runs: Runs,
    worker: int,
    queue: str,
    bodies: Sequence[bytes],
    done: Awaitable[None],
) -> None:
    """Time from the first message sent until `done`."""
    meter = CpuMeter({"worker": psutil.Process(worker), **servers.processes})
    watch = Stopwatch()
    await workload.send(servers.queue, queue, bodies)
    await done
    runs.seconds.append(watch.read().wall)
    runs.cpu.append(meter.read())


async def _program(
    servers: Servers, runs: Runs, tag: str, count: int, module: str, *arguments: str
) -> None:
    bodies = workload.small_documents(servers.container, tag, WARM + count)
    file = servers.folder / f"{tag}.jsonl"
    file.write_bytes(b"\n".join(bodies))
    cost = await measured(module, *arguments, str(file), str(WARM), environment=servers.environment)
    runs.seconds.append(cost["wall"])
    runs.cpu.append({"program": cost["cpu"]})


async def _completed(pool: asyncpg.Pool, tag: str, count: int) -> None:
    """Wait until so many imports of a tag are completed."""
    query = (
        "SELECT count(*) FILTER (WHERE state = 'completed') AS done,"
        " count(*) FILTER (WHERE state NOT IN ('completed', 'running')) AS failed"
        " FROM import_tasks WHERE project_id = $1 AND task_id LIKE $2"
    )
    async with asyncio.timeout(TIMEOUT):
        while True:
            row = cast(Any, await pool.fetchrow(query, workload.PROJECT, f"{tag}-%"))
            if row["failed"]:
                raise Failed(f"{row['failed']} imports of {tag} did not complete")
            if row["done"] >= count:
                return
            await asyncio.sleep(_POLL)


async def _logged(log: Path, word: str, count: int) -> None:
    """Wait until a program has written so many lines that begin with a word."""
    async with asyncio.timeout(TIMEOUT):
        while log.read_text().count(f"{word}") < count:
            await asyncio.sleep(_POLL)


async def _all_closed(servers: Servers) -> None:
    """Wait until no run is open, so that none of it is charged to the next contender."""
    client = await connect(servers.temporal)
    async with asyncio.timeout(TIMEOUT):
        while (await client.count_workflows("ExecutionStatus = 'Running'")).count:
            await asyncio.sleep(0.2)


async def _history(servers: Servers, task: str) -> Size:
    client = await connect(servers.temporal)
    handle = client.get_workflow_handle(f"import/{workload.PROJECT}/{task}")
    info = (await handle.describe()).raw_description.workflow_execution_info
    return Size(info.history_length, info.history_size_bytes)
