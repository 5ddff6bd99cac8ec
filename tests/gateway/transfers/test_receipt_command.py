"""`docflow transfer receipt`, at a gateway, and over a file alone."""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_commands import Terminal
from tests.gateway.transfers.conftest import TransferGateway
from tests.support.blobs import arriving
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import a_transfer
from workers.shared.cli.context import CliContext
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import (
    ReceiptFile,
    ReceiptStep,
    assemble_receipt,
    canonical,
    seal_step,
)
from workflows.transfers.runs import receipt_blob

pytestmark = pytest.mark.asyncio(loop_scope="session")

TRANSFER = hashlib.sha256(b"a transfer").hexdigest()
EVENT = "e" * 64
Docflow = Callable[..., Any]


def receipt(*actions: str) -> bytes:
    steps: list[ReceiptStep] = []
    for index, action in enumerate(actions):
        step = ReceiptStep(
            transfer_id=TRANSFER,
            index=index,
            action=action,
            at=datetime(2026, 11, 22, 14, index, tzinfo=UTC),
            files=(ReceiptFile(name="[a].csv", size=7, verdict="clean"),),
            remarks=("chmod was refused",),
            previous=steps[-1].sha256 if steps else EVENT,
            sha256="",
        )
        steps.append(seal_step(step))
    return canonical(assemble_receipt(TRANSFER, EVENT, steps))


@pytest.fixture
def docflow(olga: Terminal) -> Docflow:
    async def call(*arguments: str, code: int = 0) -> str:
        # A file needs no gateway.
        environment = {} if "--file" in arguments else olga.environment
        done = await run_docflow_in_thread(
            "transfer", "receipt", *arguments, context=CliContext(environment)
        )
        assert done.exit_code == code, done.output
        return done.output

    return call


async def stored(transfers: TransferGateway, content: bytes) -> Path:
    """A transfer with this receipt; the file of its blob."""
    name = receipt_blob(TRANSFER)
    file = transfers.resources.scratch.parent / "blobs" / "imports" / name
    file.unlink(missing_ok=True)
    blob = await transfers.resources.blobs.write(name, arriving(content, 1_000))
    row = a_transfer(TRANSFER, TransferStatus.SUCCEEDED, receipt=blob)
    await transfers.store.record(row)
    return file


async def test_a_receipt_is_shown_and_verified(
    transfers: TransferGateway, docflow: Docflow, tmp_path: Path
) -> None:
    await stored(transfers, receipt("ReadFile", "Scan", "WriteFile"))
    shown = await docflow(TRANSFER[:8])
    for part in ("1. ReadFile", "3. WriteFile", "[a].csv", "clean", "remark: chmod was refused"):
        assert part in shown
    verified = await docflow(TRANSFER, "--verify")
    assert "whole: 3 steps, each as it was written, and as the transfer has recorded it" in verified
    exported = tmp_path / "receipt.json"
    exported.write_text(await docflow(TRANSFER, "-o", "json"))
    offline = await docflow("--file", str(exported), "--verify")
    assert "whole: 3 steps" in offline and "not covered" not in offline
    assert "or the file" in await docflow(TRANSFER, "--file", str(exported), code=2)


async def test_a_changed_step_is_named(docflow: Docflow, tmp_path: Path) -> None:
    changed = json.loads(receipt("ReadFile", "Scan", "WriteFile"))
    changed["steps"][1]["files"][0]["verdict"] = "infected"
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(changed, indent=2))
    done = await docflow("--file", str(path), "--verify", code=1)
    assert "step 2 (Scan) was changed" in done
    assert "infected" in await docflow("--file", str(path))


async def test_what_the_chain_does_not_cover_is_named_and_the_row_covers_it(
    transfers: TransferGateway, docflow: Docflow, tmp_path: Path
) -> None:
    file = await stored(transfers, receipt("ReadFile"))
    alone = tmp_path / "receipt.json"
    sent = json.loads(receipt("ReadFile")) | {"resent_from": "c" * 64}
    alone.write_text(json.dumps(sent))
    file.write_bytes(alone.read_bytes())
    offline = await docflow("--file", str(alone), "--verify")
    assert "not covered by the hashes of the steps: resent_from;" in offline
    assert "not the one" in await docflow(TRANSFER, "--verify", code=1)


async def test_a_receipt_that_was_written_anew_is_found_by_the_row(
    transfers: TransferGateway, docflow: Docflow
) -> None:
    file = await stored(transfers, receipt("ReadFile", "Scan", "WriteFile"))
    file.write_bytes(receipt("ReadFile", "WriteFile"))
    await docflow(TRANSFER)
    done = await docflow(TRANSFER, "--verify", code=1)
    assert "not the one of this transfer" in done
    file.write_bytes(b"\x00 no JSON")
    assert "is not JSON" in await docflow(TRANSFER, code=1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "not JSON"), (b"[]", "no steps"), (b'{"steps": 1}', "no steps"), (b"[" * 9_999, "not ")],
)
async def test_what_is_no_receipt_is_refused(
    docflow: Docflow, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "receipt.json"
    path.write_bytes(content)
    assert reason in await docflow("--file", str(path), code=1)


async def test_what_is_missing_is_reported(
    transfers: TransferGateway, docflow: Docflow, tmp_path: Path
) -> None:
    assert "name the transfer" in await docflow(code=2)
    assert "there is no transfer" in await docflow("ab" * 8, code=1)
    gone = await docflow("--file", str(tmp_path / "gone.json"), code=1)
    assert "cannot be read" in gone
    await transfers.store.record(a_transfer("d0" * 32, TransferStatus.SUCCEEDED))
    assert "has no receipt: it " in await docflow("d0" * 32, code=1)
