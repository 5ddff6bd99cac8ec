"""A worker of imports that dies right after one of its steps: writes to the store or the blobs."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from temporalio.worker import Worker

from tests.support.forks import to_log
from workers.imports.register import IMPORTS
from workers.imports.resources import import_resources
from workers.imports.settings import RunSettings
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workers.shared.worker_factory import build_worker

STEPS: Final = frozenset(
    {
        *("begin", "complete", "close", "restart", "write", "stage", "swap", "finish", "retire"),
        *("begin_schedule", "remember", "terminate", "give_sections", "make_referred"),
        "hand_over",
        *("record_schedule_projects", "register_upload", "change_activities", "delete_service"),
        *("copy", "upload", "put", "delete", "remove"),
    }
)
"""Calls that leave something behind; a worker that dies after another one has done nothing new."""
READS: Final = frozenset(
    {
        "open_rows",
        *("mark", "remembered", "zero_led_lengths", "known_codes", "rejects", "schedule_names"),
        *(
            "schedules_holding",
            "referred",
            "staged",
            "stored_rows",
            "stat",
            "download",
            "read",
            "list",
            "probe",
        ),
    }
)
"""The other calls."""


@dataclass
class Steps:
    """Steps that were taken, by name, and the number of the one after which the process dies."""

    last: int = 0
    taken: list[str] = field(default_factory=list)

    def took(self, name: str) -> None:
        """Note a step that is done."""
        self.taken.append(name)
        if len(self.taken) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """Passes every call on to a port, and notes the steps among them."""

    def __init__(self, port: Any, steps: Steps) -> None:
        self._port, self._steps = port, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._noted(name, found) if name in STEPS else found

    def _noted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def noted(*args: Any, **kwargs: Any) -> Any:
            result = await call(*args, **kwargs)
            self._steps.took(name)
            return result

        return noted


@asynccontextmanager
async def step_worker(
    settings: Mapping[str, str], task_queue: str, steps: Steps
) -> AsyncGenerator[Worker]:
    """A worker of imports on a task queue of its own, whose steps are noted."""
    client = await connect(settings["TEMPORAL_ADDRESS"])
    async with open_resources(settings) as common:
        own = import_resources(common.database, client, RunSettings.read(settings))
        blobs: Any = Watched(common.blobs, steps)
        store: Any = Watched(own.store, steps)
        async with build_worker(
            client,
            replace(IMPORTS, task_queue=task_queue, cached_runs=0),
            replace(common, blobs=blobs),
            replace(own, store=store),
        ) as worker:
            yield worker


def main(folder: Path, settings: Mapping[str, str], task_queue: str, last: int) -> None:
    """Work until the step after which to die; what the process says goes to `worker.log`."""
    to_log(folder / "worker.log")

    async def work() -> None:
        async with step_worker(settings, task_queue, Steps(last)):
            await asyncio.Event().wait()

    asyncio.run(work())
