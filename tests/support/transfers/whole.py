"""Workers of transfers with everything that docflow's own have: real places, staging, receipts."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client, Interceptor

from tests.support.fresh_database import fresh_url
from workers.shared.connect import connect
from workers.shared.register import Context
from workers.shared.resources import Resources, open_resources
from workers.shared.worker_factory import build_lanes, build_worker
from workers.transfers.register import TRANSFERS


@dataclass(frozen=True)
class WholeWorkers:
    """What such workers use."""

    client: Client
    resources: Resources


def folder_settings(folder: Path, address: str, queues: str) -> Mapping[str, str]:
    """Settings of workers that keep everything below a folder.

    Args:
        folder: Holds `jobsettings.json`; partners of the kind `folder` may lie in it.
        address: Of Temporal.
        queues: What stands in the file of queues.
    """
    (folder / "blobs").mkdir()
    (folder / "queues.yaml").write_text(queues)
    return {
        "TEMPORAL_ADDRESS": address,
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_TRANSFERS_SETTINGS": str(folder / "jobsettings.json"),
        "DOCFLOW_TRANSFERS_QUEUES": str(folder / "queues.yaml"),
        "DOCFLOW_TRANSFERS_FOLDERS": str(folder),
    }


@asynccontextmanager
async def whole_workers(
    settings: Mapping[str, str], *interceptors: Interceptor, queue: str | None = None
) -> AsyncGenerator[WholeWorkers]:
    """Serve events and all queues, or one queue alone.

    Args:
        settings: As the process would have them.
        interceptors: Of the workers' client.
        queue: The one that is served; None: all of them, and events.
    """
    config = (await connect(settings["TEMPORAL_ADDRESS"])).config()
    config["interceptors"] = [*config["interceptors"], *interceptors]
    client = Client(**config)
    async with AsyncExitStack() as stack:
        common = await stack.enter_async_context(open_resources(settings))
        context = Context(settings, client, common)
        own = await stack.enter_async_context(TRANSFERS.open(context, TRANSFERS.settings(settings)))
        if queue is None:
            await stack.enter_async_context(build_worker(client, TRANSFERS, common, own))
        for lane in build_lanes(client, TRANSFERS, common, own, queue, environment=settings):
            await stack.enter_async_context(lane)
        yield WholeWorkers(client, common)
