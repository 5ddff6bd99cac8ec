"""HTTPS sources whose server is odd: they are read to their end, or not at all.

Some state no length or a wrong one, answer GET alone, or pack what they send.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from temporalio.exceptions import ApplicationError

from tests.support.transfers.actions import Endpoints, read, reading
from workflows.shared.errors import UNAVAILABLE
from workflows.transfers.partners import Partner, PlaceKind

CONTENT: Final = b"0123456789" * 30
CHUNKS: Final = b"".join(b"1e\r\n%b\r\n" % CONTENT[at : at + 30] for at in range(0, 300, 30))
CHUNKED: Final = "Transfer-Encoding: chunked"
CHANGED: Final = "grew or shrank while it was read"
AWAY: Final = "cannot be reached"


def _length(size: int) -> str:
    return f"Content-Length: {size}"


@asynccontextmanager
async def serving(answered: Callable[[bytes], tuple[str, str, bytes]]) -> AsyncGenerator[Partner]:
    """A server that closes each connection after one answer.

    Args:
        answered: Status, header and body by what is asked.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status, header, body = answered(await reader.readuntil(b"\r\n\r\n"))
        lines = [f"HTTP/1.1 {status}", "Connection: close", header]
        writer.write("\r\n".join([*filter(None, lines), "", ""]).encode() + body)
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
    def answered(asked: bytes) -> tuple[str, str, bytes]:
        return ("200 OK", get, body) if asked.startswith(b"GET") else ("200 OK", head, b"")

    async with serving(answered) as partner:
        ends = Endpoints.at(tmp_path, partner)
        if isinstance(becomes, bytes):
            result = await read(ends, reading("a.csv"))
            assert await ends.contents(result.files) == {"a.csv": becomes}
        else:
            with pytest.raises(ApplicationError, match=becomes) as failed:
                await read(ends, reading("a.csv"))
            assert (failed.value.type == UNAVAILABLE) == (becomes is AWAY)


@pytest.mark.parametrize("status", ["403 Forbidden", "405 Method Not Allowed", "501 No"])
async def test_a_server_that_answers_get_alone_can_be_read(tmp_path: Path, status: str) -> None:
    def answered(asked: bytes) -> tuple[str, str, bytes]:
        is_get = asked.startswith(b"GET")
        return ("200 OK", _length(300), CONTENT) if is_get else (status, _length(0), b"")

    async with serving(answered) as partner:
        ends = Endpoints.at(tmp_path, partner)
        result = await read(ends, reading("a.csv"))
        assert await ends.contents(result.files) == {"a.csv": CONTENT}


async def test_a_server_that_packs_what_it_sends_is_asked_for_the_file_itself(
    tmp_path: Path,
) -> None:
    def answered(asked: bytes) -> tuple[str, str, bytes]:
        packs = b"gzip" in asked
        tag, size = ("packed", 40) if packs else ("plain", 300)
        if b"If-Match" in asked and f'"{tag}"'.encode() not in asked:
            return "412 Precondition Failed", _length(0), b""
        header = f'ETag: "{tag}"\r\n{_length(size)}'
        return "200 OK", header, CONTENT[:size] if asked.startswith(b"GET") else b""

    async with serving(answered) as partner:
        ends = Endpoints.at(tmp_path, partner)
        result = await read(ends, reading("a.csv"))
        assert await ends.contents(result.files) == {"a.csv": CONTENT}
