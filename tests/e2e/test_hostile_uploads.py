"""Bombs and damaged files as uploads: each is refused or fails with its reason, and
the processes that received it keep working."""

import asyncio
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import httpx
import psutil
import pytest

from tests.support.files.compound_files import compound_file, xls
from tests.support.files.open_documents import ods
from tests.support.files.workbooks import sheet_xml, strings_xml, write_workbook
from tests.support.installation import Installation
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

MB: Final = 1 << 20
GROWTH: Final = 150 * MB
"""Bytes that a process may need beyond what it needs for an honest file."""
CELL: Final = '<row r="1"><c r="A1"><v>1</v></c></row>'
GOOD: Final = b"First name,Last name,Email\nAnna,Meier,anna@hostile.example.org\n"
DOCTYPE: Final = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def workbook(path: Path, rows: str = CELL, **more: object) -> bytes:
    return write_workbook(path, {"S": sheet_xml(rows)}, **more).read_bytes()  # type: ignore[arg-type]


def lying(path: Path) -> bytes:
    """A package whose directory says that a sheet of megabytes has 5,000 bytes."""
    content = bytearray(workbook(path, "".join(f'<row r="{n}"/>' for n in range(1, 300_000))))
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"xl/worksheets/sheet1.xml"))
    struct.pack_into("<L", content, at + 24, 5000)
    return bytes(content)


def crowded(path: Path) -> bytes:
    """A package with a directory of its own size."""
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(60_000):
            archive.writestr(f"{n:060}", b"")
    return path.read_bytes()


def wide(path: Path) -> bytes:
    return workbook(path, f'{CELL}<row r="2"><c r="XFD2"><v>2</v></c></row>')


FAILING: Mapping[str, tuple[Callable[[Path], bytes], str]] = {
    "zip bomb": (
        lambda path: workbook(path, extra={"xl/media/image1.png": bytes(64 * MB)}),
        "bomb",
    ),
    "lying directory": (lying, "damaged"),
    "crowded directory": (crowded, "directory"),
    "last column": (wide, "column 16,384"),
    "entities": (
        lambda path: workbook(
            path, extra={"xl/worksheets/sheet1.xml": f"{DOCTYPE}<x>&b;</x>".encode()}
        ),
        "document type",
    ),
    "entities in strings": (
        lambda path: workbook(
            path, strings=strings_xml("<t>&b;</t>").replace("<sst", f"{DOCTYPE}<sst")
        ),
        "document type",
    ),
    "part outside": (
        lambda path: workbook(
            path,
            extra={
                "xl/_rels/workbook.xml.rels": b'<Relationships><Relationship Id="rId1"'
                b' Type="x/worksheet" Target="../../../../etc/passwd"/></Relationships>'
            },
        ),
        "passwd",
    ),
    "cut off": (lambda path: workbook(path)[:-200], "damaged or cut off"),
    "Word": (lambda path: workbook(path, extra={"word/document.xml": b""}), "Word document"),
    "archive": (lambda path: b"PK\x05\x06" + bytes(18), "zip archive"),
    "whole sheet of an ODS": (
        lambda path: ods("S", [["a"]], repeat_rows=1_048_000, repeat_columns=1_000),
        "more than 20,000,000 cells",
    ),
    "damaged XLS": (lambda path: compound_file({"Workbook": b"\x09\x08rubbish"}), "damaged|failed"),
    "cut off XLS": (lambda path: xls([["a", "b"]] * 50)[:2000], "damaged|failed|without"),
    "password": (
        lambda path: compound_file({"EncryptionInfo": b"", "EncryptedPackage": b""}),
        "password",
    ),
    "no text": (lambda path: bytes(range(256)) * 8, "NUL"),
    "endless line": (lambda path: b"a,b\n" + b"x" * (9 * MB), "line of more than"),
    "endless record": (lambda path: b'a,b\n"' + b"x\n" * 11_000, "quote"),
    "quote far below": (lambda path: GOOD * 2000 + b'"Ben,Novak,ben@example.org\n', "quote"),
    "endless cell": (lambda path: b"a,b\n" + b"x" * 140_000 + b",1\n", "a cell of the row|quote"),
}
REFUSED: Mapping[str, tuple[bytes, int]] = {
    "nothing": (b"", 422),
    "PDF": (b"%PDF-1.7\n...", 415),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(4000), 415),
    "program": (b"\x7fELF" + bytes(4000), 415),
    "page": (b"<html><table><tr><td>1", 415),
    "beyond the limit": (b"a,b\n" * (6 * MB), 413),
}


