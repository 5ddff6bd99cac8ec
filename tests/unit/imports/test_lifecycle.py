"""Plan and record of an import, uploads and deletes."""

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.deletes import DeleteImports
from activities.imports.lifecycle import ImportLifecycle
from activities.imports.uploads import UploadImports
from activities.scratch import fetched, sweep
from adapters.ports import BlobNotFound
from contracts.blobs import BlobRef
from contracts.errors import MISSING_BLOB, PERMANENT, TRANSIENT
from contracts.imports import (
    Closing,
    Counts,
    HandlerOutcome,
    ImportMessage,
    ImportOrder,
    ImportState,
    Preparation,
)
from domain.imports.chunks import LoadMark
from tests.support.imports.activities import KEY, ActivityPorts, environment, message_of, work_of


@pytest.fixture
def world(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


def equipment(**fields: Any) -> ImportMessage:
    return message_of("equipment", **{"blob_name": "in/file", **fields})


async def prepare(world: ActivityPorts, message: ImportMessage) -> Preparation:
    lifecycle = ImportLifecycle(world.store, world.blobs, small_document_bytes=10)
    return await environment().run(lifecycle.prepare, ImportOrder(message=message))


async def finish(world: ActivityPorts, closing: Closing) -> HandlerOutcome:
    lifecycle = ImportLifecycle(world.store, world.blobs)
    return await environment().run(lifecycle.finish, closing)


@pytest.mark.parametrize(("size", "path"), [(10, "local"), (11, "remote")])
async def test_the_path_follows_the_size(world: ActivityPorts, size: int, path: str) -> None:
    source = await world.put("in/file", b"x" * size)
    plan = (await prepare(world, equipment())).plan
    assert plan is not None
    assert (plan.path, plan.delete_source) == (path, True)
    assert plan.source == await world.blobs.stat("in/file")
    assert plan.source.etag == source.etag
    assert world.store.tasks["T1"] == (ImportState.RUNNING, None)


@pytest.mark.parametrize(
    ("message", "source"),
    [
        (message_of("schedule_project_extraction", blob_name="a.xer"), "a.xer"),
        (message_of("schedule_upload", temp_blob_name="a.xer", target_blob_name="b"), "a.xer"),
        (message_of("schedule_upload", target_blob_name="a.xer", direct_upload=True), "a.xer"),
        (message_of("schedule_delete_all"), None),
        (message_of("mto_delete", service_id="S1"), None),
    ],
    ids=lambda value: getattr(value, "document_type", None),
)
async def test_only_downloaded_documents_are_deleted_by_the_run(
    world: ActivityPorts, message: ImportMessage, source: str | None
) -> None:
    await world.put("a.xer", b"x" * 100)
    plan = (await prepare(world, message)).plan
    assert plan is not None
    assert (plan.source and plan.source.name) == source
    assert plan.path == ("remote" if source else "local")
    assert not plan.delete_source


async def test_a_missing_document_is_named_and_the_import_is_open(world: ActivityPorts) -> None:
    with pytest.raises(ApplicationError, match="in/file is not in the blob store") as caught:
        await prepare(world, equipment())
    assert (caught.value.type, caught.value.non_retryable) == (MISSING_BLOB, True)
    assert world.store.tasks["T1"] == (ImportState.RUNNING, None)


@pytest.mark.parametrize("state", [ImportState.COMPLETED, ImportState.FAILED])
async def test_an_import_that_is_done_is_skipped_although_its_document_is_gone(
    world: ActivityPorts, state: ImportState
) -> None:
    world.store.tasks["T1"] = (state, None)
    preparation = await prepare(world, equipment())
    assert preparation == Preparation(skip=f"this import is {state.value} already", state=state)


async def test_another_task_with_the_same_guard_is_skipped_and_recorded(
    world: ActivityPorts,
) -> None:
    world.store.tasks["T0"] = (ImportState.COMPLETED, None)
    world.store.guards["K1"] = "T0"
    preparation = await prepare(world, equipment(idempotency_key="K1"))
    reason = "task T0 with the same idempotency key 'K1' is completed already"
    assert preparation == Preparation(skip=reason, state=ImportState.COMPLETED)
    assert world.store.tasks["T1"] == (ImportState.SKIPPED, reason)


async def test_preparing_again_after_a_crash_keeps_the_progress(world: ActivityPorts) -> None:
    await world.put("in/file", b"Code\n")
    mark = LoadMark(cursor=5000, header=("this work", "Code"))
    world.store.marks[KEY] = mark
    await prepare(world, equipment())
    assert world.store.marks[KEY] == mark


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
    world: ActivityPorts, state: ImportState, replaced: bool, left: bool
) -> None:
    await world.put("in/file", b"Code\n")
    plan = (await prepare(world, equipment())).plan
    if replaced:
        await world.put("in/file", b"Code\nE-1\n")
    outcome = HandlerOutcome(counts=Counts(created=1))
    closing = Closing(message=equipment(), plan=plan, state=state, outcome=outcome)
    for _ in range(2):
        assert await finish(world, closing) == outcome
    assert world.store.tasks["T1"][0] is state
    if left:
        await world.blobs.stat("in/file")
    else:
        with pytest.raises(BlobNotFound):
            await world.blobs.stat("in/file")


