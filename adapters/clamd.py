"""A client of clamd that knows what clamd did not scan.

How large the files in a ZIP archive are that passes by.

clamd unpacks files of a ZIP archive up to its limit, scans that much, and says nothing of the rest.

Source: APPNOTE.TXT of PKWARE, 4.3.12 and 4.3.16.

A client of clamd that knows what clamd did not scan.

clamd answers OK to what its limits skipped, unless it is configured to alert. So it is asked from
time to time what it makes of small files (`samples`): one that is a virus to every scanner, one
that goes beyond every limit, one that is encrypted, and one that unpacks to the size that it is
said to scan. Where one of the answers is another than it should be, nothing counts as scanned.

Source: clamd(8), commands VERSION and INSTREAM.
"""

import asyncio
import io
import re
import struct
import zipfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from adapters.object_blobs import in_blocks
from adapters.ports.errors import Unavailable
from adapters.ports.transfers import ScanVerdict
from workflows.shared.dependencies import Dependency

_DEEP: Final = 110
"""Archives in each other: more than clamd follows, whatever is set (100)."""
_PIECE: Final = 1 << 20


def eicar() -> bytes:
    """What every scanner takes for a virus, and is none; put together so that this file is none."""
    return b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$" + b"EICAR-STANDARD-ANTIVIRUS" + b"-TEST-FILE!$H+H*"


def nested_archive() -> bytes:
    """Archives in each other, deeper than any scanner looks."""
    content = b"nothing"
    for _ in range(_DEEP):
        content = _zip(content)
    return content


def encrypted_archive() -> bytes:
    """A ZIP archive whose file is marked as encrypted."""
    content = bytearray(_zip(bytes(64)))
    directory = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, 6, 1)
    struct.pack_into("<H", content, directory + 8, 1)
    return bytes(content)


def zeros(size: int) -> Iterator[bytes]:
    """A gzip file of about a thousandth that unpacks to `size` bytes.

    Its pieces are one and the same, as far as they are equally long: nothing is compressed twice.
    """
    yield b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    block, checksum = bytes(_PIECE), 0
    packed = _flushed(block)
    for start in range(0, size, _PIECE):
        piece = block[: size - start]
        checksum = zlib.crc32(piece, checksum)
        yield packed if len(piece) == _PIECE else _flushed(piece)
    yield b"\x03\x00" + struct.pack("<II", checksum, size & 0xFFFFFFFF)


def _flushed(piece: bytes) -> bytes:
    """Blocks of a deflate stream that may stand behind any others (RFC 1951)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(piece) + deflate.flush(zlib.Z_FULL_FLUSH)


def _zip(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a"), content)
    return sink.getvalue()


_HEAD: Final = b"PK"
_ENTRY: Final = b"PK\x01\x02"
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_ENTRY_BYTES: Final = 46
_KEPT: Final = 8 << 20
_UNKNOWN: Final = 0xFFFFFFFF


class ZipSizes:
    """Keeps the end of a stream, where the directory of a ZIP archive stands."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = bytearray()

    def take(self, piece: bytes) -> None:
        """The next bytes."""
        if len(self._head) < len(_HEAD):
            self._head += piece[: len(_HEAD)]
        if self._head.startswith(_HEAD):
            self._tail += piece
            if len(self._tail) > 2 * _KEPT:
                del self._tail[:-_KEPT]

    def largest(self) -> int | None:
        """Bytes of the largest file as the directory states them; None: that is not known.

        0 where it is not a ZIP archive.
        """
        if not self._head.startswith(_HEAD):
            return 0
        end = self._tail.rfind(_END)
        if end < 0 or end + _END_BYTES > len(self._tail):
            return None
        (size,) = struct.unpack_from("<I", self._tail, end + 12)
        place = end - size
        if place < 0 or size == _UNKNOWN:
            return None
        return self._largest_from(place, end)

    def _largest_from(self, place: int, end: int) -> int | None:
        largest = 0
        while place < end:
            if not self._tail.startswith(_ENTRY, place) or place + _ENTRY_BYTES > end:
                # With ZIP64, its own end of the directory stands here.
                break
            (size,) = struct.unpack_from("<I", self._tail, place + 24)
            lengths = struct.unpack_from("<HHH", self._tail, place + 28)
            largest = max(largest, size)
            place += _ENTRY_BYTES + sum(lengths)
        return largest


