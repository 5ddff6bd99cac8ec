"""Bytes of a file pass through: a large file takes as much memory as a smaller one."""

import os
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from activities.transfers.crypto import Checksums
from activities.transfers.read_file import FileReading
from activities.transfers.write_file import FileWriting
from adapters.ports.blobs import Blobs
from adapters.staging import BlobNotes, BlobStaging, SealedBlobs, StagingKeys
from tests.support.blobs import folder_blobs
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.secrets import PlantedSecrets
from tests.support.transfers.sftp_server import PASSWORD, sftp_site
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.settings import Checksum, ReadFile, WriteFile

MB: Final = 1 << 20
KEY: Final = "env:STAGING"


@asynccontextmanager
async def partner_of(kind: PlaceKind, folder: Path) -> AsyncIterator[Partner]:
    """A partner whose files lie in a folder."""
    folder.mkdir()
    if kind is PlaceKind.FOLDER:
        yield Partner(name="acme", kind=kind, container=str(folder))
        return
    async with sftp_site(folder) as site:
        yield site.partner()


async def peak_of(folder: Path, blobs: Blobs, partner: Partner, megabytes: int) -> int:
    """Bytes of memory that a file takes on its way: read, checked and written."""
    ends = Endpoints.at(folder.parent, partner, secrets={"SFTP_PASSWORD": PASSWORD})
    secrets = PlantedSecrets()
    secrets.values[KEY] = "ab" * 32
    staging = BlobStaging(SealedBlobs(blobs, StagingKeys(secrets, KEY)))
    ports = replace(ends.ports, staging=staging, notes=BlobNotes(blobs))
    name = f"{megabytes}.bin"
    with (folder / name).open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(MB))
    reads = ends.order(ReadFile(partner="acme", path=name), {"path": name})
    checks = ends.order(Checksum(write=True), {})
    writes = ends.order(WriteFile(partner="acme", path="out/{name}"), {"path": "out/{name}"})
    tracemalloc.start()
    try:
        files = (await environment().run(FileReading(ports).read_file, reads)).files
        checked = checks.model_copy(update={"files": files})
        files = (await environment().run(Checksums(staging).checksum, checked)).files
        written = writes.model_copy(update={"files": files})
        await environment().run(FileWriting(ports).write_file, written)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (folder / "out" / name).stat().st_size == megabytes * MB
    return peak


@pytest.mark.parametrize("kind", [PlaceKind.FOLDER, PlaceKind.SFTP])
async def test_a_large_file_takes_no_more_memory_than_a_smaller_one(
    kind: PlaceKind, tmp_path: Path
) -> None:
    folder, blobs = tmp_path / "share", folder_blobs(tmp_path)
    async with partner_of(kind, folder) as partner:
        smaller = await peak_of(folder, blobs, partner, 12)
        larger = await peak_of(folder, blobs, partner, 48)
    assert larger < smaller + 8 * MB, (smaller, larger)
