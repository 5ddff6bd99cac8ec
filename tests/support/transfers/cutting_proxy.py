"""A proxy that drops connections, or keeps them open and passes nothing on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class CuttingProxy:
    """Passes connections on to a port of this machine.

    Attributes:
        port: Where it listens.
        cut_after: Bytes of one direction after which it hangs up; None: it never does.
        stall_after: Bytes of one direction after which it passes nothing on; None: never.
        cuts: How often it has done one of both.
        passed: Bytes of both directions that it has passed on.
    """

    target: int
    port: int = 0
    cut_after: int | None = None
    stall_after: int | None = None
    cuts: int = 0
    passed: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def heal(self) -> None:
        """Pass everything on from now."""
        self.cut_after = self.stall_after = None

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ways = [
            asyncio.create_task(self._pass(reader, far_writer)),
            asyncio.create_task(self._pass(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First: the proxy may be closed while the rest is awaited.
            for each in (writer, far_writer):
                each.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed = 0
        with suppress(OSError):
            while piece := await reader.read(1 << 16):
                passed += len(piece)
                if self.cut_after is not None and passed > self.cut_after:
                    self.cuts += 1
                    return
                if self.stall_after is not None and passed > self.stall_after:
                    self.cuts += 1
                    await asyncio.Event().wait()
                self.passed += len(piece)
                writer.write(piece)
                await writer.drain()

    async def close(self) -> None:
        """End what is open."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def cutting_proxy(target: int) -> AsyncIterator[CuttingProxy]:
    """Run one before a port for the length of the block."""
    proxy = CuttingProxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
