"""Workers of transfers with everything that docflow's own have: real places, staging, receipts."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client, Interceptor

from workers.building import build_lanes, build_worker
from workers.connect import connect
from workers.pipelines.base import Context
from workers.pipelines.transfers import TRANSFERS
from workers.resources.common import Resources, open_resources


@dataclass(frozen=True)
class WholeWorkers:
    """What such workers use."""

    client: Client
    resources: Resources


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
