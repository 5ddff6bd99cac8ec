"""A process that imports rows into a target, and dies behind one of its steps.

`python -m tests.types.dying_writer DATABASE_URL ERP_URL HOOK_URL FOLDER KIND STEP NUMBER`
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final
from unittest import mock

from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.shared.accepted_files import AcceptedFiles
from adapters.database.engine import open_database
from adapters.database.foreign import ForeignDatabases
from adapters.files.blobs import FolderBlobs
from adapters.files.documents import FileDocuments
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.signed_webhook import SignedWebhook
from adapters.types.files import read_type
from adapters.types.targets import TargetTables
from tests.support.imports.activities import environment, message_of
from workflows.imports.runs import HandlerInput, HandlerOutcome, ImportPlan
from workflows.shared.declared_types import DeclaredType

CHUNKS: Final = 3
ROWS: Final = 40
STEPS: Final = {
    "stage": SqlImportStore,
    "hand_over": SqlImportStore,
    # Between the commit in the database of the team and that in docflow's.
    "write": TargetTables,
    "upload": FolderBlobs,
    "tell": AcceptedFiles,
}
"""What a process may die behind, and whose method it is."""


def stock(kind: str) -> DeclaredType:
    """The type, whose rows go into a file or by a strategy into a table."""
    target = "{file: jsonl, webhook: loader}" if kind == "file" else "{database: erp, table: stock}"
    return read_type(
        f"name: stock\ntitle: Stock\nkey: [article]\ntarget: {target}\n"
        "fields:\n  article: {kind: code, required: true}\n  amount: {kind: integer}\n",
        "stock.yaml",
    )


def content(kind: str) -> bytes:
    """The file; by `merge` and into a file one row of each chunk is refused."""
    refused = {"merge": "-1", "file": "few"}.get(kind)
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


async def _die(url: str, erp: str, hook: str, folder: str, kind: str, step: str, last: int) -> None:
    method, calls = getattr(STEPS[step], step), 0

    async def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        done = await method(*arguments, **named)
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    mock.patch.object(STEPS[step], step, dying).start()
    async with open_database(url) as database, ForeignDatabases(database, {"erp": erp}) as there:
        store = SqlImportStore(database, targets=TargetTables(there))
        await imported(store, Path(folder), kind, hook)


if __name__ == "__main__":
    asyncio.run(_die(*sys.argv[1:-1], int(sys.argv[-1])))  # type: ignore[arg-type]
