"""An HTTP server that keeps files, for tests."""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote


@dataclass
class HttpFiles:
    """Files by path, with etags.

    Attributes:
        files: Path without its slash, to bytes.
        requests: Request line, headers with lower-case names, and body of each.
        readable: Whether files may be read.
        status: Answered instead, where it is set.
        refused: The same by path.
        part_from: Where the parts begin that it sends, as long as those that are asked for; None:
            where it is asked for.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    readable: bool = True
    status: str | None = None
    refused: dict[str, str] = field(default_factory=dict[str, str])
    part_from: int | None = None
    port: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request of a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:])
                if name
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append((head[0], headers, body))
            method, target, _ = head[0].split(" ")
            status, more, content = self._judged(method, unquote(target[1:]), headers, body)
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *more]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            if method != "HEAD":
                writer.write(content)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _judged(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[str, list[str], bytes]:
        if self.status is not None:
            return self.status, [], b""
        if path in self.refused:
            return self.refused[path], [], b""
        content = self.files.get(path)
        if method == "PUT":
            if content is not None and headers.get("if-none-match") == "*":
                return "412 Precondition Failed", [], b""
            self.files[path] = body
            return "201 Created", [f"ETag: {_tag(body)}"], b""
        if method == "POST":
            return "202 Accepted", [], b"thank you"
        if not self.readable:
            return "405 Method Not Allowed", [], b""
        if content is None:
            return "404 Not Found", [], b""
        tag = _tag(content)
        if headers.get("if-match", tag) != tag:
            return "412 Precondition Failed", [], b""
        if method == "DELETE":
            del self.files[path]
            return "204 No Content", [], b""
        known = [f"ETag: {tag}"]
        if asked := headers.get("range"):
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            begun = start if self.part_from is None else self.part_from
            part = content[begun : begun + len(content) - start]
            last = f"bytes {begun}-{begun + len(part) - 1}/{len(content)}"
            return "206 Partial Content", [*known, f"Content-Range: {last}"], part
        return "200 OK", known, content


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:16]}"'


@asynccontextmanager
async def http_files(tls: ssl.SSLContext | None = None) -> AsyncIterator[HttpFiles]:
    """Run a server for the length of the block."""
    files = HttpFiles()
    server = await asyncio.start_server(files.answer, "127.0.0.1", 0, limit=1 << 22, ssl=tls)
    files.port = server.sockets[0].getsockname()[1]
    try:
        yield files
    finally:
        server.close()