async def test_hostile_files_fail_with_a_reason_and_affect_nothing_else(
    installation: Installation, tmp_path: Path
) -> None:
    parts = (*installation.workers, *installation.gateways)
    processes = [psutil.Process(part.running().pid) for part in parts]
    async with installation.person() as ada:
        await completed(ada, installation, GOOD)
        before = [peak(process) for process in processes]
        contents = {name: make(tmp_path / "made.xlsx") for name, (make, _) in FAILING.items()}
        answers = await asyncio.gather(
            *(failed(ada, installation, content) for content in contents.values())
        )
        for name, reason in zip(contents, answers, strict=True):
            assert re.search(FAILING[name][1], reason), f"{name}: {reason}"
            assert str(installation.folder) not in reason, name
        for name, (content, status) in REFUSED.items():
            answer = await upload(ada, installation, content)
            assert answer.status_code == status, f"{name}: {answer.text}"
            assert answer.headers["content-type"] == "application/problem+json"
        await completed(ada, installation, GOOD)
    assert [part.running().pid for part in parts] == [process.pid for process in processes]
    grown = {
        part.name: peak(process) - peaked
        for part, process, peaked in zip(parts, processes, before, strict=True)
    }
    print({name: f"{bytes_ / MB:.0f} MB" for name, bytes_ in grown.items()})
    assert max(grown.values()) < GROWTH


async def test_an_upload_without_a_length_is_refused_at_the_limit(
    installation: Installation,
) -> None:
    async with installation.person() as ada:
        token = ada.headers["authorization"]
    head = (
        f"POST /api/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    reader, writer = await asyncio.open_connection("127.0.0.1", installation.gateways[0].port)
    answer = asyncio.create_task(reader.readline())
    writer.write(head.encode() + chunk(part))
    sent = 0
    while not answer.done() and sent < 100 * MB:
        writer.write(chunk(b"a,b\n" * (MB // 4)))
        await writer.drain()
        sent += MB
    assert (await answer).split()[1] == b"413"
    assert sent < 100 * MB, "the answer came before the end"
    writer.close()


def chunk(content: bytes) -> bytes:
    """A part of a body of undeclared length."""
    return b"%x\r\n%s\r\n" % (len(content), content)


async def upload(
    person: httpx.AsyncClient, installation: Installation, content: bytes
) -> httpx.Response:
    """Send a file of participants that goes straight through if it can."""
    fields = {
        "importType": "EVENT_PARTICIPANT",
        "contextId": str(installation.club.event_id),
        "autoStart": "true",
    }
    return await person.post("/api/imports", data=fields, files={"file": ("people.xlsx", content)})


async def completed(person: httpx.AsyncClient, installation: Installation, content: bytes) -> None:
    assert await ended(person, installation, content) == ("COMPLETED", None)


async def failed(person: httpx.AsyncClient, installation: Installation, content: bytes) -> str:
    """Why an upload that is taken fails afterwards."""
    state, reason = await ended(person, installation, content)
    assert state == "FAILED", f"{state}: {reason}"
    assert reason
    return reason


async def ended(
    person: httpx.AsyncClient, installation: Installation, content: bytes
) -> tuple[str, str | None]:
    """How an import ends by itself, and why."""
    answer = await upload(person, installation, content)
    assert answer.status_code == 201, answer.text
    status: dict[str, str | None] = {}

    async def over() -> bool:
        nonlocal status
        status = (await person.get(answer.headers["location"])).json()
        return status["finishedAt"] is not None

    await eventually(over, seconds=60, pause=0.2)
    return str(status["status"]), status["reason"]


def peak(process: psutil.Process) -> int:
    """The most memory that a process has had so far; bytes."""
    reported = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", reported)
    assert found is not None
    return int(found[1]) * 1024
