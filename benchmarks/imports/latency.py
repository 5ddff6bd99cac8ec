"""One document at a time on an idle stack, from the queue to the status `completed`."""

import asyncio
import random
import time

import asyncpg
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from benchmarks.imports import workload
from benchmarks.imports.documents import TIMEOUT
from benchmarks.report import Table, at_most, percentile
from benchmarks.stack import Servers
from stack.children import free_port
from stack.embedded import QUEUE, worker_process

MEDIAN = 0.050
WARM = 5
_POLL = 0.003
_QUERY = "SELECT state FROM import_tasks WHERE project_id = $1 AND task_id = $2"


async def measure(servers: Servers, count: int) -> Table:
    """Send documents one by one, each when the stack has been idle for a moment."""
    bodies = workload.small_documents(servers.container, "l", WARM + count)
    seconds: list[float] = []
    async with (
        asyncpg.create_pool(servers.database_url, min_size=1, max_size=1) as pool,
        worker_process(servers.folder, servers.environment, free_port()),
        ServiceBusClient.from_connection_string(servers.queue) as client,
        client.get_queue_sender(QUEUE) as sender,
    ):
        for number, body in enumerate(bodies):
            began = time.perf_counter()
            await sender.send_messages(ServiceBusMessage(body))
            await _completed(pool, f"l-{number:05}")
            seconds.append(time.perf_counter() - began)
            await asyncio.sleep(random.uniform(0.2, 0.5))
    seconds = seconds[WARM:]
    table = Table(f"One document on an idle stack, {count} times", ("", "ms"))
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        table.add(name, f"{1000 * percentile(seconds, share):.0f}")
    table.add("fastest", f"{1000 * min(seconds):.0f}")
    table.notes.append(
        f"p50 {at_most(1000 * percentile(seconds, 0.5), 1000 * MEDIAN, ' ms')}; "
        "from the sender's call until the status row says `completed`"
    )
    return table


async def _completed(pool: asyncpg.Pool, task: str) -> None:
    async with asyncio.timeout(TIMEOUT):
        while await pool.fetchval(_QUERY, workload.PROJECT, task) != "completed":
            await asyncio.sleep(_POLL)
