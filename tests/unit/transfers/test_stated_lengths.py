"""HTTPS sources whose length is not stated, or wrong: read to their end, or not at all."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from temporalio.exceptions import ApplicationError

from contracts.errors import UNAVAILABLE
from contracts.transfers import Partner, PlaceKind
from tests.support.transfers.actions import Endpoints, read, reading

CONTENT: Final = b"0123456789" * 30
CHUNKS: Final = b"".join(b"1e\r\n%b\r\n" % CONTENT[at : at + 30] for at in range(0, 300, 30))
CHUNKED: Final = "Transfer-Encoding: chunked"
CHANGED: Final = "grew or shrank while it was read"
AWAY: Final = "cannot be reached"


def _length(size: int) -> str:
    return f"Content-Length: {size}"


@asynccontextmanager
async def serving(head: str, get: str, body: bytes) -> AsyncGenerator[Partner]:
    """A server with one answer to HEAD and one to GET, after which it closes the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        is_get = asked.startswith(b"GET")
        lines = ["HTTP/1.1 200 OK", 'ETag: "1"', "Connection: close", get if is_get else head]
        writer.write("\r\n".join([*filter(None, lines), "", ""]).encode())
        writer.write(body if is_get else b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Partner(name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=port)


@pytest.mark.parametrize(
    ("head", "get", "body", "becomes"),
    [
        ("", CHUNKED, CHUNKS + b"0\r\n\r\n", CONTENT),
        (CHUNKED, CHUNKED, CHUNKS + b"0\r\n\r\n", CONTENT),
        (_length(0), CHUNKED, CHUNKS + b"0\r\n\r\n", CONTENT),
        (_length(0), _length(300), CONTENT, CONTENT),
        ("", _length(300), CONTENT, CONTENT),
        ("Content-Length: many", _length(300), CONTENT, AWAY),
        # The size that was stated before shows that the end of the connection is that of the file.
        (_length(300), "", CONTENT, CONTENT),
        (_length(300), "", CONTENT[:200], CHANGED),
        ("", "", CONTENT, "states no length and sends no chunks"),
        (_length(0), "", CONTENT, "states no length and sends no chunks"),
        # Cut off.
        ("", CHUNKED, CHUNKS, AWAY),
        (_length(0), CHUNKED, CHUNKS[:100], AWAY),
        ("", _length(400), CONTENT, AWAY),
        (_length(300), _length(300), CONTENT[:200], AWAY),
        # Of two lengths one is wrong, or the file has changed.
        (_length(200), CHUNKED, CHUNKS + b"0\r\n\r\n", CHANGED),
        (_length(400), CHUNKED, CHUNKS + b"0\r\n\r\n", CHANGED),
        (_length(400), _length(300), CONTENT, CHANGED),
        (_length(300), _length(0), b"", CHANGED),
        ("", CHUNKED, b"0\r\n\r\n", "is empty; `AllowEmpty` accepts such files"),
        (_length(0), _length(0), b"", "is empty; `AllowEmpty` accepts such files"),
        ("", _length(0), b"", "is empty; `AllowEmpty` accepts such files"),
    ],
)
async def test_a_source_is_read_to_its_end_or_refused(
    tmp_path: Path, head: str, get: str, body: bytes, becomes: bytes | str
) -> None:
    async with serving(head, get, body) as partner:
        ends = Endpoints.at(tmp_path, partner)
        if isinstance(becomes, bytes):
            result = await read(ends, reading("a.csv"))
            assert await ends.contents(result.files) == {"a.csv": becomes}
        else:
            with pytest.raises(ApplicationError, match=becomes) as failed:
                await read(ends, reading("a.csv"))
            assert (failed.value.type == UNAVAILABLE) == (becomes is AWAY)
