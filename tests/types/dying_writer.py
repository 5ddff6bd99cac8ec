"""A process that imports rows by message or upload, and dies behind one of its steps.

`python -m tests.types.dying_writer DATABASE_URL ERP_URL HOOK_URL FOLDER KIND STEP NUMBER`
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final
from unittest import mock

from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.shared.accepted_files import AcceptedFiles
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database, open_database
from adapters.database.foreign import ForeignDatabases
from adapters.files.blobs import FolderBlobs
from adapters.files.documents import FileDocuments
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.signed_webhook import SignedWebhook
from adapters.types.files import read_type
from adapters.types.targets import TargetTables
from tests.support.imports.activities import environment, message_of
from tests.support.spreadsheets.activities import SpreadsheetSetup, StagedSpreadsheet
from tests.types.test_uploads import undone, uploaded
from workflows.imports.runs import HandlerInput, HandlerOutcome, ImportPlan
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.runs import Analysis, SpreadsheetInput, Staged

CHUNKS: Final = 3
ROWS: Final = 40
STEPS: Final = {
    "stage": SqlImportStore,
    "hand_over": SqlImportStore,
    # Between the commit in the database of the team and that in docflow's.
    "write": TargetTables,
    "take_back": TargetTables,
    "upload": FolderBlobs,
    "tell": AcceptedFiles,
    "undo_chunk": SqlSpreadsheetStore,
}
"""What a process may die behind, and whose method it is."""
UPLOADS: Final = ("upload", "own")
"""Kinds that are uploaded: into a table of a team, and into docflow's."""


def stock(kind: str) -> DeclaredType:
    """The type, whose rows go into a file or by a strategy into a table."""
    targets = {"own": "", "file": "target: {file: jsonl, webhook: loader}\n"}
    target = targets.get(kind, "target: {database: erp, table: stock}\n")
    return read_type(
        f"name: stock\ntitle: Stock\nkey: [article]\n{target}"
        "fields:\n  article: {kind: code, required: true}\n  amount: {kind: integer}\n",
        "stock.yaml",
    )


def content(kind: str) -> bytes:
    """The file; but for `replace` and `append`, one row of each chunk is refused."""
    refused = {"merge": "-1", "upload": "-1", "file": "few", "own": "few"}.get(kind)
    ends = range(ROWS - 1, CHUNKS * ROWS, ROWS)
    amounts = ((n, refused if refused and n in ends else n) for n in range(CHUNKS * ROWS))
    return b"article,amount\n" + b"".join(b"A-%d,%a\n" % each for each in amounts)


async def imported(
    store: SqlImportStore, folder: Path, kind: str, hook: str
) -> tuple[HandlerOutcome, FolderBlobs]:
    """Import what is left, as a step of a run does it."""
    blobs = FolderBlobs(folder / "blobs")
    if not (folder / "source").exists():
        # Another upload would be another document.
        (folder / "blobs").mkdir()
        (folder / "source").write_bytes(content(kind))
        await blobs.upload(folder / "source", "in/file")
    source = await blobs.stat("in/file")
    strategy = "merge" if kind == "file" else kind
    message = message_of("stock", blob_name="in/file", strategy=strategy, idempotency_key="K")
    # A person who looks at many refused rows is none of this.
    message = message.model_copy(update={"max_rejected_share": 1.0})
    facts = await store.types.facts(message)
    rows = RowImports(
        *(store, blobs, FileDocuments(), XlsxReportWriter(), folder / "scratch"),
        chunk_rows=ROWS,
        receivers={"loader": SignedWebhook(hook, (b"a secret of thirty-two characters",))},
    )
    work = HandlerInput(message=message, plan=ImportPlan(facts=facts, path="remote", source=source))
    return await environment().run(rows.load_rows, work), blobs


async def staged(
    database: Database, targets: TargetTables, folder: Path, kind: str
) -> StagedSpreadsheet:
    """Return the upload, whose rows are put aside once."""
    (folder / "blobs").mkdir(exist_ok=True)
    setup = SpreadsheetSetup(
        *(folder, database, SqlSpreadsheetStore(database, targets), FolderBlobs(folder / "blobs")),
        types=SheetTypes(database),
        chunk_rows=ROWS,
    )
    kept = folder / "staged.json"
    if not kept.exists():
        sheet = await uploaded(setup, stock(kind), content(kind).decode(), project_id="P1")
        parts = (sheet.order, sheet.analysis, sheet.staged)
        kept.write_text(json.dumps([each.model_dump(mode="json") for each in parts]))
        return sheet
    order, analysis, rows = json.loads(kept.read_text())
    return StagedSpreadsheet(
        setup,
        SpreadsheetInput.model_validate(order),
        Analysis.model_validate(analysis),
        Staged.model_validate(rows),
    )


async def _die(url: str, erp: str, hook: str, folder: str, kind: str, step: str, last: int) -> None:
    # An upload into docflow's own table has one commit a chunk.
    owner = SqlSpreadsheetStore if (kind, step) == ("own", "write") else STEPS[step]
    method, calls = getattr(owner, step), 0

    async def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        done = await method(*arguments, **named)
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    mock.patch.object(owner, step, dying).start()
    async with open_database(url) as database, ForeignDatabases(database, {"erp": erp}) as there:
        targets = TargetTables(there)
        if kind not in UPLOADS:
            await imported(SqlImportStore(database, targets=targets), Path(folder), kind, hook)
            return
        sheet = await staged(database, targets, Path(folder), kind)
        await sheet.process()
        await sheet.finish()
        await undone(sheet)


if __name__ == "__main__":
    asyncio.run(_die(*sys.argv[1:-1], int(sys.argv[-1])))  # type: ignore[arg-type]
