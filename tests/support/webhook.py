"""A web server that receives notices."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Receiver:
    """Takes requests, and answers as a test says.

    Attributes:
        answers: Status lines, with headers; the last one stays.
        requests: Request line, headers and body of each.
        silent: It does not answer.
        gone: Set when a sender has left.
    """

    answers: list[str] = field(default_factory=lambda: ["204 No Content"])
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    silent: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append((head[0], headers, body))
        if self.silent:
            await reader.read()
        else:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        self.gone.set()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a free port."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1")
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=hidden"
    async with server:
        yield receiver
