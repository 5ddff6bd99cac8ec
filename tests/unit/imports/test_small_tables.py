"""A small table without problems is imported by the first step alone; any other takes its steps."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.imports.lifecycle import SMALL_BYTES, ImportLifecycle, SmallTables
from activities.imports.ports import WholeImport
from activities.shared import failures
from adapters.files.documents import FileDocuments
from adapters.ports.errors import BlobNotFound, Unavailable
from tests.support.imports.activities import ActivityPorts, environment, message_of
from tests.support.imports.loads import GOOD, MIXED, codes
from tests.support.memory.runs import MemoryRuns
from tests.support.waiting import eventually
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerOutcome,
    ImportInput,
    ImportState,
    Preparation,
)
from workflows.shared.contracts import BlobRef, Origin, digest_of
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import UNAVAILABLE

MANY = b"Code,Rate\n" + b"".join(b"E-%d,5\n" % number for number in range(SMALL_BYTES // 8))


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


def steps_over(ports: ActivityPorts) -> ImportLifecycle:
    return ImportLifecycle(
        *(ports.store, ports.blobs, MemoryRuns(), ports.rejected),
        tables=SmallTables(ports.store, ports.blobs, ports.documents, ports.scratch),
    )


def order(message: ImportMessage) -> ImportInput:
    origin = Origin(queue="documents", message_id="m-1", digest=digest_of(message))
    return ImportInput(message=message, origin=origin)


async def prepare(
    ports: ActivityPorts, content: bytes | None, info: dict[str, Any] | None = None, **fields: Any
) -> Preparation:
    """Take the first step, as a local one."""
    if content is not None:
        await ports.put("in/file", content)
    message = message_of(fields.pop("type", "equipment"), blob_name="in/file", **fields)
    step = environment(**{"is_local": True, **(info or {})})
    return await step.run(steps_over(ports).prepare, order(message))


async def is_left(ports: ActivityPorts) -> bool:
    """Whether the document is there."""
    try:
        await ports.blobs.stat("in/file")
    except BlobNotFound:
        return False
    return True


async def test_a_clean_small_table_is_one_call_of_the_store(ports: ActivityPorts) -> None:
    preparation = await prepare(ports, GOOD)
    assert preparation.outcome == HandlerOutcome(
        counts=Counts(created=2), note="Columns not used: 'Colour' (2 values)."
    )
    assert (preparation.done, preparation.skip, preparation.waits) == (True, None, None)
    assert preparation.plan is not None and preparation.plan.path == "local"
    assert codes(ports) == ["E-1", "E-2"]
    assert ports.store.calls == ["complete"]
    assert ports.store.tasks["T1"] == (ImportState.COMPLETED, None)
    assert not await is_left(ports)
    assert not await asyncio.to_thread(ports.scratch.exists), "a text was copied"


async def test_a_text_that_is_replaced_after_the_first_look_takes_its_steps(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = ports.blobs.stat

    async def before_it_is_replaced(name: str) -> BlobRef:
        seen = await stat(name)
        await ports.put(name, b"Code,Rate\nE-9,1\n")
        return seen

    monkeypatch.setattr(ports.blobs, "stat", before_it_is_replaced)
    preparation = await prepare(ports, GOOD)
    assert preparation.plan is not None and not preparation.done
    assert codes(ports) == []


async def test_a_small_workbook_is_imported_so_as_well(ports: ActivityPorts) -> None:
    file = ports.folder / "book.xlsx"
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ("Code", "Rate"))
        sheet.write_row(1, 0, ("E-1", 10.5))
    outcome = (await prepare(ports, file.read_bytes())).outcome
    assert outcome is not None and outcome.counts == Counts(created=1)
    assert codes(ports) == ["E-1"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (MIXED, {}),
        (MANY, {}),
        (b"Code,Rate\n", {}),
        (b"no table", {}),
        (b"\0\0", {}),
        (b"Code,Rate\nE-1,1\n", {"map": {"Rate": "colour"}}),
        (GOOD, {"strategy": "replace"}),
        (GOOD, {"strategy": "append", "idempotency_key": "k"}),
        (GOOD, {"strategy": "update_only"}),
        (GOOD, {"all_or_nothing": True}),
        (GOOD, {"leading_zeros": "same"}),
        (GOOD, {"info": {"is_local": False}}),
        (GOOD, {"info": {"attempt": 2}}),
        (GOOD, {"type": "schedule_project_extraction"}),
    ],
    ids=[
        *("rejected rows", "too large", "no rows", "no header", "no text", "unknown field"),
        *("replace", "append", "update only", "all or nothing", "answered", "remote"),
        *("again", "schedule"),
    ],
)
async def test_any_other_document_takes_its_steps(
    ports: ActivityPorts, content: bytes, fields: dict[str, Any]
) -> None:
    preparation = await prepare(ports, content, **fields)
    assert preparation.plan is not None
    assert (preparation.done, preparation.outcome) == (False, None)
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)
    assert "complete" not in ports.store.calls
    assert not ports.store.tables
    assert await is_left(ports)


async def test_a_question_takes_the_steps_that_ask_it(ports: ActivityPorts) -> None:
    ports.store.tables["equipment"] = {("P1", "007"): {"project_id": "P1", "code": "007"}}
    preparation = await prepare(ports, b"Code,Rate\n7,1\n")
    assert (preparation.done, preparation.outcome) == (False, None)
    assert ports.store.calls == ["complete"]
    assert list(ports.store.tables["equipment"]) == [("P1", "007")]
    assert await is_left(ports)


async def test_a_document_that_vanishes_takes_the_steps_that_say_so(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(name: str, **_: Any) -> AsyncGenerator[bytes]:
        raise BlobNotFound(f"{name} is gone")

    monkeypatch.setattr(ports.blobs, "read", vanished)
    assert (await prepare(ports, GOOD)).outcome is None
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)


async def test_a_parked_import_that_is_tried_again_takes_its_steps(ports: ActivityPorts) -> None:
    await prepare(ports, MIXED)
    ports.store.tasks["T1"] = (ImportState.PARKED, "wrong")
    preparation = await prepare(ports, GOOD)
    assert preparation.plan is not None
    assert (preparation.done, preparation.outcome) == (False, None)


async def test_a_worker_that_died_behind_the_record_leaves_a_document_to_be_deleted(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any, **__: Any) -> bool:
        raise Unavailable("no answer", Dependency.BLOB_STORE)

    with monkeypatch.context() as outage:
        outage.setattr(ports.blobs, "delete", lost)
        with pytest.raises(ApplicationError) as caught:
            await prepare(ports, GOOD)
    assert caught.value.type == UNAVAILABLE
    assert await is_left(ports)
    again = await prepare(ports, None)
    assert (again.done, again.outcome) == (True, None)
    assert codes(ports) == ["E-1", "E-2"]
    closing = Closing(
        message=message_of("equipment", blob_name="in/file"),
        plan=again.plan,
        state=ImportState.COMPLETED,
    )
    await environment().run(steps_over(ports).finish, closing)
    assert not await is_left(ports)


@pytest.mark.parametrize("ended_by", ["cancel", "time"])
async def test_what_is_being_recorded_is_recorded_whatever_ends_the_step(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch, ended_by: str
) -> None:
    """Else the run would end as cancelled, and its row as completed."""
    begun, released = asyncio.Event(), asyncio.Event()
    complete = ports.store.complete

    async def slow(whole: WholeImport) -> HandlerOutcome | None:
        begun.set()
        await released.wait()
        return await complete(whole)

    monkeypatch.setattr(ports.store, "complete", slow)
    if ended_by == "time":
        monkeypatch.setattr(failures, "CUT_SECONDS", 0.5)
    step = asyncio.ensure_future(prepare(ports, GOOD))
    await begun.wait()
    if ended_by == "cancel":
        step.cancel()
        await asyncio.sleep(0)
    else:
        ends = asyncio.get_running_loop().time() + 0.5

        async def is_over() -> bool:
            return asyncio.get_running_loop().time() > ends

        await eventually(is_over)
    released.set()
    preparation = await step
    assert preparation.outcome is not None
    assert ports.store.tasks["T1"] == (ImportState.COMPLETED, None)
    assert not await is_left(ports)


async def test_reading_that_takes_long_is_continued_by_a_remote_step(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: Any, **__: Any) -> AsyncGenerator[bytes]:
        await asyncio.Event().wait()
        yield b""

    monkeypatch.setattr(failures, "CUT_SECONDS", 0.1)
    monkeypatch.setattr(ports.blobs, "read", endless)
    assert await prepare(ports, GOOD) == Preparation(unfinished=True)


class _NoDocuments(FileDocuments):
    """None is opened."""

    def open_workbook(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("read in vain")


async def test_a_document_that_takes_steps_by_its_message_is_not_read(ports: ActivityPorts) -> None:
    ports.documents = _NoDocuments()
    assert (await prepare(ports, GOOD, strategy="replace")).plan is not None
