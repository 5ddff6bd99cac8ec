"""A tunnel on this machine for clients that resolve names themselves.

`obstore` connects by a resolver of its own, so that an address which was checked before may be
another one when it is used. It is given this as its proxy (RFC 9110, 9.3.6): the connection is made
here, to an address that is checked where it is made. TLS ends in `obstore`; nothing is read here.
"""

import asyncio
import base64
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from adapters.http.resolved import AddressRefused
from adapters.places.egress import Egress

_HEAD_BYTES = 16 * 1024
_PIECE = 256 * 1024
_HEAD_SECONDS = 10.0


class Tunnel:
    """What a tunnel was asked for.

    Attributes:
        url: To be given to the client as proxy; its password is of this tunnel alone.
        refused: Why the newest connection was not permitted; None: each one was.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._password = secrets.token_urlsafe(24)
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.refused: str | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator["Tunnel"]:
        """Accept connections for the length of the block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://docflow:{self._password}@127.0.0.1:{port}"
        try:
            yield self
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            far_reader, far_writer = await self._connected(head)
        except AddressRefused as refusal:
            self.refused = str(refusal)
            await _answer(writer, "403 Forbidden")
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await _answer(writer, "502 Bad Gateway")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await _both_ways(reader, writer, far_reader, far_writer)
        finally:
            writer.close()

    async def _connected(self, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        method, target, *_ = head.split(" ", 2)
        expected = base64.b64encode(f"docflow:{self._password}".encode()).decode()
        if method != "CONNECT" or f"Basic {expected}" not in head:
            raise ValueError("no request for this tunnel")
        host, _, port = target.rpartition(":")
        connection = await self._egress.connect(host.strip("[]"), int(port))
        return await asyncio.open_connection(sock=connection, limit=_PIECE)


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    with suppress(OSError):
        await writer.drain()


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    try:
        await asyncio.gather(_one_way(reader, far_writer), _one_way(far_reader, writer))
    except asyncio.CancelledError:
        # Closing waits until the peer has read what was written; it may have stopped reading.
        for each in (writer, far_writer):
            each.transport.abort()
        raise
    finally:
        far_writer.close()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()
