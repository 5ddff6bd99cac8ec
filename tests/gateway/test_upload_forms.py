"""Form uploads as they arrive, in pieces of any size, from senders of any kind."""

import tracemalloc
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from adapters.ports.errors import BlobNotFound
from tests.support.memory.blobs import MemoryBlobs
from workers.shared.gateway.http.upload import Upload
from workers.shared.services.errors import Refused, ServiceError, TooLarge, UnsupportedFile
from workers.spreadsheets.upload_form import check_beginning

BOUNDARY = "----boundary7MA4"
CSV = b"First name,Last name\r\nAnna,Meier\r\n"


def upload_of(asked: Request, limit: int) -> Upload:
    return Upload(asked, limit, check_beginning)


def field(name: str, value: str) -> bytes:
    return part(f'form-data; name="{name}"', value.encode())


def file(content: bytes = CSV, filename: str = "people.csv", name: str = "file") -> bytes:
    return part(
        f'form-data; name="{name}"; filename="{filename}"', content, b"Content-Type: text/csv\r\n"
    )


def part(disposition: str, content: bytes, more: bytes = b"") -> bytes:
    head = f"--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n".encode()
    return head + more + b"\r\n" + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def request(
    body: bytes | AsyncIterator[bytes],
    piece: int = 64,
    *,
    content_type: str = f"multipart/form-data; boundary={BOUNDARY}",
    headers: Sequence[tuple[bytes, bytes]] = (),
    breaks_off: bool = False,
) -> Request:
    """A request whose body arrives in pieces."""

    async def pieces() -> AsyncIterator[bytes]:
        if isinstance(body, bytes):
            for start in range(0, len(body), piece):
                yield body[start : start + piece]
        else:
            async for block in body:
                yield block

    arriving = pieces()

    async def receive() -> Message:
        block = await anext(arriving, None)
        if block is not None:
            return {"type": "http.request", "body": block, "more_body": True}
        if breaks_off:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/imports",
        "headers": [(b"content-type", content_type.encode()), *headers],
    }
    return Request(scope, receive)


async def take(upload: Upload) -> tuple[bytes, dict[str, str]]:
    """All of an upload, as the gateway takes it."""
    await upload.open()
    content = b"".join([block async for block in upload.file()])
    return content, dict(await upload.finish())


@given(
    piece=st.integers(1, 300),
    content=st.binary(min_size=1, max_size=400).map(lambda tail: b"a;b\r\n" + tail),
)
async def test_pieces_of_any_size(piece: int, content: bytes) -> None:
    body = form(field("importType", "RESULT"), file(content), field("contextId", "7"))
    got, fields = await take(upload_of(request(body, piece), 1000))
    assert got == content
    assert fields == {"importType": "RESULT", "contextId": "7"}


