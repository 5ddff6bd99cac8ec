"""Servers that take webhooks, each badly in a way of its own."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class SeenRequests:
    """What a receiver has seen.

    Attributes:
        requests: Head and body of each request.
        left: Set when a sender has closed its connection.
    """

    port: int = 0
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)


def with_status(status: str, *headers: str) -> Answer:
    """Answers every request so."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = "\r\n".join((f"HTTP/1.1 {status}", *headers, "Content-Length: 0"))
        writer.write(f"{head}\r\n\r\n".encode())

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the request and says nothing."""
    await reader.read()


async def byte_by_byte(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a byte at a time and never comes to the end of its head."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not reader.at_eof():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.02)


async def lying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks another protocol."""
    writer.write(b"220 mail.example.org ESMTP\r\n\r\n")


async def garbled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends a record of TLS that holds no ciphertext of its session."""
    record = b"\x17\x03\x03\x00\x20" + 32 * b"g"
    os.write(writer.get_extra_info("socket").fileno(), record)
    await reader.read()


async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hangs up without an answer."""


async def endless_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with headers that do not end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    line = b"X-Header: " + 1000 * b"a" + b"\r\n"
    while not reader.at_eof():
        writer.write(line)
        await writer.drain()


@asynccontextmanager
async def receiver(
    answer: Answer, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[SeenRequests]:
    """A receiver on a free loopback port."""
    site = SeenRequests()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length:")
            )
            site.requests.append((head, await reader.readexactly(length)))
            await answer(reader, writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            site.left.set()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


def endless_body(site: list[int]) -> Answer:
    """Answers with gigabytes; `site` gets the bytes that were taken of them."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        block = bytes(65536)
        try:
            while True:
                writer.write(block)
                await writer.drain()
                site.append(len(block))
        except ConnectionError:
            pass

    return answer
