"""Uploads of schedule files: copied, verified, registered."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.lifecycle import UploadImports
from adapters.ports.errors import BlobNotFound
from tests.support.imports.activities import ActivityPorts, environment, message_of, work_of
from workflows.imports.runs import Counts, HandlerOutcome
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import TRANSIENT


@pytest.fixture
def ports(tmp_path: Path) -> ActivityPorts:
    return ActivityPorts(tmp_path)


UPLOAD = {"temp_blob_name": "tmp/a", "target_blob_name": "kept/a", "original_filename": "A.xer"}


async def upload(
    ports: ActivityPorts, source: BlobRef | None, *, planned_before: bool = False, **fields: Any
) -> HandlerOutcome:
    """The step alone; `planned_before`: by a release whose step deletes the temporary file."""
    activities = UploadImports(ports.store, ports.blobs, ports.scratch)
    work = work_of(message_of("schedule_upload", **{**UPLOAD, **fields}), source)
    plan = work.plan.model_copy(update={"delete_source": not planned_before})
    return await environment().run(activities.store_upload, work.model_copy(update={"plan": plan}))


async def test_an_upload_is_copied_verified_and_registered(ports: ActivityPorts) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")
    outcome = await upload(ports, source)
    assert outcome.counts == Counts(created=1)
    ((blob, name),) = ports.store.uploads
    assert (blob.name, blob.size, name) == ("kept/a", 6, "A.xer")
    assert blob.sha256 == hashlib.sha256(b"ERMHDR").hexdigest()
    assert (await ports.blobs.stat("tmp/a")).etag == source.etag


async def test_a_copy_that_is_there_is_not_made_again(ports: ActivityPorts) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")
    await upload(ports, source)
    stored = await ports.blobs.stat("kept/a")
    await upload(ports, source)
    assert await ports.blobs.stat("kept/a") == stored
    assert len(ports.store.uploads) == 1


async def test_another_file_at_the_target_is_replaced(ports: ActivityPorts) -> None:
    await ports.put("kept/a", b"ERMHDX")
    outcome = await upload(ports, await ports.put("tmp/a", b"ERMHDR"))
    assert hashlib.sha256(b"ERMHDR").hexdigest() in (outcome.note or "")


async def test_an_upload_that_is_replaced_on_the_way_is_refused(ports: ActivityPorts) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")
    await ports.put("tmp/a", b"ERMHDX")
    with pytest.raises(ApplicationError, match="tmp/a was replaced"):
        await upload(ports, source)


async def test_an_upload_of_an_earlier_release_moves_and_may_run_again(
    ports: ActivityPorts,
) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")
    await upload(ports, source, planned_before=True)
    with pytest.raises(BlobNotFound):
        await ports.blobs.stat("tmp/a")
    await upload(ports, source, planned_before=True)
    assert len(ports.store.uploads) == 1


async def test_a_target_that_is_not_the_upload_is_not_mistaken_for_it(ports: ActivityPorts) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")
    await ports.blobs.delete("tmp/a")
    await ports.put("kept/a", b"an older file")
    with pytest.raises(ApplicationError, match="tmp/a is not there and kept/a is not a copy"):
        await upload(ports, source)
    assert ports.store.uploads == []


async def test_a_copy_that_differs_is_tried_again_and_the_original_stays(
    ports: ActivityPorts,
) -> None:
    source = await ports.put("tmp/a", b"ERMHDR")

    async def broken(source: str, target: str) -> BlobRef:
        return await ports.put(target, b"ERMHDX")

    ports.blobs.copy = broken  # type: ignore[method-assign]
    with pytest.raises(ApplicationError) as caught:
        await upload(ports, source)
    assert (caught.value.type, caught.value.non_retryable) == (TRANSIENT, False)
    await ports.blobs.stat("tmp/a")
    assert ports.store.uploads == []


async def test_a_direct_upload_is_registered_where_it_is(ports: ActivityPorts) -> None:
    await ports.put("kept/a", b"ERMHDR")
    await upload(ports, None, direct_upload=True)
    assert ports.store.uploads[0][0].name == "kept/a"
    await ports.blobs.stat("kept/a")
