"""Plan and record of an import, uploads and deletes."""

import errno
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.lifecycle import DeleteImports, ImportLifecycle, UploadImports
from activities.shared.scratch import fetched
from adapters.ports.errors import BlobNotFound, Unavailable
from adapters.ports.records import RunEnd
from tests.support.imports.activities import KEY, ActivityPorts, environment, message_of, work_of
from tests.support.memory.runs import MemoryRuns
from workers.imports.messages import read_message
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerOutcome,
    ImportInput,
    ImportState,
    LoadMark,
    Preparation,
)
from workflows.imports.types import REGISTRY
from workflows.shared.contracts import BlobRef, Origin, digest_of
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import KEY_REUSED, MISSING_BLOB, PERMANENT, TRANSIENT, UNAVAILABLE


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


def equipment(**fields: Any) -> ImportMessage:
    return message_of("equipment", **{"blob_name": "in/file", **fields})


def came(message: ImportMessage) -> Origin:
    """Where a message came from, as the intake says it."""
    return Origin(queue="documents", message_id="m-2", digest=digest_of(message))


async def prepare(
    ports: ActivityPorts,
    message: ImportMessage,
    runs: MemoryRuns | None = None,
    origin: Origin | None = None,
) -> Preparation:
    lifecycle = ImportLifecycle(
        ports.store, ports.blobs, runs or MemoryRuns(), ports.rejected, small_document_bytes=10
    )
    order = ImportInput(message=message, origin=origin or came(message))
    return await environment().run(lifecycle.prepare, order)


async def finish(ports: ActivityPorts, closing: Closing) -> HandlerOutcome:
    lifecycle = ImportLifecycle(ports.store, ports.blobs, MemoryRuns(), ports.rejected)
    return await environment().run(lifecycle.finish, closing)


@pytest.mark.parametrize(("size", "path"), [(10, "local"), (11, "remote")])
async def test_the_path_follows_the_size(ports: ActivityPorts, size: int, path: str) -> None:
    source = await ports.put("in/file", b"x" * size)
    plan = (await prepare(ports, equipment())).plan
    assert plan is not None
    assert (plan.path, plan.delete_source) == (path, True)
    assert plan.source == await ports.blobs.stat("in/file")
    assert plan.source.etag == source.etag
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)


@pytest.mark.parametrize(
    ("message", "source"),
    [
        (message_of("schedule_project_extraction", blob_name="a.xer"), "a.xer"),
        (message_of("schedule_upload", target_blob_name="a.xer", direct_upload=True), "a.xer"),
        (message_of("schedule_delete_all"), None),
        (message_of("mto_delete", service_id="S1"), None),
    ],
    ids=lambda value: getattr(value, "document_type", None),
)
async def test_only_downloaded_documents_are_deleted_by_the_run(
    ports: ActivityPorts, message: ImportMessage, source: str | None
) -> None:
    await ports.put("a.xer", b"x" * 100)
    plan = (await prepare(ports, message)).plan
    assert plan is not None
    assert (plan.source and plan.source.name) == source
    assert plan.path == ("remote" if source else "local")
    assert not plan.delete_source


async def test_an_upload_loses_its_temporary_file_with_its_record(ports: ActivityPorts) -> None:
    """Not before: a worker that dies leaves a run that looks for the file again."""
    await ports.put("tmp/a", b"ERMHDR")
    source = await ports.blobs.stat("tmp/a")
    message = message_of("schedule_upload", temp_blob_name="tmp/a", target_blob_name="plans/a")
    plan = (await prepare(ports, message)).plan
    assert plan is not None
    assert (plan.source, plan.delete_source) == (source, True)
    await finish(ports, Closing(message=message, plan=plan, state=ImportState.COMPLETED))
    with pytest.raises(BlobNotFound):
        await ports.blobs.stat("tmp/a")


async def test_a_missing_document_is_named_and_the_import_is_open(ports: ActivityPorts) -> None:
    with pytest.raises(ApplicationError, match="in/file is not in the blob store") as caught:
        await prepare(ports, equipment())
    assert (caught.value.type, caught.value.non_retryable) == (MISSING_BLOB, True)
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)


