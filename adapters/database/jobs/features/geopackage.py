"""Tables of features as GeoPackages in the silver container: a version of the file for each load.

A version is never overwritten; the one with the highest number is the table. Two loads that begin
with the same version end with one of them having to begin again.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from adapters.database.jobs.features.package_file import open_package
from adapters.ports import BlobNotFound, Blobs, Unavailable
from adapters.ports.features import FeatureLoad, StoredTable
from contracts.jobs.vectors import LoadMode, LoadReport
from domain.errors import RuleViolation
from domain.jobs.vectors.loads import check_load

FOLDER: Final = "geo"
_ATTEMPTS: Final = 5


class GeoPackageFeatures:
    """A `Features` without a server.

    Args:
        silver: The container.
        scratch: Folder for files while they are worked on.
    """

    def __init__(self, silver: Blobs, scratch: Path) -> None:
        self._silver = silver
        self._scratch = scratch

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none."""
        for _ in range(_ATTEMPTS):
            with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
                try:
                    return await self._load(load, Path(folder))
                except FileExistsError:
                    # Another load was first: this one sees what it has made of the table.
                    continue
        raise Unavailable(f"other loads of the table {load.table.name!r} go on and on")

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "table.gpkg"
            if not await self._download(name, path):
                return None
            return await asyncio.to_thread(_stored, path)

    async def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows of the version that is the newest when the first are read."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "table.gpkg"
            if not await self._download(name, path):
                raise RuleViolation(f"there is no table {name!r}")
            with open_package(path) as package:
                for found in package.rows():
                    yield found

    async def _load(self, load: FeatureLoad, folder: Path) -> LoadReport:
        version = await self._newest(load.table.name)
        before = folder / "before.gpkg"
        if version:
            await self._silver.download(_name(load.table.name, version), before)
        after = folder / "after.gpkg"
        place = _name(load.table.name, version + 1)
        report, is_new = await asyncio.to_thread(
            _written, load, before if version else None, after, place
        )
        if is_new:
            await self._silver.upload(after, place, overwrite=False)
            await self._remember(load.table.name, version + 1, folder)
        return report

    async def _download(self, name: str, target: Path) -> int:
        version = await self._newest(name)
        if version:
            await self._silver.download(_name(name, version), target)
        return version

    async def _newest(self, name: str) -> int:
        """Number of the newest version, 0 when there is none."""
        version = await self._remembered(name)
        while await self._exists(_name(name, version + 1)):
            version += 1
        return version

    async def _exists(self, blob: str) -> bool:
        try:
            await self._silver.stat(blob)
        except BlobNotFound:
            return False
        return True

    async def _remembered(self, name: str) -> int:
        """A version that exists, at which the search for the newest begins."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "newest.json"
            try:
                await self._silver.download(f"{FOLDER}/{name}/newest.json", path)
            except BlobNotFound:
                return 0
            return int(json.loads(path.read_text())["version"])

    async def _remember(self, name: str, version: int, folder: Path) -> None:
        path = folder / "newest.json"
        path.write_text(json.dumps({"version": version}))
        await self._silver.upload(path, f"{FOLDER}/{name}/newest.json")


def _name(table: str, version: int) -> str:
    return f"{FOLDER}/{table}/{version:06d}.gpkg"


def _stored(path: Path) -> StoredTable:
    with open_package(path) as package:
        return StoredTable(package.definition(), package.count(), package.extent())


def _written(
    load: FeatureLoad, before: Path | None, after: Path, place: str
) -> tuple[LoadReport, bool]:
    """Make the next version; False: the load has been done already."""
    existing, loads = None, list[tuple[str, str]]()
    if before is not None:
        with open_package(before) as package:
            if (done := package.done(load.key)) is not None:
                return done, False
            existing, loads = package.definition(), package.loads()
    table = check_load(load.table, load.mode, load.upsert_by, existing)
    keep = before is not None and load.mode is not LoadMode.REPLACE
    if keep and before is not None:
        shutil.copy(before, after)
    with open_package(after) as package:
        if not keep:
            package.create(table, loads)
        return package.load(load, table, place), True