DEFAULT_BYTES: Final = 100 << 20
"""`MaxFileSize` and `StreamMaxLength` of clamd where its settings say nothing."""
_CHUNK: Final = 1 << 20
_CONNECT_SECONDS: Final = 5.0
_TRUSTED_SECONDS: Final = 600.0
"""For how long the answers to the samples hold."""
_ANSWER_BYTES: Final = 4_096
_VERSION: Final = re.compile(r"ClamAV [^/]+(?:/\d+/(?P<built>.+))?")
_BUILT: Final = "%a %b %d %H:%M:%S %Y"
_FOUND: Final = re.compile(r"stream: (?P<name>.+) FOUND")
_LIMITS: Final = "Heuristics.Limits.Exceeded"
_ENCRYPTED: Final = "Heuristics.Encrypted"
_TOO_LONG: Final = "INSTREAM size limit exceeded"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long clamd may keep silent; seconds. One that hangs is an outage as one that is gone."""

    version: float = 20.0
    """Until it says which it is."""
    block: float = 300.0
    """Until it takes the next bytes of a file: it takes none while all of its threads scan."""
    verdict: float = 900.0
    """Until it has scanned a file; its own `MaxScanTime` is 120 seconds."""


@dataclass(frozen=True, slots=True)
class ClamdAddress:
    """Where clamd listens."""

    path: str | None = None
    host: str | None = None
    port: int = 3310

    @classmethod
    def parsed(cls, text: str) -> Self:
        """From `unix:/run/clamav/clamd.ctl` or `tcp:host:3310`.

        Raises:
            ValueError: It is neither.
        """
        kind, _, rest = text.partition(":")
        if kind == "unix" and rest.startswith("/"):
            return cls(path=rest)
        host, _, port = rest.rpartition(":")
        if kind == "tcp" and host and port.isdecimal() and 0 < int(port) < 65_536:
            return cls(host=host, port=int(port))
        raise ValueError("must be unix:/PATH or tcp:HOST:PORT")


class Clamd:
    """Scans files with clamd, as `Scanner`.

    Args:
        address: Where it listens.
        max_bytes: The largest file that it scans: at most its `MaxFileSize` and
            `StreamMaxLength`, and below its `MaxScanSize`.
        timeouts: How long it may keep silent.
    """

    def __init__(
        self,
        address: ClamdAddress,
        max_bytes: int = DEFAULT_BYTES,
        timeouts: Timeouts = Timeouts(),
    ) -> None:
        self._address = address
        self._max_bytes = max_bytes
        self._timeouts = timeouts
        self._trusted = ("", 0.0)
        self._lock = asyncio.Lock()

    async def probe(self) -> None:
        """See that it answers.

        Raises:
            Unavailable: It does not.
        """
        await self._version()

    async def scan(self, chunks: AsyncIterator[bytes], size: int) -> ScanVerdict:
        """Scan one file."""
        version, signatures = await self._version()
        if size > self._max_bytes:
            return ScanVerdict(
                clean=False,
                reason=f"it has {size:,} bytes, and {self._max_bytes:,} are scanned at most",
                signatures=signatures,
            )
        if (reason := await self._distrust(version)) is not None:
            return ScanVerdict(clean=False, reason=reason, signatures=signatures)
        sizes = ZipSizes()
        verdict = _verdict(await self._stream(_seen(chunks, sizes)), signatures)
        if not verdict.clean:
            return verdict
        largest = sizes.largest()
        if largest is None or largest > self._max_bytes:
            what = "files of unknown size" if largest is None else f"a file of {largest:,} bytes"
            return ScanVerdict(
                clean=False,
                reason=f"it is an archive with {what}, and {self._max_bytes:,} bytes are scanned",
                signatures=signatures,
            )
        return verdict

    async def _version(self) -> tuple[str, datetime | None]:
        """What it calls itself, and when its signatures were made; None: it does not say."""
        text = await self._command(b"VERSION")
        found = _VERSION.fullmatch(text)
        if found is None:
            raise _unavailable(f"it is not a clamd: it answers {text[:100]!r}")
        built = found["built"]
        if built is None:
            return text, None
        with suppress(ValueError):
            # In the zone of its machine, which it does not name: half a day does not count.
            return text, datetime.strptime(built, _BUILT).replace(tzinfo=UTC)
        return text, None

    async def _distrust(self, version: str) -> str | None:
        """Why its answers mean nothing; None: they can be trusted."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            trusted, until = self._trusted
            if trusted == version and now < until:
                return None
            self._trusted = ("", 0.0)
            if (reason := await self._checked()) is None:
                self._trusted = (version, now + _TRUSTED_SECONDS)
            return reason

    async def _checked(self) -> str | None:
        if _FOUND.fullmatch(await self._stream(_of(eicar()))) is None:
            return "clamd does not find the EICAR test file: its signatures are missing"
        if _LIMITS not in await self._stream(_of(nested_archive())):
            return "clamd does not tell what its limits skip: set AlertExceedsMax yes"
        if _ENCRYPTED not in await self._stream(_of(encrypted_archive())):
            return "clamd does not tell what is encrypted: set AlertEncrypted yes"
        answer = await self._stream(_each(zeros(self._max_bytes)))
        if answer != "stream: OK":
            return (
                f"clamd does not scan files of {self._max_bytes:,} bytes as it is said to "
                f"({answer}): raise its StreamMaxLength, MaxFileSize and MaxScanSize, or lower "
                "CLAMD_MAX_BYTES"
            )
        return None

    async def _command(self, command: bytes) -> str:
        async with self._connected() as (reader, writer):
            writer.write(b"z" + command + b"\0")
            return await _answer(reader, self._timeouts.version)

    async def _stream(self, chunks: AsyncIterator[bytes]) -> str:
        async with self._connected() as (reader, writer):
            writer.write(b"zINSTREAM\0")
            async for block in in_blocks(chunks, _CHUNK):
                try:
                    await self._sent(writer, struct.pack(">I", len(block)), block)
                except ConnectionError:
                    # It has answered before the end, and says why.
                    return await _answer(reader, self._timeouts.version)
            with suppress(ConnectionError):
                await self._sent(writer, bytes(4))
            return await _answer(reader, self._timeouts.verdict)

    async def _sent(self, writer: asyncio.StreamWriter, *pieces: bytes) -> None:
        writer.writelines(pieces)
        try:
            async with asyncio.timeout(self._timeouts.block):
                await writer.drain()
        except TimeoutError as error:
            raise _unavailable("it does not take the bytes of a file") from error

    @asynccontextmanager
    async def _connected(
        self,
    ) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await self._open()
        except (OSError, TimeoutError) as error:
            raise _unavailable(_reason(error)) from error
        try:
            yield reader, writer
        finally:
            # Not closed: what it does not take would be waited for.
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._address.path is not None:
            return await asyncio.open_unix_connection(self._address.path)
        return await asyncio.open_connection(self._address.host, self._address.port)