UPLOAD = {"temp_blob_name": "tmp/a", "target_blob_name": "kept/a", "original_filename": "A.xer"}


async def upload(world: ActivityPorts, source: BlobRef | None, **fields: Any) -> HandlerOutcome:
    activities = UploadImports(world.store, world.blobs, world.scratch)
    work = work_of(message_of("schedule_upload", **{**UPLOAD, **fields}), source)
    return await environment().run(activities.store_upload, work)


async def test_an_upload_moves_verified_and_registered(world: ActivityPorts) -> None:
    source = await world.put("tmp/a", b"ERMHDR")
    outcome = await upload(world, source)
    assert outcome.counts == Counts(created=1)
    ((blob, name),) = world.store.uploads
    assert (blob.name, blob.size, name) == ("kept/a", 6, "A.xer")
    assert blob.sha256 == hashlib.sha256(b"ERMHDR").hexdigest()
    with pytest.raises(BlobNotFound):
        await world.blobs.stat("tmp/a")


async def test_an_upload_run_again_after_its_last_step_changes_nothing(
    world: ActivityPorts,
) -> None:
    source = await world.put("tmp/a", b"ERMHDR")
    await upload(world, source)
    assert (await upload(world, source)).counts == Counts(unchanged=1)
    assert len(world.store.uploads) == 1


async def test_a_target_that_is_not_the_upload_is_not_mistaken_for_it(world: ActivityPorts) -> None:
    source = await world.put("tmp/a", b"ERMHDR")
    await world.blobs.delete("tmp/a")
    await world.put("kept/a", b"an older file")
    with pytest.raises(ApplicationError, match="tmp/a is not there and kept/a is not a copy"):
        await upload(world, source)
    assert world.store.uploads == []


async def test_a_copy_that_differs_is_tried_again_and_the_original_stays(
    world: ActivityPorts,
) -> None:
    source = await world.put("tmp/a", b"ERMHDR")

    async def broken(source: str, target: str) -> BlobRef:
        return await world.put(target, b"ERMHDX")

    world.blobs.copy = broken  # type: ignore[method-assign]
    with pytest.raises(ApplicationError) as caught:
        await upload(world, source)
    assert (caught.value.type, caught.value.non_retryable) == (TRANSIENT, False)
    await world.blobs.stat("tmp/a")
    assert world.store.uploads == []


async def test_a_direct_upload_is_registered_where_it_is(world: ActivityPorts) -> None:
    await world.put("kept/a", b"ERMHDR")
    await upload(world, None, direct_upload=True)
    assert world.store.uploads[0][0].name == "kept/a"
    await world.blobs.stat("kept/a")


async def test_deletes_are_counted_and_may_run_twice(world: ActivityPorts) -> None:
    world.store.tables["mto_lines"] = {("P1", "S1", "D"): {}, ("P1", "S2", "D"): {}}
    activities = DeleteImports(world.store)
    work = work_of(message_of("mto_delete", service_id="S1"))
    first = await environment().run(activities.delete_service, work)
    second = await environment().run(activities.delete_service, work)
    assert first == HandlerOutcome(counts=Counts(deleted=1))
    assert second == HandlerOutcome(note="Service S1 had no rows.")
    assert list(world.store.tables["mto_lines"]) == [("P1", "S2", "D")]


async def test_a_message_of_another_kind_is_refused(world: ActivityPorts) -> None:
    work = work_of(equipment())
    for run in (
        DeleteImports(world.store).delete_service,
        UploadImports(world.store, world.blobs, world.scratch).store_upload,
    ):
        with pytest.raises(ApplicationError) as caught:
            await environment().run(run, work)
        assert caught.value.type == PERMANENT


async def test_fetched_files_are_gone_afterwards(world: ActivityPorts) -> None:
    await world.put("in/file", b"content")
    async with fetched(world.blobs, "in/file", world.scratch) as path:
        assert path.read_bytes() == b"content"
    assert list(world.scratch.iterdir()) == []


def test_only_old_folders_of_ours_are_swept(tmp_path: Path) -> None:
    for name in ("docflow-old", "docflow-new", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    ago = time.time() - 100
    for name in ("docflow-old", "other"):
        os.utime(tmp_path / name, (ago, ago))
    assert sweep(tmp_path, older_than=50) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["docflow-new", "other"]
    assert sweep(tmp_path / "missing") == 0
