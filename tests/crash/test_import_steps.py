"""A worker of imports that dies after any of its steps: the import ends as if it had not.

The steps of every document type are counted in a calm run; then its worker is killed after each of
them, and another one resumes. Types that take the same steps are killed once.
"""

import asyncio
import contextlib
import json
import shutil
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from sqlalchemy import select
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from adapters.database.models.base import UtcDateTime, metadata
from adapters.database.models.imports import import_progress
from adapters.database.models.runs import runs
from adapters.files.tables.source import open_table
from adapters.ports.blobs import Blobs
from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from stack.temporal import temporal_server
from tests.crash import step_worker
from tests.crash.step_worker import READS, STEPS, Steps
from tests.support.forks import FORKS, ended
from tests.support.fresh_database import DATABASES, fresh_url
from workers.shared.connect import connect
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import (
    DECLARED_MESSAGE,
    IMPORT_MESSAGE,
    DocumentType,
    ImportMessage,
    ScheduleUploadMessage,
)
from workflows.imports.runs import ImportInput, ImportResult, ImportState

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES: Final = Path("samples")
AT_ONCE: Final = 6
TASK_TIMEOUT: Final = timedelta(seconds=3)
"""How long the death of a worker goes unnoticed."""
WITHIN: Final = 15.0
"""Seconds after which it is asked what a run waits for."""
PASSING: Final = frozenset({"etag", "report", "run_id", "workflow_id", "digest"})
"""Columns that differ between runs that do the same."""
NAMES: Final = frozenset({runs.c.id, runs.c.key, runs.c.answers_at, runs.c.revision})


@dataclass(frozen=True)
class Case:
    """One message, and the file that it needs."""

    message: ImportMessage
    file: Path | None


@dataclass(frozen=True)
class End:
    """How an import ended, and everything that it left behind."""

    result: ImportResult
    tables: Mapping[str, Sequence[tuple[Any, ...]]]
    blobs: Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Database and blobs of one run."""

    folder: Path
    address: str
    database_url: str

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "TEMPORAL_ADDRESS": self.address,
            "DATABASE_URL": self.database_url,
            "DOCFLOW_BLOB_FOLDER": str(self.folder / "blobs"),
            "DOCFLOW_SCRATCH": str(self.folder / "scratch"),
        }

    def copy(self, folder: Path) -> "Place":
        """The same state in another folder."""
        shutil.copytree(self.folder, folder)
        return Place(folder, self.address, DATABASES.copy(self.database_url))

    def put(self, case: Case) -> None:
        """Upload the document of a case."""
        if case.file is None:
            return
        message = case.message
        upload = isinstance(message, ScheduleUploadMessage)
        name = message.source_blob_name if upload else getattr(message, "blob_name", None)
        assert name is not None
        target = self.folder / "blobs" / "imports" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(case.file, target)

    async def start(self, case: Case, name: str) -> WorkflowHandle[Any, ImportResult]:
        """Start a run on a task queue of its own."""
        client = await connect(self.address)
        return await client.start_workflow(
            DocumentImport.run,
            ImportInput(message=case.message),
            id=f"import/{name}",
            task_queue=name,
            task_timeout=TASK_TIMEOUT,
        )

    async def end(self, result: ImportResult) -> End:
        """What stands in the tables and among the blobs."""
        async with open_database(self.settings["DATABASE_URL"]) as database:
            tables: dict[str, Sequence[tuple[Any, ...]]] = {}
            async with database.reading() as connection:
                assert not (await connection.execute(select(import_progress))).all()
                for table in metadata.sorted_tables:
                    columns = [
                        column
                        for column in table.columns
                        if column.name not in PASSING
                        and column not in NAMES
                        and not isinstance(column.type, UtcDateTime)
                    ]
                    rows = (await connection.execute(select(*columns))).all()
                    if rows:
                        tables[table.name] = sorted((tuple(row) for row in rows), key=repr)
        folder = self.folder / "blobs" / "imports"
        blobs = {
            str(file.relative_to(folder)): _content(file)
            for file in folder.rglob("*")
            if file.is_file()
        }
        return End(result.model_copy(update={"report": None}), tables, blobs)


def _content(file: Path) -> Any:
    """A report is a zip archive, which names the time at which it was written."""
    if file.suffix != ".xlsx":
        return file.read_bytes()
    with open_table(file) as table:
        return list(table.rows())


def cases() -> Sequence[Case]:
    """The messages of the demo, in their order: each finds what the ones before it left."""
    found: list[Case] = []
    demo = json.loads((SAMPLES / "demo.json").read_text())
    for number, entry in enumerate(entry for step in demo for entry in step):
        message, expected = entry.get("message"), entry["expect"]
        if message is None or "counts" not in expected:
            continue
        file = entry.get("file")
        task = {"task_id": f"T{number}", "project_id": "P1", "blob_name": f"uploads/{file}"}
        found.append(
            Case(
                IMPORT_MESSAGE.validate_python({**task, **message}),
                None if file is None else SAMPLES / file,
            )
        )
    return found


CASES: Final = cases()
SUPPLIERS: Final = """
name: suppliers
title: Suppliers
key: [number]
fields:
  number: {kind: code, required: true}
"""
ORDERS: Final = """
name: orders
title: Orders
key: [number]
unmapped: keep
strategy: replace
fields:
  number: {kind: code, required: true}
  supplier: {kind: reference, to: suppliers, unknown: create}
