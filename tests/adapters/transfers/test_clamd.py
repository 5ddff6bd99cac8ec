"""Three verdicts of the real clamd, and what it would pass over in silence."""

import asyncio
import gzip
import io
import random
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.clamd import (
    Clamd,
    ClamdAddress,
    Timeouts,
    ZipSizes,
    eicar,
    encrypted_archive,
    nested_archive,
    zeros,
)
from adapters.ports.errors import Unavailable
from stack.children import free_port
from stack.clamd import EICAR_NAME, PLANTED, PLANTED_NAME, clamd
from tests.support.transfers.archives import FILES, gzip_of, zip_of
from tests.support.transfers.cutting_proxy import cutting_proxy
from tests.support.transfers.openpgp import pieces_of
from workflows.shared.dependencies import Dependency

MB = 1 << 20
MAX = 32 * MB
LIMITS = {"MaxFileSize": "40M", "MaxScanSize": "100M", "StreamMaxLength": "50M"}
needs_clamd = pytest.mark.clamd


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with asyncio.Runner() as runner:
        running = clamd(tmp_path_factory.mktemp("clamd"), **LIMITS)
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


def scanner(address: str, max_bytes: int = MAX) -> Clamd:
    return Clamd(ClamdAddress.parsed(address), max_bytes)


@needs_clamd
async def test_files_are_clean_infected_or_not_scanned(address: str) -> None:
    clam = scanner(address)
    noise = random.Random(6).randbytes(MB)
    for content in (b"", b"x", b"stop;lat\n" * 9, noise, zip_of(FILES), gzip_of(noise)):
        verdict = await clam.scan(pieces_of(content), len(content))
        assert (verdict.clean, verdict.infected, verdict.reason) == (True, None, None)
    planted = noise + PLANTED
    for content in (planted, zip_of({"a": planted}), gzip_of(planted)):
        verdict = await clam.scan(pieces_of(content), len(content))
        assert (verdict.clean, verdict.infected) == (False, PLANTED_NAME)
    verdict = await clam.scan(pieces_of(eicar()), len(eicar()))
    assert verdict.infected == EICAR_NAME
    encrypted = await clam.scan(pieces_of(encrypted_archive()), 100)
    assert (encrypted.clean, encrypted.infected) == (False, None)
    assert "encrypted" in (encrypted.reason or "")
    nested = await clam.scan(pieces_of(nested_archive()), 100)
    assert (nested.clean, nested.infected) == (False, None)
    assert "MaxRecursion" in (nested.reason or "")


@needs_clamd
async def test_a_signature_in_the_last_megabyte_of_a_large_file_is_found(address: str) -> None:
    content = bytes(30 * MB - 500_000) + PLANTED + bytes(400_000)
    verdict = await scanner(address).scan(pieces_of(content, MB), len(content))
    assert verdict.infected == PLANTED_NAME


@needs_clamd
async def test_what_limits_would_skip_is_not_scanned(address: str) -> None:
    clam = scanner(address)
    asked = AsyncMockChunks()
    large = await clam.scan(asked.chunks(), MAX + 1)
    assert (large.clean, large.infected) == (False, None)
    assert "33,554,432 are scanned at most" in (large.reason or "")
    assert not asked.read, "it was read although it is too large"
    # clamd itself answers OK to this one, and has looked at the first 40 MB of it.
    hidden = zip_of({"a": bytes(45 * MB) + PLANTED})
    verdict = await clam.scan(pieces_of(hidden), len(hidden))
    assert (verdict.clean, verdict.infected) == (False, None)
    assert "archive with a file of 47,185" in (verdict.reason or "")
    for content in (gzip_of(bytes(45 * MB) + PLANTED),):
        verdict = await clam.scan(pieces_of(content), len(content))
        assert (verdict.clean, verdict.infected) == (False, None)
        assert "MaxFileSize" in (verdict.reason or "")
    longer = await clam.scan(pieces_of(bytes(51 * MB), MB), 1)
    assert "StreamMaxLength" in (longer.reason or "")


class AsyncMockChunks:
    """Says whether anybody read it."""

    def __init__(self) -> None:
        self.read = False

    async def chunks(self) -> AsyncIterator[bytes]:
        self.read = True
        yield b"x"


