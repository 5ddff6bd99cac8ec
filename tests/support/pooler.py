"""A pooler of PostgreSQL that gives its one connection to another client after each transaction.

It forgets prepared statements then, as if the client met another connection the next time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

READY = b"Z"
SYNCS = (b"S", b"Q")
"""Messages of a client after which the server says that it is ready."""
IDLE = b"I"
FORGET = b"DEALLOCATE ALL\0"


class Pooler:
    """One connection to a server, for any number of clients that need no password."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, greeting: bytes
    ) -> None:
        self._reader, self._writer = reader, writer
        self._greeting = greeting
        self._turn = asyncio.Lock()
        self.turns = 0
        self.startups: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be the server of one client until it ends."""
        try:
            self.startups.append(await _startup(reader))
            writer.write(self._greeting)
            while (message := await _message(reader))[:1] != b"X":
                async with self._turn:
                    self.turns += 1
                    await self._transaction(message, reader, writer)
                    await self._forget()
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return
        finally:
            writer.close()

    async def _transaction(
        self, message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass messages in both directions until the server is idle again."""
        waiting = asyncio.Event()
        waiting.set()

        async def send(first: bytes) -> None:
            following = first
            while True:
                self._writer.write(following)
                if following[:1] in SYNCS:
                    waiting.clear()
                    await waiting.wait()
                following = await _message(reader)

        sending = asyncio.create_task(send(message))
        try:
            while True:
                answer = await _message(self._reader)
                writer.write(answer)
                if answer[:1] == READY:
                    if answer[5:] == IDLE:
                        return
                    waiting.set()
        finally:
            sending.cancel()

    async def _forget(self) -> None:
        self._writer.write(b"Q" + (len(FORGET) + 4).to_bytes(4, "big") + FORGET)
        while (await _message(self._reader))[:1] != READY:
            pass


@asynccontextmanager
async def pooled(url: str) -> AsyncGenerator[tuple[str, Pooler]]:
    """URL of the same database behind a pooler, and the pooler.

    Args:
        url: `postgresql://user@host:port/database`, which needs no password.
    """
    parts = urlsplit(url)
    server_reader, server_writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        greeting = await _greeted(
            server_reader, server_writer, parts.username or "", parts.path.lstrip("/")
        )
        pooler = Pooler(server_reader, server_writer, greeting)
        server = await asyncio.start_server(pooler.serve, "127.0.0.1")
        async with server:
            port = server.sockets[0].getsockname()[1]
            yield f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}", pooler
    finally:
        server_writer.close()
        await server_writer.wait_closed()


async def _greeted(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str, database: str
) -> bytes:
    """Begin a session; all that the server says until it is ready."""
    names = b"\0".join(each.encode() for each in ("user", user, "database", database))
    body = (196608).to_bytes(4, "big") + names + b"\0\0"
    writer.write((len(body) + 4).to_bytes(4, "big") + body)
    said = b""
    while (answer := await _message(reader))[:1] != READY:
        said += answer
    return said + answer


async def _startup(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)
