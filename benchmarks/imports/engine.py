"""`python -m benchmarks.imports.engine`: bridge and worker of empty workflows in one process.

The same layout as `docflow worker imports --with-bridge`, so what it costs is the engine's price.
"""

import asyncio
import os
import signal

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.worker import Worker

from benchmarks.imports.empty import EmptyImport, work
from benchmarks.stack import EMPTY_QUEUE
from workers.imports.register import IMPORTS
from workers.imports.settings import QueueSettings
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.connect import connect
from workers.shared.machine import tune_collector
from workers.shared.services.bodies import Settle, Verdict

TASK_QUEUE = "empty"


def _worker(client: Client) -> Worker:
    """As a worker of imports, with an empty step."""
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[EmptyImport],
        activities=[work],
        max_concurrent_activities=IMPORTS.activity_slots,
        max_concurrent_local_activities=IMPORTS.local_slots,
        max_cached_workflows=IMPORTS.cached_runs,
    )


async def main() -> None:
    """Work until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    client = await connect()

    async def accept(raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        task = raw.decode()
        await client.start_workflow(
            EmptyImport.run,
            task,
            id=task,
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            request_eager_start=True,
        )
        return Settle(task)

    queue = QueueSettings.read({**os.environ, "AZURE_SERVICE_BUS_QUEUE_NAME": EMPTY_QUEUE})
    async with _worker(client):
        tune_collector()
        print("ready", flush=True)
        await ServiceBusBridge(queue, accept).run(stop)


if __name__ == "__main__":
    asyncio.run(main())
