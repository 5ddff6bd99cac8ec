"""A process that imports rows by message or upload, and dies behind one of its steps.

If the folder holds `work.json`, that is what is imported.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from unittest import mock

from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.shared.accepted_files import AcceptedFiles
from activities.spreadsheets.rows import SpreadsheetFiles
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
from tests.support.forks import FORKS, ended
from tests.support.imports.activities import environment, message_of
from tests.support.spreadsheets.activities import SpreadsheetSetup, StagedSpreadsheet
from tests.types.test_uploads import undone
from workflows.imports.runs import HandlerInput, HandlerOutcome, ImportPlan
from workflows.shared.contracts import BlobRef, Contract
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.runs import (
    Analysis,
    HandOverInput,
    RowCounts,
    SpreadsheetInput,
    Staged,
)

CHUNKS: Final = 3
ROWS: Final = 40
_SECRET: Final = b"a secret of thirty-two characters"
STEPS: Final = {
    "stage": SqlImportStore,
    "hand_over": SqlImportStore,
    # Between the commit in the database of the team and that in docflow's.
    "write": TargetTables,
    "take_back": TargetTables,
    "upload": FolderBlobs,
    "tell": AcceptedFiles,
    "undo_chunk": SqlSpreadsheetStore,
    "save_total": SqlSpreadsheetStore,
    "save_file": SqlSpreadsheetStore,
    "forget_accepted": SqlSpreadsheetStore,
}
"""What a process may die behind, and whose method it is."""
UPLOADS: Final = ("upload", "own", "handed")
"""Kinds that are uploaded: into a table of a team, into docflow's, and into a file with a call."""
Kept = TypeVar("Kept", bound=Contract)


@dataclass(frozen=True)
class Work:
    """What is imported.

    Attributes:
        declared: The type.
        content: The file.
        scope: What all rows share, beside the project.
        given: Further fields of the message.
        chunk_rows: Rows of a chunk.
    """

    declared: DeclaredType
    content: bytes
    scope: dict[str, str] = field(default_factory=dict[str, str])
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    chunk_rows: int = ROWS

    def put(self, folder: Path) -> None:
        """Leave it in a folder for processes that work there."""
        given = {
            "declared": self.declared.model_dump(mode="json"),
            "content": self.content.hex(),
            "scope": self.scope,
            "chunk_rows": self.chunk_rows,
        }
        (folder / "work.json").write_text(json.dumps(given))

    @classmethod
    def of(cls, folder: Path, kind: str) -> "Work":
        """That of a folder, or of a kind."""
        if not (path := folder / "work.json").exists():
            strategy = "merge" if kind == "file" else kind
            return cls(stock(kind), content(kind), given={"strategy": strategy})
        found = json.loads(path.read_text())
        declared = DeclaredType.model_validate(found["declared"])
        file = bytes.fromhex(found["content"])
        given = {"strategy": "merge", **({"scope": found["scope"]} if found["scope"] else {})}
        return cls(declared, file, found["scope"], given, found["chunk_rows"])


def stock(kind: str) -> DeclaredType:
    """The type, whose rows go into a file or by a strategy into a table."""
    file = "target: {file: jsonl, webhook: loader}\n"
    targets = {"own": "", "file": file, "handed": file}
    target = targets.get(kind, "target: {database: erp, table: stock}\n")
    return read_type(
        f"name: stock\ntitle: Stock\nkey: [article]\n{target}"
        "fields:\n  article: {kind: code, required: true}\n  amount: {kind: integer}\n",
        "stock.yaml",
    )


def content(kind: str) -> bytes:
    """The file; but for `replace` and `append`, one row of each chunk is refused."""
    refused = {"merge": "-1", "upload": "-1", "file": "few", "own": "few", "handed": "few"}.get(
        kind
    )
    ends = range(ROWS - 1, CHUNKS * ROWS, ROWS)
    amounts = ((n, refused if refused and n in ends else n) for n in range(CHUNKS * ROWS))
    return b"article,amount\n" + b"".join(b"A-%d,%a\n" % each for each in amounts)