@needs_clamd
@pytest.mark.parametrize(
    ("settings", "max_bytes", "reason"),
    [
        ({"AlertExceedsMax": "no"}, MAX, "set AlertExceedsMax yes"),
        ({"AlertEncrypted": "no"}, MAX, "set AlertEncrypted yes"),
        ({}, 41 * MB, "raise its StreamMaxLength, MaxFileSize and MaxScanSize"),
    ],
)
async def test_a_scanner_that_would_pass_over_files_vouches_for_none(
    tmp_path: Path, settings: dict[str, str], max_bytes: int, reason: str
) -> None:
    async with clamd(tmp_path / "clamd", **LIMITS, **settings) as found:
        verdict = await scanner(found, max_bytes).scan(pieces_of(b"x"), 1)
        assert (verdict.clean, verdict.infected) == (False, None)
        assert reason in (verdict.reason or "")


@needs_clamd
async def test_a_scanner_that_is_gone_is_an_outage(tmp_path: Path) -> None:
    async with clamd(tmp_path / "clamd", **LIMITS) as found:
        clam = scanner(found)
        await clam.probe()
        assert (await clam.scan(pieces_of(b"x"), 1)).clean
    for attempt in (clam.probe(), clam.scan(pieces_of(b"x"), 1)):
        with pytest.raises(Unavailable, match="CLAMD_ADDRESS") as down:
            await attempt
        assert down.value.dependency is Dependency.SCANNER


