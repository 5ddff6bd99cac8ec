"""`python -m benchmarks.peers.dbos_flow`: a DBOS workflow with three steps, from its queue."""

import asyncio
import os
from typing import Any

from dbos import DBOS
from sqlalchemy import make_url

from benchmarks.peers.steps import AT_ONCE, Steps, open_steps

QUEUE = "peers"
WORKFLOW = "import_document"
_POLLING_SECONDS = 0.02


def system_database() -> str:
    """Where DBOS keeps its queue and its steps: the same server."""
    url = make_url(os.environ["DATABASE_URL"]).set(database="dbos_peers")
    return url.render_as_string(hide_password=False)


def define(steps: Steps) -> Any:
    """The workflow."""

    @DBOS.step()
    async def prepare(body: str) -> str:
        return await steps.prepare(body)

    @DBOS.step()
    async def load(body: str, path: str) -> int:
        return await steps.load(body, path)

    @DBOS.step()
    async def finish(body: str) -> None:
        await steps.finish(body)

    @DBOS.workflow(name=WORKFLOW)
    async def import_document(body: str) -> None:
        await load(body, await prepare(body))
        await finish(body)

    return import_document


async def main() -> None:
    """Work until killed; workflows of an earlier process are taken up at the launch."""
    DBOS(
        config={
            "name": "peers",
            "system_database_url": system_database(),
            "log_level": "WARNING",
            "application_version": "1",
        }
    )
    async with open_steps() as steps:
        define(steps)
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=_POLLING_SECONDS
        )
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
