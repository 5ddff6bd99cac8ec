"""What the demo says of a file that does not end where it should, and of what a machine lacks."""

import gzip
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from stack.clamd import PLANTED
from stack.demo.api import ApiError
from stack.demo.samples import Expected, Sample, divided
from stack.demo.transfers.file_transfer import CARRIED, QUARANTINED, CarryingFailed, FileCarrying
from stack.demo.transfers.file_transfer import TransferSample as Transfer
from stack.demo.transfers.site import missing_parts
from tests.support.memory.blobs import MemoryBlobs
from workflows.transfers.receipts import assemble_receipt, canonical
from workflows.transfers.runs import receipt_blob

ID: Final = "5eed" * 16
CONTENT: Final = b"one;two\n"
RECEIPT: Final = canonical(assemble_receipt(ID, "e" * 64, []))
STORED: Final = {"ACME/a.csv": CONTENT, "archive/a.csv.gz": gzip.compress(CONTENT)}
RECEIPTS: Final = {receipt_blob(ID): RECEIPT}
QUARANTINE: Final = {f"quarantine/{ID}/02-00000.bin": CONTENT + PLANTED}
DONE: Final = {"status": "Succeeded", "reason": None}
INFECTED: Final = {"status": "Failed", "reason": "infected: a.csv"}


async def a_container(blobs: Mapping[str, bytes]) -> MemoryBlobs:
    async def of(content: bytes) -> AsyncIterator[bytes]:
        yield content

    made = MemoryBlobs()
    for name, content in blobs.items():
        await made.write(name, of(content))
    return made


async def a_carrying(
    folder: Path,
    event: Mapping[str, Any],
    stored: Mapping[str, bytes] = STORED,
    documents: Mapping[str, bytes] = RECEIPTS,
    fired: Mapping[str, Any] = DONE,
) -> FileCarrying:
    """A file over a gateway that says so of its events, and containers that hold this."""
    events = [
        {"transfer_id": ID, "type": "Succeeded", "subject": "File Upload", **event},
        {"transfer_id": "f" * 64, "type": "Carried", "subject": "a.csv", **fired},
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        if (request.method, request.url.path) != ("GET", "/api/v1/transfers"):
            return httpx.Response(404)
        return httpx.Response(200, json={"items": events, "next": None})

    gateway = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://gateway")
    containers = await a_container(stored), await a_container(documents)
    return FileCarrying(gateway, *containers, folder, lambda state: None)


async def test_a_file_that_is_where_it_should_be(tmp_path: Path) -> None:
    carrying = await a_carrying(tmp_path, DONE)
    carried = await carrying.finish(ID, CONTENT, "a.csv")
    assert carried.state == CARRIED
    assert carried.note.startswith("receipt of a.csv: file://")


async def test_an_infected_file_that_is_in_quarantine_alone(tmp_path: Path) -> None:
    carrying = await a_carrying(tmp_path, INFECTED, stored={}, documents=QUARANTINE)
    carried = await carrying.finish(ID, CONTENT, "a.csv")
    assert (carried.state, carried.note) == (
        QUARANTINED,
        "a.csv is in quarantine: infected: a.csv",
    )


@pytest.mark.parametrize(
    ("event", "changes", "says"),
    [
        (DONE, {"stored": {}}, "ACME/a.csv"),
        (DONE, {"stored": {**STORED, "ACME/a.csv": b"one"}}, "has other bytes"),
        (DONE, {"fired": INFECTED}, "the event about a.csv failed: infected: a.csv"),
        (DONE, {"documents": {}}, "receipts/"),
        (
            DONE,
            {"documents": {receipt_blob(ID): RECEIPT.replace(b"eee", b"fff", 1)}},
            "the receipt of a.csv does not hold",
        ),
        (INFECTED, {"stored": {}}, "a.csv is not in quarantine: infected: a.csv"),
        (INFECTED, {"documents": QUARANTINE}, "a.csv was written on, although: infected"),
    ],
)
async def test_a_file_that_went_wrong(
    tmp_path: Path, event: Mapping[str, Any], changes: Mapping[str, Any], says: str
) -> None:
    carrying = await a_carrying(tmp_path, event, **changes)
    with pytest.raises(CarryingFailed, match=says):
        await carrying.finish(ID, CONTENT, "a.csv")


async def test_an_event_that_is_refused(tmp_path: Path) -> None:
    carrying = await a_carrying(tmp_path, DONE)
    with pytest.raises(ApiError, match="POST /api/v1/transfers answered 404"):
        await carrying.announce("a.csv")


def test_what_a_machine_lacks_is_named_and_the_other_samples_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = Sample(file="equipment.csv", expect=Expected())
    file = Sample(file="a.csv", transfer=Transfer(), expect=Expected())
    assert divided([[table, file], [table]], []) == ([[table, file], [table]], None)
    monkeypatch.setenv("PATH", str(tmp_path))
    lacking = missing_parts()
    assert "gpg is missing: apt-get install gnupg" in lacking
    assert divided([[table, file], [table]], lacking) == (
        [[table], [table]],
        f"not carried: a.csv; {'; '.join(lacking)}",
    )