@asynccontextmanager
async def answering(version: bytes, stream: bytes | None) -> AsyncGenerator[str]:
    """A server that answers every VERSION and INSTREAM the same."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        command = await reader.readuntil(b"\0")
        if command == b"zVERSION\0":
            writer.write(version)
        elif stream is not None:
            writer.write(stream)
        writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield f"tcp:127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("version", "stream", "problem"),
    [
        (b"220 mail.example ESMTP\r\n\0", None, "it is not a clamd"),
        (b"ClamAV 1.4.6", None, "without an answer"),
        (b"", None, "without an answer"),
        (b"ClamAV 1.4.6\0", None, "without an answer"),
        (b"ClamAV 1.4.6\0", b"stream: Can't allocate memory ERROR\0", None),
    ],
)
async def test_what_is_no_answer_is_an_outage_or_vouches_for_nothing(
    version: bytes, stream: bytes | None, problem: str | None
) -> None:
    async with answering(version, stream) as found:
        if problem is None:
            verdict = await scanner(found).scan(pieces_of(b"x" * MB), MB)
            assert (verdict.clean, verdict.infected) == (False, None)
            return
        with pytest.raises(Unavailable, match=problem):
            await scanner(found).scan(pieces_of(b"x" * MB), MB)


TRUSTED = (
    b"ClamAV 1.4.6\0",
    b"stream: Eicar FOUND\0",
    b"stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND\0",
    b"stream: Heuristics.Encrypted.Zip FOUND\0",
    b"stream: OK\0",
)
"""What is asked before a file."""


@asynccontextmanager
async def failing(*answers: bytes, dies: bool = False) -> AsyncGenerator[str]:
    """A server that answers so many connections, and in those that follow reads nothing, or dies
    while a file is sent."""
    left, ended, port = list(answers), asyncio.Event(), free_port()
    serving: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if left:
            writer.write(left.pop(0))
            if await reader.readuntil(b"\0") != b"zVERSION\0":
                while size := int.from_bytes(await reader.readexactly(4), "big"):
                    await reader.readexactly(size)
        elif dies:
            await reader.readexactly(MB)
            writer.transport.abort()
        else:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await ended.wait()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(accept, "127.0.0.1", port):
        try:
            yield f"tcp:127.0.0.1:{port}"
        finally:
            ended.set()
            await asyncio.gather(*serving)


@pytest.mark.parametrize(
    ("answers", "timeouts", "problem"),
    [
        (TRUSTED, None, "clamd"),
        ((), Timeouts(version=0.1), "does not answer in time"),
        (TRUSTED[:1], Timeouts(verdict=0.1), "does not answer in time"),
        (TRUSTED, Timeouts(block=0.1), "does not take the bytes"),
    ],
)
async def test_a_scanner_that_hangs_or_dies_is_an_outage(
    answers: tuple[bytes, ...], timeouts: Timeouts | None, problem: str
) -> None:
    async with failing(*answers, dies=timeouts is None) as found:
        clam = Clamd(ClamdAddress.parsed(found), 50 * MB, timeouts or Timeouts())
        with pytest.raises(Unavailable, match=problem) as down:
            # More than fits between the two.
            await clam.scan(pieces_of(bytes(40 * MB), MB), 40 * MB)
        assert down.value.dependency is Dependency.SCANNER


@needs_clamd
@pytest.mark.parametrize("fault", ["cut_after", "stall_after"])
async def test_a_connection_that_breaks_or_falls_silent_is_an_outage_and_no_verdict(
    fault: str, address: str
) -> None:
    host, _, port = address.rpartition(":")
    content = random.Random(7).randbytes(8 * MB)
    async with cutting_proxy(int(port)) as proxy:
        where = ClamdAddress.parsed(f"{host}:{proxy.port}")
        clam = Clamd(where, MAX, Timeouts(version=20.0, block=5.0, verdict=10.0))
        # It is trusted from now: what breaks is the connection of the file.
        assert (await clam.scan(pieces_of(content, MB), len(content))).clean
        setattr(proxy, fault, 3 * MB)
        with pytest.raises(Unavailable) as down:
            await clam.scan(pieces_of(content, MB), len(content))
        assert down.value.dependency is Dependency.SCANNER
        assert proxy.cuts == 1
        proxy.heal()
        assert (await clam.scan(pieces_of(content, MB), len(content))).clean


@needs_clamd
async def test_a_scanner_whose_answer_does_not_arrive_is_an_outage(address: str) -> None:
    _, _, port = address.rpartition(":")
    async with cutting_proxy(int(port)) as proxy:
        proxy.stall_after = 0
        where = ClamdAddress.parsed(f"tcp:127.0.0.1:{proxy.port}")
        clam = Clamd(where, MAX, Timeouts(version=0.5))
        for attempt in (clam.probe(), clam.scan(pieces_of(b"x"), 1)):
            with pytest.raises(Unavailable, match="does not answer in time"):
                await attempt


async def test_the_age_of_signatures_is_that_of_the_daily_database() -> None:
    version = b"ClamAV 1.4.6/27812/Sun Nov 15 08:26:11 2026\0"
    async with answering(version, b"stream: OK\0") as found:
        verdict = await scanner(found).scan(pieces_of(b"x"), 1)
    assert verdict.signatures == datetime(2026, 11, 15, 8, 26, 11, tzinfo=UTC)
    assert not verdict.clean
    assert "does not find the EICAR test file" in (verdict.reason or "")


@pytest.mark.parametrize("text", ["", "unix:relative", "tcp:host", "tcp:host:0", "http://x:1"])
def test_an_address_is_a_socket_or_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match=r"unix:/PATH or tcp:HOST:PORT"):
        ClamdAddress.parsed(text)
    assert ClamdAddress.parsed("unix:/run/clamd").path == "/run/clamd"
    assert ClamdAddress.parsed("tcp:::1:3310") == ClamdAddress(host="::1", port=3310)


@pytest.mark.parametrize("size", [0, 1, MB - 1, MB, 3 * MB + 5])
def test_the_sample_of_zeros_is_a_gzip_file_of_that_size(size: int) -> None:
    packed = b"".join(zeros(size))
    assert gzip.decompress(packed) == bytes(size)
    assert len(packed) < 100 + size // 200


def test_the_largest_file_of_an_archive_is_seen_as_it_passes_by() -> None:
    def largest(content: bytes, piece: int = 1_000) -> int | None:
        sizes = ZipSizes()
        for start in range(0, len(content), piece):
            sizes.take(content[start : start + piece])
        return sizes.largest()

    whole = zip_of(FILES)
    assert largest(whole) == max(map(len, FILES.values()))
    assert largest(whole, 1) == largest(whole, len(whole))
    assert largest(b"PK" + bytes(100)) is None
    assert largest(whole[:-1]) is None
    assert largest(b"no archive") == 0
    assert largest(b"") == 0
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive, archive.open("a", "w", force_zip64=True) as part:
        part.write(b"x")
    assert largest(sink.getvalue()) in (1, 0xFFFFFFFF)
