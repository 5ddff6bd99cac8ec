"""What is no longer kept of jobs, and what stays because something uses it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from temporalio.testing import ActivityEnvironment

from activities.jobs.api import JobPorts, JobResources, JobTypes
from activities.jobs.catalogue import Catalogue
from activities.jobs.completion import JobRetentionSteps, supersede
from activities.jobs.folders import StageFolders
from activities.jobs.store import SqlJobLeftovers, SqlJobStore
from activities.jobs.webhook_store import SqlWebhookSecrets
from adapters.database.engine import Database, open_database
from adapters.ports.errors import Denied
from tests.adapters.jobs.test_store import a_job, a_task
from tests.support.jobs.stac import asset, collection, item
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import JobRetentionInput

LONG_AGO = datetime.now(UTC) - timedelta(days=100)
SHORT = 1e-9
"""Hours of grace that are over at once."""


@asynccontextmanager
async def retention(database: Database, folder: Path) -> AsyncIterator[JobRetentionSteps]:
    scratch = folder / "scratch"
    scratch.mkdir()
    resources = JobResources(
        MemoryBlobs(), MemoryBlobs(), MemoryBlobs(), Catalogue(database), scratch
    )
    keep = timedelta(days=90)
    blobs, types = MemoryBlobs(), JobTypes()
    folders = StageFolders(blobs, scratch)
    ports = JobPorts(types, resources, folders, SqlJobStore(database), result_bytes=1_000)
    yield JobRetentionSteps(ports, blobs, SqlJobLeftovers(database), keep)


@pytest.fixture
async def spatial(database_url: str) -> AsyncIterator[Database]:
    """A database with an empty catalogue."""
    async with open_database(database_url) as opened:
        yield opened


async def put(blobs: object, folder: Path, *names: str) -> None:
    assert isinstance(blobs, MemoryBlobs)
    path = folder / "file"
    path.write_bytes(b"bytes")
    for name in names:
        await blobs.upload(path, name)


async def names(blobs: object) -> list[str]:
    assert isinstance(blobs, MemoryBlobs)
    return [each.name for each in await blobs.list("", 100)]


async def test_superseded_files_go_after_their_time_unless_they_are_used_again(
    spatial: Database, tmp_path: Path
) -> None:
    async with retention(spatial, tmp_path) as steps:
        resources, run = steps.resources, ActivityEnvironment().run
        await put(resources.silver, tmp_path, "old.tif", "again.tif", "young.tif")
        await put(resources.gold, tmp_path, "old.parquet")
        await resources.catalogue.put_collection(collection())
        using = item("scene-1", assets={"data": asset(href="silver://again.tif")})
        await resources.catalogue.put_items("scenes", [using])
        old = ["silver://old.tif", "silver://again.tif", "gold://old.parquet"]
        await supersede(resources, "scenes", "scene-1", old, SHORT)
        await supersede(resources, "scenes", "scene-1", ["silver://young.tif"], 168)
        dry = await run(steps.remove_superseded, JobRetentionInput(dry_run=True))
        still = await names(resources.gold)
        done = await run(steps.remove_superseded, JobRetentionInput())
        again = await run(steps.remove_superseded, JobRetentionInput())
        left = await names(resources.silver)
    assert dry.named == done.named == ("silver://old.tif", "gold://old.parquet")
    assert (dry.files, done.files, again.files) == (2, 2, 0)
    assert still == ["old.parquet"] and await names(resources.gold) == []
    assert left[:1] == ["again.tif"] and left[-1] == "young.tif"
    assert len(left) == 3 and left[1].startswith("superseded/")


@pytest.mark.parametrize("is_catalogued", [False, True])
async def test_old_jobs_leave_what_the_catalogue_uses(
    spatial: Database, tmp_path: Path, is_catalogued: bool
) -> None:
    database = spatial
    store, run = SqlJobStore(database), ActivityEnvironment().run
    secrets = SqlWebhookSecrets(database, [Fernet.generate_key()])
    old, young, busy = "ab" * 32, "cd" * 32, "ef" * 32
    for id, status, changed in (
        (old, JobStatus.COMPLETED, LONG_AGO),
        (young, JobStatus.FAILED, datetime.now(UTC)),
        (busy, JobStatus.PARKED, LONG_AGO),
    ):
        await store.put_job(a_job(job_id=id, status=status, updated_at=changed))
        await store.put_tasks([a_task(0, parent_job_id=id)])
    reference = await secrets.keep(old, "planted-secret-of-a-client")
    async with retention(database, tmp_path) as steps:
        resources = steps.resources
        await put(steps.blobs, tmp_path, f"jobs/{old}/1/1.0/order.json", f"jobs/{busy}/1/a")
        await put(resources.silver, tmp_path, f"{old}/1/4/0/a.tif", f"{old}/1/3/0/tile.tif")
        await resources.catalogue.put_collection(collection())
        made = item(
            "scene-1",
            assets={"data": asset(href=f"silver://{old}/1/4/0/a.tif")},
            more={"docflow:job_id": old},
        )
        if is_catalogued:
            await resources.catalogue.put_items("scenes", [made])
        dry = await run(steps.remove_expired, JobRetentionInput(dry_run=True))
        assert await secrets.secrets(reference)
        done = await run(steps.remove_expired, JobRetentionInput())
        again = await run(steps.remove_expired, JobRetentionInput())
        files, blobs = await names(resources.silver), await names(steps.blobs)
    with pytest.raises(Denied, match="not kept any more"):
        await secrets.secrets(reference)
    assert dry == done and again.jobs == 0
    assert (done.jobs, done.kept, done.files) == (1, int(is_catalogued), 2 - int(is_catalogued))
    assert files == ([f"{old}/1/4/0/a.tif"] if is_catalogued else [])
    assert blobs == [f"jobs/{busy}/1/a"]
    assert (await store.job(old) is not None) is is_catalogued
    for id, tasks in ((old, 0), (young, 1), (busy, 1)):
        assert len((await store.tasks(id)).tasks) == tasks
