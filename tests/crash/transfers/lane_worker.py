"""A worker of one queue of transfers, which dies at a moment of one of its activities."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, client, worker

from tests.support.forks import to_log
from tests.support.transfers.whole import whole_workers
from workflows.shared import policies

UNNOTICED = timedelta(seconds=1)
"""How long the death of a worker goes unnoticed."""


@dataclass(frozen=True)
class Death:
    """When a worker dies."""

    activity: str
    after: float
    """Seconds after the activity has begun; at its end where that comes first, before Temporal
    learns of it."""


class Dying(client.Interceptor, worker.Interceptor):
    """Kills the process at its moment."""

    def __init__(self, death: Death) -> None:
        self._death = death

    def intercept_activity(
        self, next: worker.ActivityInboundInterceptor
    ) -> worker.ActivityInboundInterceptor:
        return _Watching(next, self._death)


class _Watching(worker.ActivityInboundInterceptor):
    def __init__(self, next: worker.ActivityInboundInterceptor, death: Death) -> None:
        super().__init__(next)
        self._death = death

    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        if activity.info().activity_type != self._death.activity:
            return await super().execute_activity(input)
        kill = (os.getpid(), signal.SIGKILL)
        # By a thread: the loop may be busy at that moment.
        threading.Timer(self._death.after, os.kill, kill).start()
        try:
            return await super().execute_activity(input)
        finally:
            os.kill(*kill)


@contextmanager
def short_heartbeats() -> Generator[None]:
    """Let the workers of this process notice a death soon.

    It surrounds all workers of a process: set by each of several at once, it would be reset in
    another order, and stay.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies, "LONG", {**policies.LONG, "heartbeat_timeout": UNNOTICED})
        yield


@asynccontextmanager
async def lane_worker(
    settings: Mapping[str, str], queue: str | None, death: Death | None = None
) -> AsyncGenerator[None]:
    """Serve one queue, or all and events, with everything that docflow's own worker has."""
    deaths = [] if death is None else [Dying(death)]
    async with whole_workers(settings, *deaths, queue=queue):
        yield


def main(log: Path, settings: Mapping[str, str], queue: str | None, death: Death) -> None:
    """Work until that moment; what the process says goes to its log."""
    to_log(log)

    async def work() -> None:
        async with lane_worker(settings, queue, death):
            await asyncio.Event().wait()

    with short_heartbeats():
        asyncio.run(work())
