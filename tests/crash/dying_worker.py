"""A worker of batches that dies right after one of its calls to AWS.

Run as `python -m tests.crash.dying_worker FILE [NAME NUMBER]`: every call is written to the file by
its name; after so many calls of that name, the process kills itself.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.aws.session import AwsClients, AwsSettings, open_aws
from workers import batch_resources
from workers.process import run_worker


class Calls:
    """Counts the calls of every client, and ends the process after one of them."""

    def __init__(self, file: Path, last: tuple[str, int] | None) -> None:
        self._file = file
        self._last = last
        self._numbers = Counter[str]()

    def listen(self, clients: AwsClients) -> None:
        """Hear of every answer of AWS, before anybody else does."""
        for client in (clients.sqs, clients.sns, clients.lambda_, clients.iam):
            client.meta.events.register("after-call", self._answered)

    def _answered(self, **call: Any) -> None:
        name = call["model"].name
        self._numbers[name] += 1
        with self._file.open("a") as file:
            file.write(f"{name}\n")
        if (name, self._numbers[name]) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def main(file: Path, last: tuple[str, int] | None) -> None:
    """Work until killed."""
    calls = Calls(file, last)

    @asynccontextmanager
    async def opened(settings: AwsSettings) -> AsyncGenerator[AwsClients]:
        async with open_aws(settings) as clients:
            calls.listen(clients)
            yield clients

    batch_resources.open_aws = opened
    asyncio.run(run_worker(["batches"], os.environ))


if __name__ == "__main__":
    main(Path(sys.argv[1]), (sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else None)