async def test_an_import_that_waits_for_the_blob_store_is_open(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that lists of rows show it."""

    async def unavailable(name: str) -> BlobRef:
        raise Unavailable("no answer", Dependency.BLOB_STORE)

    with monkeypatch.context() as outage:
        outage.setattr(ports.blobs, "stat", unavailable)
        with pytest.raises(ApplicationError, match="no answer") as caught:
            await prepare(ports, equipment())
    assert caught.value.type == UNAVAILABLE
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)
    source = await ports.put("in/file", b"x")
    plan = (await prepare(ports, equipment())).plan
    assert plan is not None and plan.source is not None
    assert plan.source.etag == source.etag


@pytest.mark.parametrize("state", [ImportState.COMPLETED, ImportState.FAILED])
async def test_an_import_that_is_done_is_skipped_although_its_document_is_gone(
    ports: ActivityPorts, state: ImportState
) -> None:
    ports.store.tasks["T1"] = (state, None)
    ports.store.digests["T1"] = digest_of(equipment())
    preparation = await prepare(ports, equipment())
    assert preparation == Preparation(skip=f"this import is {state.value} already", state=state)


async def test_a_run_that_does_its_steps_again_does_not_skip_what_it_has_done(
    ports: ActivityPorts,
) -> None:
    """A worker that dies with a workflow task leaves the row, and Temporal knows of no step."""
    await ports.put("in/file", b"x")
    first = await prepare(ports, equipment())
    await finish(ports, Closing(message=equipment(), plan=first.plan, state=ImportState.COMPLETED))
    again = await prepare(ports, equipment())
    assert (again.done, again.skip) == (True, None)
    assert again.plan is not None and again.plan.facts == REGISTRY[equipment().document_type]


async def test_a_row_without_a_digest_is_used_and_reported(ports: ActivityPorts) -> None:
    ports.store.tasks["T1"] = (ImportState.COMPLETED, None)
    preparation = await prepare(ports, equipment(blob_name="in/other"))
    assert preparation.state is ImportState.COMPLETED
    assert preparation.skip == (
        "this import is completed already; whether by the same message is not known, as its digest "
        "was not kept"
    )
    assert await ports.rejected.list() == []


async def test_another_message_of_a_task_that_is_done_is_refused_and_recorded(
    ports: ActivityPorts,
) -> None:
    ports.store.tasks["T1"] = (ImportState.COMPLETED, None)
    ports.store.digests["T1"] = digest_of(equipment())
    other = equipment(blob_name="in/other")
    for _ in range(2):
        preparation = await prepare(ports, other)
    assert (preparation.plan, preparation.skip) == (None, None)
    assert preparation.refused is not None
    assert "P1/T1 is completed already, by a message with other content" in preparation.refused
    assert preparation.digest == digest_of(equipment())
    (recorded,) = await ports.rejected.list()
    assert (recorded.queue, recorded.message_id) == ("documents", "m-2")
    assert (recorded.reason, recorded.description) == (KEY_REUSED, preparation.refused)
    assert read_message(recorded.body.encode()) == other


async def test_a_message_that_a_person_corrected_is_known_by_the_one_that_came(
    ports: ActivityPorts,
) -> None:
    await ports.put("in/file", b"Code\n")
    first = equipment(blob_name="in/mistyped")
    ports.store.tasks["T1"] = (ImportState.COMPLETED, None)
    ports.store.digests["T1"] = digest_of(first)
    assert (await prepare(ports, equipment(), origin=came(first))).skip is not None


async def test_another_task_with_the_same_guard_is_skipped_and_recorded(
    ports: ActivityPorts,
) -> None:
    ports.store.tasks["T0"] = (ImportState.COMPLETED, None)
    ports.store.guards["K1"] = "T0"
    preparation = await prepare(ports, equipment(idempotency_key="K1"))
    reason = "task T0 with the same idempotency key 'K1' is completed already"
    assert preparation == Preparation(skip=reason, state=ImportState.COMPLETED)
    assert ports.store.tasks["T1"] == (ImportState.SKIPPED, reason)


def held(ports: ActivityPorts, state: ImportState) -> ImportMessage:
    """A message whose idempotency key another task has."""
    ports.store.tasks["T0"] = (state, None)
    ports.store.guards["K1"] = "T0"
    return equipment(idempotency_key="K1")


async def test_the_work_of_a_parked_task_parks_another_one(ports: ActivityPorts) -> None:
    message = held(ports, ImportState.PARKED)
    with pytest.raises(ApplicationError, match="'K1' is parked: answer it first") as caught:
        await prepare(ports, message)
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)
    assert "docflow show P1/T0" in caught.value.message
    assert ports.store.tasks["T0"] == (ImportState.PARKED, None)


async def test_a_running_task_is_named_and_waited_for_and_its_end_decides(
    ports: ActivityPorts,
) -> None:
    reason = "task T0 with the same idempotency key 'K1' is running: this one waits for its end"
    message = held(ports, ImportState.RUNNING)
    preparation = await prepare(ports, message)
    assert preparation == Preparation(waits=reason, state=ImportState.RUNNING)
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, reason)
    ports.store.tasks["T0"] = (ImportState.COMPLETED, None)
    assert (await prepare(ports, message)).skip is not None


@pytest.mark.parametrize("state", [ImportState.RUNNING, ImportState.PARKED])
@pytest.mark.parametrize("end", [RunEnd("terminated", datetime.now(UTC)), RunEnd("unknown")])
async def test_a_task_whose_run_is_over_loses_its_work_to_another_one(
    ports: ActivityPorts, state: ImportState, end: RunEnd
) -> None:
    await ports.put("in/file", b"Code\n")
    runs = MemoryRuns()
    runs.ends["import/P1/T0"] = end
    assert (await prepare(ports, held(ports, state), runs)).plan is not None
    was, reason = ports.store.tasks["T0"]
    assert was is ImportState.TERMINATED
    assert reason is not None and "import/P1/T0" in reason
    assert ports.store.tasks["T1"] == (ImportState.RUNNING, None)


async def test_preparing_again_after_a_crash_keeps_the_progress(ports: ActivityPorts) -> None:
    await ports.put("in/file", b"Code\n")
    mark = LoadMark(cursor=5000, header=("this work", "Code"))
    ports.store.marks[KEY] = mark
    await prepare(ports, equipment())
    assert ports.store.marks[KEY] == mark


@pytest.mark.parametrize(
    ("state", "replaced", "left"),
    [
        (ImportState.COMPLETED, False, False),
        (ImportState.COMPLETED, True, True),
        (ImportState.PARKED, False, True),
        (ImportState.CANCELLED, False, True),
    ],
)
async def test_the_document_is_deleted_when_its_import_has_completed(
    ports: ActivityPorts, state: ImportState, replaced: bool, left: bool
) -> None:
    await ports.put("in/file", b"Code\n")
    plan = (await prepare(ports, equipment())).plan
    if replaced:
        await ports.put("in/file", b"Code\nE-1\n")
    outcome = HandlerOutcome(counts=Counts(created=1))
    closing = Closing(message=equipment(), plan=plan, state=state, outcome=outcome)
    for _ in range(2):
        assert await finish(ports, closing) == outcome
    assert ports.store.tasks["T1"][0] is state
    if left:
        await ports.blobs.stat("in/file")
    else:
        with pytest.raises(BlobNotFound):
            await ports.blobs.stat("in/file")


@pytest.mark.parametrize(
    ("state", "type_"), [(ImportState.PARKED, UNAVAILABLE), (ImportState.COMPLETED, TRANSIENT)]
)
async def test_a_row_that_does_not_show_a_parked_run_is_written_later(
    ports: ActivityPorts, monkeypatch: pytest.MonkeyPatch, state: ImportState, type_: str
) -> None:
    async def fail(*_: Any) -> HandlerOutcome:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(ports.store, "close", fail)
    lifecycle = ImportLifecycle(ports.store, ports.blobs, MemoryRuns(), ports.rejected)
    closing = Closing(message=equipment(), state=state)
    for attempt, expected in ((1, TRANSIENT), (3, type_)):
        with pytest.raises(ApplicationError) as caught:
            await environment(attempt=attempt).run(lifecycle.finish, closing)
        assert (caught.value.type, caught.value.non_retryable) == (expected, attempt == 3)
    if type_ == UNAVAILABLE:
        assert caught.value.details == (Dependency.DATABASE.value, 0)


async def test_deletes_are_counted_once(ports: ActivityPorts) -> None:
    ports.store.tables["mto_lines"] = {("P1", "S1", "D"): {}, ("P1", "S2", "D"): {}}
    activities = DeleteImports(ports.store)
    work = work_of(message_of("mto_delete", service_id="S1"))
    first = await environment().run(activities.delete_service, work)
    second = await environment().run(activities.delete_service, work)
    assert first == HandlerOutcome(counts=Counts(deleted=1))
    assert second == first
    assert list(ports.store.tables["mto_lines"]) == [("P1", "S2", "D")]


async def test_a_message_of_another_kind_is_refused(ports: ActivityPorts) -> None:
    work = work_of(equipment())
    for run in (
        DeleteImports(ports.store).delete_service,
        UploadImports(ports.store, ports.blobs, ports.scratch).store_upload,
    ):
        with pytest.raises(ApplicationError) as caught:
            await environment().run(run, work)
        assert caught.value.type == PERMANENT


async def test_fetched_files_are_gone_afterwards(ports: ActivityPorts) -> None:
    await ports.put("in/file", b"content")
    async with fetched(ports.blobs, "in/file", ports.scratch) as path:
        assert path.read_bytes() == b"content"
    assert list(ports.scratch.iterdir()) == []
