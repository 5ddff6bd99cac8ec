"""A worker of batches that dies right after one of its calls to AWS.

Every call is written to the file `calls` in its folder by its name; after the call that the file
`last` there names, as `NAME NUMBER`, the process kills itself.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.aws.session import AwsClients, AwsSettings, open_aws
from tests.support.forks import to_log
from workers.batches import resources
from workers.shared.process import run_worker

CALLS, LAST = "calls", "last"


class Calls:
    """Writes the calls of every client down, and ends the process after one of them."""

    def __init__(self, folder: Path) -> None:
        self._calls, self._last = folder / CALLS, folder / LAST

    def listen(self, clients: AwsClients) -> None:
        """Note every answer of AWS, before the caller gets it."""
        for client in (clients.sqs, clients.sns, clients.lambda_, clients.iam):
            client.meta.events.register("after-call", self._answered)

    def _answered(self, **call: Any) -> None:
        name = call["model"].name
        with self._calls.open("a") as file:
            file.write(f"{name}\n")
        number = self._calls.read_text().split().count(name)
        if self._last.exists() and self._last.read_text() == f"{name} {number}":
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, settings: Mapping[str, str]) -> None:
    """Work until killed; what it says goes to `worker.log`.

    Args:
        folder: For its files.
        settings: Of the worker.
    """
    to_log(folder / "worker.log")
    os.environ |= settings
    calls = Calls(folder)

    @asynccontextmanager
    async def opened(settings: AwsSettings) -> AsyncGenerator[AwsClients]:
        async with open_aws(settings) as clients:
            calls.listen(clients)
            yield clients

    resources.open_aws = opened
    asyncio.run(run_worker(["batches"], os.environ))
