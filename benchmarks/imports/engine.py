"""`python -m benchmarks.imports.engine`: bridge and worker of empty workflows in one process.

The same layout as `docflow worker imports --with-bridge`, so what it costs is the engine's price.
"""

import asyncio
import os
import signal

from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from benchmarks.imports.empty import EmptyImport, begin, finish, work
from benchmarks.stack import EMPTY_QUEUE
from workers.bridges.service_bus import ServiceBusBridge
from workers.catalogue import CATALOGUE, Pipeline
from workers.collector import tune_collector
from workers.connect import connect
from workers.process import build_worker
from workers.resources.common import open_resources
from workers.services.verdicts import Settle, Verdict
from workers.settings import QueueSettings

PIPELINE = Pipeline(
    task_queue="empty",
    workflows=(EmptyImport,),
    activities=lambda resources: (begin, work, finish),
    activity_slots=CATALOGUE["imports"].activity_slots,
    local_slots=CATALOGUE["imports"].local_slots,
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
            task_queue=PIPELINE.task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            request_eager_start=True,
        )
        return Settle(task)

    queue = QueueSettings.read({**os.environ, "AZURE_SERVICE_BUS_QUEUE_NAME": EMPTY_QUEUE})
    async with open_resources(os.environ) as resources, build_worker(client, PIPELINE, resources):
        tune_collector()
        print("ready", flush=True)
        await ServiceBusBridge(queue, accept).run(stop)


if __name__ == "__main__":
    asyncio.run(main())
