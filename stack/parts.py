"""A process of the stack: how it is started, and what shows that it is up."""

import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stack.children import child, require_free, wait_until

DOCFLOW: Final = (sys.executable, "-m", "workers.shared.cli")


def _nothing() -> None:
    return


@dataclass(frozen=True)
class Part:
    """A process that can be started again and again, on the same ports and with the same data."""

    name: str
    """As messages name it, such as "the worker"."""
    command: Sequence[str]
    ports: Sequence[int]
    """Those that it listens on, and that must be free when it starts."""
    log: Path
    is_up: Callable[[], Awaitable[bool]]
    environment: Mapping[str, str] | None = None
    """Ours when None."""
    prepare: Callable[[], None] = _nothing
    """Called before each start."""

    def started(self) -> AbstractAsyncContextManager[Process]:
        """The process, at its very beginning.

        Raises:
            StackError: A port is taken.
        """
        for port in self.ports:
            # Another server on the port would answer in place of ours.
            require_free(port)
        self.prepare()
        return child(self.command, self.log, self.environment)

    @asynccontextmanager
    async def ready(
        self, announce: Callable[[str], None] = lambda text: None
    ) -> AsyncGenerator[Process]:
        """The process, once it is ready.

        Args:
            announce: Gets a line when the process is slow.

        Raises:
            StackError: A port is taken, or it ends before it is ready.
        """
        async with self.started() as process:
            await wait_until(self.is_up, process, self.name, self.log, announce)
            yield process
