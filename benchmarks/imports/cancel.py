"""Imports that are cancelled in a step that waits, because another session has locked a table."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import asyncpg
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from temporalio.client import Client

from benchmarks.imports import workload
from benchmarks.imports.documents import TIMEOUT
from benchmarks.report import Table, at_most, percentile
from benchmarks.stack import Servers
from stack.children import free_port
from stack.embedded import QUEUE, worker_process
from workers.shared.connect import connect
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import workflow_id
from workflows.shared.contracts import Answer

LONGEST: Final = 3.0
"""Seconds from a request to cancel to the end of the run."""
SPREAD: Final = 5.0
"""Seconds after its start in which a run is cancelled, at random: in local and remote steps."""
_LOOK: Final = 0.02


async def measure(servers: Servers, count: int) -> Table:
    """Cancel documents one by one, each at another moment of a step that waits for a lock."""
    bodies = workload.small_documents(servers.container, "c", count)
    client = await connect(servers.temporal)
    seconds: list[float] = []
    async with (
        worker_process(servers.folder, servers.environment, free_port()),
        ServiceBusClient.from_connection_string(servers.queue) as queue,
        queue.get_queue_sender(QUEUE) as sender,
    ):
        for number, body in enumerate(bodies):
            async with _locked(servers.database_url):
                await sender.send_messages(ServiceBusMessage(body))
                seconds.append(await _cancelled(client, f"c-{number:05}"))
    table = Table(f"{count} imports cancelled in a step that waits for a lock", ("", "s"))
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        table.add(name, f"{percentile(seconds, share):.1f}")
    table.add("slowest", f"{max(seconds):.1f}")
    table.notes.append(
        f"slowest {at_most(max(seconds), LONGEST, ' s')}; from the request, 0 to {SPREAD:.0f} s "
        "after the start, until the run has ended as `cancelled`"
    )
    return table


@asynccontextmanager
async def _locked(database_url: str) -> AsyncGenerator[None]:
    connection = cast(Any, await asyncpg.connect(database_url))
    try:
        await connection.execute("BEGIN; LOCK TABLE equipment IN EXCLUSIVE MODE")
        yield
    finally:
        await connection.close()


async def _cancelled(client: Client, task: str) -> float:
    handle = client.get_workflow_handle_for(DocumentImport.run, workflow_id(workload.PROJECT, task))
    async with asyncio.timeout(TIMEOUT):
        while not await _is_there(client, handle.id):
            await asyncio.sleep(_LOOK)
        await asyncio.sleep(random.uniform(0, SPREAD))
        began = time.perf_counter()
        await handle.signal(DocumentImport.cancel_signal, Answer(reason="measured"))
        result = await handle.result()
    assert result.state == "cancelled"
    return time.perf_counter() - began


async def _is_there(client: Client, run: str) -> bool:
    """Whether the run is there."""
    return (await client.count_workflows(f"WorkflowId = '{run}'")).count > 0