async def test_fields_before_the_file_are_known_early() -> None:
    upload = upload_of(
        request(form(field("csrf", "x"), file(), field("importType", "RESULT"))), 1000
    )
    await upload.open()
    assert upload.fields == {"csrf": "x"}
    assert upload.filename == "people.csv"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("C:\\fakepath\\läufer.csv", "läufer.csv"),
        ("../../etc/passwd", "passwd"),
        ("a\tb\u202e.csv", "a?b?.csv"),
        ("x" * 300 + ".csv", "x" * 247 + "xxxx.csv"),
    ],
)
async def test_names_of_files_are_bare(sent: str, kept: str) -> None:
    upload = upload_of(request(form(file(filename=sent))), 1000)
    await upload.open()
    assert upload.filename == kept
    assert len(kept) <= 255


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "has no file"),
        (form(field("importType", "RESULT")), "has no file"),
        (form(file(filename="")), "no name"),
        (form(file(b"")), "empty"),
        (form(file(), file()), "one file"),
        (form(file(name="other")), "one file"),
        (form(field("a", "1"), field("a", "2"), file()), "appears twice"),
        (form(field("a", "x" * 5000), file()), "longer than"),
        (form(*(field(f"f{n}", "") for n in range(40)), file()), "more than 32"),
        (form(part("form-data", b"x"), file()), "no proper name"),
        (b"no form at all, whatever the header says", "malformed"),
        (form(file())[:-4], "in the middle"),
        (form(file())[: len(CSV) + 40], "has no file|in the middle"),
        (file(CSV)[:-20], "in the middle"),
        (form(file(), field("a", "1"))[:-30], "ends early"),
    ],
)
async def test_what_is_no_proper_form(body: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        await take(upload_of(request(body), 1000))


@pytest.mark.parametrize(
    "content_type",
    ["", "text/csv", "application/json", "multipart/mixed; boundary=x"],
)
def test_other_content_types(content_type: str) -> None:
    with pytest.raises(UnsupportedFile, match="form upload"):
        upload_of(request(b"", content_type=content_type), 1000)


@pytest.mark.parametrize("boundary", ["", "; boundary=", f"; boundary={'x' * 300}"])
def test_a_boundary_is_needed(boundary: str) -> None:
    with pytest.raises(Refused):
        upload_of(request(b"", content_type=f"multipart/form-data{boundary}"), 1000)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"%PDF-1.7 ...", "a PDF"),
        (b"\x89PNG\r\n\x1a\n", "a PNG"),
        (b"\xef\xbb\xbf <html>", "HTML"),
        (b"MZ\x90\x00" + b"x" * 10_000, "Windows program"),
    ],
)
async def test_what_is_no_spreadsheet_is_not_stored(content: bytes, what: str) -> None:
    blobs = MemoryBlobs()
    upload = upload_of(request(form(file(content))), 1 << 20)
    await upload.open()
    with pytest.raises(UnsupportedFile, match=what):
        await blobs.write("a", upload.file())
    with pytest.raises(BlobNotFound):
        await blobs.stat("a")


async def test_the_limit_counts_bytes_of_the_file() -> None:
    content = b"a;b\n" + b"x" * 996
    assert (await take(upload_of(request(form(file(content))), 1000)))[0] == content
    with pytest.raises(TooLarge, match="999"):
        await take(upload_of(request(form(file(content))), 999))


def test_a_request_with_a_too_large_length_is_not_read() -> None:
    said = [(b"content-length", b"3000000")]
    with pytest.raises(TooLarge):
        upload_of(request(b"", headers=said), 1_000_000)


@pytest.mark.parametrize("before", [b"", form(file())[:-2]])
async def test_the_request_has_a_limit_beside_its_file(before: bytes) -> None:
    """Before the first boundary and after the last a form may hold anything."""

    async def endless() -> AsyncIterator[bytes]:
        yield before
        while True:
            yield b"\r\n" * 5000

    with pytest.raises(ServiceError):
        await take(upload_of(request(endless()), 1000))


async def test_a_disconnected_sender_leaves_no_blob() -> None:
    blobs = MemoryBlobs()
    body = file(b"a;b\n" * 5000)[:-10]
    upload = upload_of(request(body, breaks_off=True), 1 << 20)
    await upload.open()
    with pytest.raises(ClientDisconnect):
        await blobs.write("a", upload.file())
    with pytest.raises(BlobNotFound):
        await blobs.stat("a")


async def test_memory_does_not_grow_with_the_file() -> None:
    # Whatever else the process does is counted too: the quietest of some attempts counts.
    assert min([await _peak_of_an_upload(megabytes=64) for _ in range(3)]) < 2 << 20


async def _peak_of_an_upload(megabytes: int) -> int:
    """The most memory, in bytes, that was in use while a file was read."""

    async def body() -> AsyncIterator[bytes]:
        start, _, end = form(file(b"CONTENT")).partition(b"CONTENT")
        yield start
        for _ in range(megabytes * 16):
            yield b"a;b;c;\r\n" * 8192
        yield end

    upload = upload_of(request(body()), megabytes << 20)
    await upload.open()
    tracemalloc.start()
    try:
        size = 0
        async for block in upload.file():
            size += len(block)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == megabytes << 20
    return peak