async def _answer(reader: asyncio.StreamReader, seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            answer = await reader.read(_ANSWER_BYTES)
            while answer and not answer.endswith(b"\0") and len(answer) < _ANSWER_BYTES:
                more = await reader.read(_ANSWER_BYTES)
                if not more:
                    break
                answer += more
    except (OSError, TimeoutError) as error:
        raise _unavailable(_reason(error)) from error
    if not answer.endswith(b"\0"):
        raise _unavailable("it closed the connection without an answer")
    return answer.rstrip(b"\0\n").decode("utf-8", "replace")


def _verdict(answer: str, signatures: datetime | None) -> ScanVerdict:
    if answer == "stream: OK":
        return ScanVerdict(clean=True, signatures=signatures)
    if found := _FOUND.fullmatch(answer):
        name = found["name"]
        if name.startswith(_LIMITS):
            reason = f"it goes beyond a limit of clamd ({name.removeprefix(_LIMITS + '.')})"
            return ScanVerdict(clean=False, reason=reason, signatures=signatures)
        if name.startswith(_ENCRYPTED):
            reason = "it is encrypted, or holds what is"
            return ScanVerdict(clean=False, reason=reason, signatures=signatures)
        return ScanVerdict(clean=False, infected=name[:200], signatures=signatures)
    if _TOO_LONG in answer:
        reason = "it is longer than clamd takes (StreamMaxLength)"
        return ScanVerdict(clean=False, reason=reason, signatures=signatures)
    raise _unavailable(f"it answers {answer[:200]!r}")


async def _seen(chunks: AsyncIterator[bytes], sizes: ZipSizes) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        sizes.take(chunk)
        yield chunk


async def _of(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it does not answer in time" if isinstance(error, TimeoutError) else str(error)


def _unavailable(what: str) -> Unavailable:
    return Unavailable(f"clamd (CLAMD_ADDRESS) cannot be used: {what}", Dependency.SCANNER)
