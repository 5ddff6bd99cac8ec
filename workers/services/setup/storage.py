"""What docflow needs to keep rows and documents: a schema, and a container or folder."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Final

from activities.scratch import scratch_folder
from adapters.aws.blobs import Bucket, S3Blobs
from adapters.azure.blobs import AzureBlobs
from adapters.database import (
    Database,
    SchemaBehind,
    SchemaUnknown,
    current,
    require_current,
    upgrade,
)
from adapters.ports import Unavailable
from contracts.dependencies import Dependency
from workers.services.setup.requirements import Finding, Requirement, State
from workers.settings.blobs import BlobSettings
from workers.settings.database import DatabaseSettings

_PROBED_BYTES: Final = 1 << 16
"""Written while a process works, every few seconds."""


def schema_of(database: Database, settings: DatabaseSettings) -> Requirement:
    """The schema of this release.

    Args:
        database: Looked at.
        settings: Of the same, to upgrade it.
    """

    async def check() -> Finding:
        try:
            await require_current(database)
        except SchemaUnknown as error:
            return Finding(State.DIFFERS, str(error), "see the runbook, 'The schema is behind'")
        except SchemaBehind as error:
            return Finding(State.MISSING, str(error))
        return Finding(State.OK, f"of this release, {database.place}")

    async def make() -> Finding:
        before = await upgrade(settings.url, settings.options)
        after = await current(settings.url, settings.options)
        return Finding(State.MADE, f"at {after}, was {before or 'empty'}")

    async def watch() -> Finding:
        await database.probe()
        return Finding(State.OK, database.place)

    return Requirement(
        "database schema",
        check,
        consequence="no run can write its rows",
        cure="run `docflow setup` or `docflow db upgrade`",
        make=make,
        watch=watch,
    )


def container_of(settings: BlobSettings, of: str = "blob") -> Requirement:
    """Where documents are: a container of Azure Storage, a bucket of S3, or a folder.

    Args:
        settings: Where.
        of: What it holds, as its requirement is called.
    """
    if settings.folder is not None:
        return _folder(settings, of)
    if (bucket := settings.bucket) is not None:
        return _bucket(bucket, settings.container, of)
    return _container(settings, of)


def _bucket(bucket: Bucket, folder: str, of: str) -> Requirement:
    """The owner of the account makes it, who decides about its region, encryption and rights."""
    blobs = S3Blobs(bucket, folder)

    async def check() -> Finding:
        try:
            await blobs.probe()
        except Unavailable as error:
            if not error.misconfigured:
                raise
            return Finding(State.MISSING, str(error))
        return Finding(State.OK, f"{bucket.name}/{folder}")

    return Requirement(
        f"{of} bucket",
        check,
        consequence="no document can be read or kept",
        cure=f"make the bucket {bucket.name}, or correct DOCFLOW_BLOB_BUCKET",
        watch=check,
    )


def _folder(settings: BlobSettings, of: str) -> Requirement:
    folder = settings.folder
    assert folder is not None
    place = f"the folder {folder} of DOCFLOW_BLOB_FOLDER"

    async def check() -> Finding:
        if not await asyncio.to_thread(folder.is_dir):
            return Finding(State.MISSING, f"{place} is missing")
        if not await asyncio.to_thread(os.access, folder, os.W_OK | os.X_OK):
            cure = "let the user that docflow runs as write there"
            return Finding(State.DIFFERS, f"{place} cannot be written to", cure)
        return Finding(State.OK, str(folder))

    async def make() -> Finding:
        try:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{place} cannot be made: {error.strerror}"
            return Finding(State.MISSING, problem, "correct DOCFLOW_BLOB_FOLDER")
        return Finding(State.MADE, str(folder))

    return Requirement(
        f"{of} folder",
        check,
        consequence="no document can be read or kept",
        cure="run `docflow setup`",
        make=make,
        watch=check,
    )


def scratch_of(folder: Path) -> Requirement:
    """Room on the scratch disk of this machine."""

    async def check() -> Finding:
        await asyncio.to_thread(_write_to, folder)
        return Finding(State.OK, str(folder))

    return Requirement(
        "scratch disk",
        check,
        consequence="no document can be read",
        cure="make room there, or correct DOCFLOW_SCRATCH",
        watch=check,
    )


def _write_to(folder: Path) -> None:
    place = f"the folder {folder} of DOCFLOW_SCRATCH"
    try:
        with scratch_folder(folder) as own:
            (own / "probe").write_bytes(bytes(_PROBED_BYTES))
    except Unavailable as error:
        text = f"{place}: {error}; make room there, or correct it"
        raise Unavailable(text, Dependency.SCRATCH_DISK) from error
    except OSError as error:
        text = f"{place} cannot be written to: {error.strerror}"
        raise Unavailable(text, Dependency.SCRATCH_DISK) from error


def _container(settings: BlobSettings, of: str) -> Requirement:
    assert settings.connection_string is not None
    blobs = AzureBlobs(settings.connection_string, settings.container)

    async def check() -> Finding:
        if await blobs.has_container():
            return Finding(State.OK, settings.container)
        return Finding(State.MISSING, f"there is no container {settings.container!r}")

    async def make() -> Finding:
        await blobs.create_container()
        return Finding(State.MADE, settings.container)

    name = shlex.quote(settings.container)
    return Requirement(
        f"{of} container",
        check,
        consequence="no document can be read or kept",
        cure=f"run `docflow setup`, or `az storage container create --name {name}`",
        make=make,
        watch=check,
    )