async def imported(
    store: SqlImportStore, folder: Path, kind: str, hook: str
) -> tuple[HandlerOutcome, FolderBlobs]:
    """Import what is left, as a step of a run does it."""
    blobs, asked = FolderBlobs(folder / "blobs"), Work.of(folder, kind)
    if not (folder / "source").exists():
        # Another upload would be another document.
        (folder / "blobs").mkdir()
        (folder / "source").write_bytes(asked.content)
        await blobs.upload(folder / "source", "in/file")
    source = await blobs.stat("in/file")
    given = {"blob_name": "in/file", "idempotency_key": "K", **asked.given}
    message = message_of(asked.declared.name, **given)
    # A person who looks at many refused rows is none of this.
    message = message.model_copy(update={"max_rejected_share": 1.0})
    facts = await store.types.facts(message)
    rows = RowImports(
        *(store, blobs, FileDocuments(), XlsxReportWriter(), folder / "scratch"),
        chunk_rows=asked.chunk_rows,
        receivers={"loader": SignedWebhook(hook, (_SECRET,))},
    )
    work = HandlerInput(message=message, plan=ImportPlan(facts=facts, path="remote", source=source))
    return await environment().run(rows.load_rows, work), blobs


async def staged(
    database: Database, targets: TargetTables, folder: Path, kind: str
) -> StagedSpreadsheet:
    """Return the upload, whose rows are put aside once."""
    (folder / "blobs").mkdir(exist_ok=True)
    asked = Work.of(folder, kind)
    setup = SpreadsheetSetup(
        *(folder, database, SqlSpreadsheetStore(database, targets), FolderBlobs(folder / "blobs")),
        types=SheetTypes(database),
        chunk_rows=asked.chunk_rows,
    )
    declared, scope = asked.declared, {"project_id": "P1", **asked.scope}

    def upload() -> Awaitable[SpreadsheetInput]:
        return setup.upload(
            asked.content,
            import_type=declared.name,
            type_digest=declared.digest,
            scope={name: scope[name] for name in declared.scope},
            context_id=None,
            filename="rows",
        )

    order = await _once(folder / "order.json", SpreadsheetInput, upload)
    analysis = await _once(folder / "analysis.json", Analysis, lambda: setup.analyse(order))
    rows = await _once(
        folder / "staged.json",
        Staged,
        lambda: setup.stage(order, analysis.layout, analysis.columns),
    )
    return StagedSpreadsheet(setup, order, analysis, rows)


async def _once(path: Path, kind: type[Kept], act: Callable[[], Awaitable[Kept]]) -> Kept:
    """Do a step, or read what it did in a process before."""
    if path.exists():
        return kind.model_validate_json(path.read_text())
    done = await act()
    path.write_text(done.model_dump_json())
    return done


async def handed_over(sheet: StagedSpreadsheet, counts: RowCounts, hook: str) -> BlobRef:
    """Write the accepted rows of an upload into a file, and call the receiver."""
    setup = sheet.setup
    receivers = {"loader": SignedWebhook(hook, (_SECRET,))}
    files = SpreadsheetFiles(setup.store, setup.blobs, setup.types, setup.scratch, receivers)
    work = HandOverInput(order=sheet.order, counts=counts)
    return await environment().run(files.hand_over, work)


async def _die(url: str, erp: str, hook: str, folder: str, kind: str, step: str, last: int) -> None:
    # An import into docflow's own table, and an upload into a file, have one commit a chunk.
    one = {"own": SqlSpreadsheetStore, "handed": SqlSpreadsheetStore, "sent": SqlImportStore}
    owner = one.get(kind, STEPS[step]) if step == "write" else STEPS[step]
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
        done = await sheet.process()
        if done.hands_over:
            await handed_over(sheet, done.counts, hook)
        if (Path(folder) / "work.json").exists():
            return
        await sheet.finish()
        await undone(sheet)


def _writer(*arguments: Any) -> None:
    asyncio.run(_die(*arguments))


async def killed(
    url: str, erp: str, hook: str, folder: Path, kind: str, step: str, last: int
) -> bool:
    """Import in a process of its own.

    Args:
        url: Of docflow's database.
        erp: URL of the database of the team.
        hook: URL of the receiver of files.
        folder: Where the process works, and what it leaves for the next one.
        kind: Strategy of a message, or one of `UPLOADS`.
        step: Behind which it dies, one of `STEPS`.
        last: Behind which call of the step.

    Returns:
        Whether it has died so; otherwise it was done before.
    """
    process = FORKS.Process(target=_writer, args=(url, erp, hook, str(folder), kind, step, last))
    process.start()
    await ended(process)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0
