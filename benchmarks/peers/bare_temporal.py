"""`python -m benchmarks.peers.bare_temporal`: a Temporal workflow with three activities."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.worker import Worker

from workers.shared.connect import connect

with workflow.unsafe.imports_passed_through():
    from benchmarks.peers.steps import AT_ONCE, Steps, open_steps

QUEUE = "peers"
_SOON = timedelta(seconds=10)
"""After which an activity of a killed worker is given to another one."""


class Activities:
    """The three steps."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    @activity.defn(name="peers.prepare")
    async def prepare(self, body: str) -> str:
        """Open the status row."""
        return await self._steps.prepare(body)

    @activity.defn(name="peers.load")
    async def load(self, body: str, path: str) -> int:
        """Write the rows."""
        return await self._steps.load(body, path)

    @activity.defn(name="peers.finish")
    async def finish(self, body: str) -> None:
        """Close the status row."""
        await self._steps.finish(body)


@workflow.defn(name="PeerImport")
class PeerImport:
    """The steps, one after another."""

    @workflow.run
    async def run(self, body: str) -> None:
        """Import one document."""
        path = await workflow.execute_activity_method(
            Activities.prepare, body, start_to_close_timeout=_SOON
        )
        await workflow.execute_activity_method(
            Activities.load, args=[body, path], start_to_close_timeout=_SOON
        )
        await workflow.execute_activity_method(
            Activities.finish, body, start_to_close_timeout=_SOON
        )


async def main() -> None:
    """Work until killed."""
    client = await connect()
    async with open_steps() as steps:
        each = Activities(steps)
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[PeerImport],
            activities=[each.prepare, each.load, each.finish],
            max_concurrent_activities=AT_ONCE,
        )
        async with worker:
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
