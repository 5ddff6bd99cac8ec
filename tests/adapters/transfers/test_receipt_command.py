"""`docflow transfers receipt`, over a database and a folder of blobs, and over a file alone."""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from activities.transfers.store import SqlTransferStore
from adapters.database.engine import open_database
from adapters.files.blobs import FolderBlobs
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
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "blobs" / "imports").mkdir(parents=True)
    return {"DATABASE_URL": database_url, "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs")}


@pytest.fixture
def docflow(environment: dict[str, str]) -> Docflow:
    async def call(*arguments: str, code: int = 0) -> Result:
        done = await run_docflow_in_thread(
            "transfers", "receipt", *arguments, context=CliContext(environment)
        )
        assert done.exit_code == code, done.output
        return done

    return call


async def stored(environment: dict[str, str], content: bytes | None) -> Path:
    """A transfer with this receipt; the file of its blob."""
    folder = Path(environment["DOCFLOW_BLOB_FOLDER"]) / "imports"
    blob = None
    if content is not None:
        blob = await FolderBlobs(folder).write(receipt_blob(TRANSFER), arriving(content, 1_000))
    async with open_database(environment["DATABASE_URL"]) as database:
        await SqlTransferStore(database).record(
            a_transfer(TRANSFER, TransferStatus.SUCCEEDED, receipt=blob)
        )
    return folder / receipt_blob(TRANSFER)


async def test_a_receipt_is_shown_and_verified(
    environment: dict[str, str], docflow: Docflow, tmp_path: Path
) -> None:
    await stored(environment, receipt("ReadFile", "Scan", "WriteFile"))
    shown = await docflow(TRANSFER[:8])
    for part in ("1. ReadFile", "3. WriteFile", "[a].csv", "clean", "remark: chmod was refused"):
        assert part in shown.output
    verified = await docflow(TRANSFER, "--verify")
    assert "whole: 3 steps, each as it was written, and as the transfer has recorded it" in (
        " ".join(verified.output.split())
    )
    exported = tmp_path / "receipt.json"
    exported.write_text((await docflow(TRANSFER, "--json")).output)
    environment.clear()
    offline = await docflow("--file", str(exported), "--verify")
    assert "whole: 3 steps" in offline.output and "not covered" not in offline.output
    await docflow(TRANSFER, "--file", str(exported), "--verify")
    other = await docflow("b" * 64, "--file", str(exported), code=1)
    assert "is not the receipt of" in other.output


async def test_a_changed_step_is_named(docflow: Docflow, tmp_path: Path) -> None:
    changed = json.loads(receipt("ReadFile", "Scan", "WriteFile"))
    changed["steps"][1]["files"][0]["verdict"] = "infected"
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(changed, indent=2))
    done = await docflow("--file", str(path), "--verify", code=1)
    assert "step 2 (Scan) was changed" in done.output
    assert "infected" in (await docflow("--file", str(path))).output


async def test_what_the_chain_does_not_cover_is_named_and_the_row_covers_it(
    environment: dict[str, str], docflow: Docflow, tmp_path: Path
) -> None:
    path = await stored(environment, receipt("ReadFile"))
    alone = tmp_path / "receipt.json"
    sent = json.loads(path.read_bytes()) | {"resent_from": "c" * 64}
    for each in (path, alone):
        each.write_text(json.dumps(sent))
    offline = await docflow("--file", str(alone), "--verify")
    assert "not covered by the hashes of the steps: resent_from;" in offline.output
    assert "not the one" in " ".join((await docflow(TRANSFER, "--verify", code=1)).output.split())


async def test_a_receipt_that_was_written_anew_is_found_by_the_row(
    environment: dict[str, str], docflow: Docflow
) -> None:
    path = await stored(environment, receipt("ReadFile", "Scan", "WriteFile"))
    path.write_bytes(receipt("ReadFile", "WriteFile"))
    await docflow(TRANSFER)
    done = await docflow(TRANSFER, "--verify", code=1)
    assert "not the one of this transfer" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "not JSON"), (b"[]", "no steps"), (b'{"steps": 1}', "no steps"), (b"[" * 9_999, "not ")],
)
async def test_what_is_no_receipt_is_refused(
    docflow: Docflow, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "receipt.json"
    path.write_bytes(content)
    assert reason in (await docflow("--file", str(path), code=1)).output


async def test_what_is_missing_is_reported(
    environment: dict[str, str], docflow: Docflow, tmp_path: Path
) -> None:
    assert "name the transfer" in (await docflow(code=2)).output
    assert "there is no transfer" in (await docflow("ab" * 8, code=1)).output
    gone = await docflow("--file", str(tmp_path / "gone.json"), code=1)
    assert "cannot be read" in gone.output
    await stored(environment, None)
    assert "has no receipt: it " in (await docflow(TRANSFER, code=1)).output