"""
READINGS: Final = """
name: readings
title: Readings
key: [meter]
target: {file: jsonl}
fields:
  meter: {kind: code, required: true}
  value: {kind: decimal}
"""
DECLARED: Final = {
    "orders": b"number,supplier,Colour\n1,S-1,red\n2,S-2,\n,S-1,\n",
    "readings": b"meter,value\nM-1,1.5\nM-2,x\n",
}
"""Types of a team, and a file of each."""


async def declared_cases(place: Place, folder: Path) -> Sequence[Case]:
    """Put the types of a team in force; a message about each."""
    types = [read_type(text, "types.yaml") for text in (SUPPLIERS, ORDERS, READINGS)]
    async with open_database(place.database_url) as database:
        await SqlDeclaredTypes(database).apply(*types)
    found: list[Case] = []
    for each in types:
        if each.name in DECLARED:
            file = folder / f"{each.name}.csv"
            file.write_bytes(DECLARED[each.name])
            task = {"task_id": each.name, "project_id": "P1", "blob_name": f"uploads/{file.name}"}
            fields = {**task, "document_type": each.name, "type_digest": each.digest}
            found.append(Case(DECLARED_MESSAGE.validate_python(fields), file))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str]:
    folder = tmp_path_factory.mktemp("temporal")
    async with temporal_server(folder, ui=False, in_memory=True) as server:
        yield server.address


async def test_every_document_type_is_among_the_cases() -> None:
    assert {case.message.document_type for case in CASES} == set(DocumentType)


async def test_every_call_of_an_import_is_a_step_or_reads() -> None:
    calls = {name for port in (SqlImportStore, Blobs) for name in vars(port) if name[0] != "_"}
    assert calls == (STEPS | READS)


@pytest.mark.chaos(alone=True)
async def test_a_worker_killed_after_any_step_changes_nothing(address: str, tmp_path: Path) -> None:
    place = Place(tmp_path / "begin", address, fresh_url())
    (place.folder / "blobs").mkdir(parents=True)
    turns = asyncio.Semaphore(AT_ONCE)
    seen: set[str] = set()
    tried: list[Sequence[str]] = []
    runs: list[asyncio.Task[bool]] = []
    async with asyncio.TaskGroup() as group:
        for number, case in enumerate((*CASES, *await declared_cases(place, tmp_path))):
            document_type = case.message.document_type
            place.put(case)
            calm = place.copy(tmp_path / f"calm{number}")
            steps, expected = await _calm(calm, case, f"calm{number}")
            assert expected.result.state is ImportState.COMPLETED, expected.result.reason
            if document_type not in seen and steps not in tried:
                tried.append(steps)
                for last, step in enumerate(steps, 1):
                    name = f"{document_type}-{last}-{step}"
                    killed = place.copy(tmp_path / name)
                    run = _killed(turns, killed, case, name, last, expected)
                    runs.append(group.create_task(run))
            seen.add(document_type)
            place = calm.copy(tmp_path / f"after{number}")
    deaths = [run.result() for run in runs]
    assert deaths.count(True) > 0.9 * len(deaths)


async def _calm(place: Place, case: Case, name: str) -> tuple[Sequence[str], End]:
    """The steps of a run that nothing disturbs, and its end."""
    steps = Steps()
    handle = await place.start(case, name)
    async with step_worker.step_worker(place.settings, name, steps):
        result = await _ended(handle)
    return steps.taken, await place.end(result)


async def _ended(handle: WorkflowHandle[Any, ImportResult]) -> ImportResult:
    """The result; a run that waits for a person is never done."""
    ending = asyncio.ensure_future(handle.result())
    while not ending.done():
        await asyncio.wait([ending], timeout=WITHIN)
        if ending.done():
            break
        # On a busy machine tasks of a run time out, and no query is answered meanwhile.
        with contextlib.suppress(RPCError):
            status = await handle.query(DocumentImport.status)
            assert status.state is not ImportState.PARKED, f"{handle.id}: {status.reason}"
    return ending.result()


async def _killed(
    turns: asyncio.Semaphore, place: Place, case: Case, name: str, last: int, expected: End
) -> bool:
    """Kill the worker of a run after one step; another one brings it to the same end.

    Returns:
        Whether the run came as far as that step.
    """
    async with turns:
        handle = await place.start(case, name)
        arguments = (place.folder, place.settings, name, last)
        worker = FORKS.Process(target=step_worker.main, args=arguments)
        worker.start()
        dying = asyncio.ensure_future(ended(worker))
        ending = asyncio.ensure_future(_ended(handle))
        try:
            await asyncio.wait({dying, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                # Steps are fewer where a quick machine ends what a slow one hands over.
                await ending
            was_killed = dying.done()
        finally:
            worker.kill()
            await dying
            ending.cancel()
        log = (place.folder / "worker.log").read_text()
        assert worker.exitcode == -signal.SIGKILL, f"{name}: {worker.exitcode}: {log}"
        async with step_worker.step_worker(place.settings, name, Steps()):
            result = await _ended(handle)
        found = await place.end(result)
    _assert_same(name, dict(found.result), dict(expected.result))
    _assert_same(name, found.tables, expected.tables)
    _assert_same(name, found.blobs, expected.blobs)
    return was_killed


def _assert_same(name: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Name the first part that differs: a diff of everything takes for ever."""
    assert sorted(found) == sorted(expected), name
    for part, value in expected.items():
        assert found[part] == value, f"{name}: {part}"
