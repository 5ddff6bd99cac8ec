"""Tables of features as GeoPackages in the silver container: a version of the file for each load.

A version is never overwritten; the one with the highest number is the table. Two loads that begin
with the same version end with one of them having to begin again.
"""

import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from adapters.database.jobs.features.package_file import open_package
from adapters.ports import Blobs, Unavailable
from adapters.ports.features import FeatureLoad, StoredTable
from adapters.threads import to_end
from contracts.jobs.vectors import LoadMode, LoadReport
from domain.errors import RuleViolation
from domain.jobs.vectors.loads import check_load

FOLDER: Final = "geo"
_ATTEMPTS: Final = 5
_MOST_VERSIONS: Final = 1_000_000
_VERSION: Final = re.compile(r"/(\d+)\.gpkg$")


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
        raise Unavailable(f"other loads of the table {load.table.name!r} do not end")

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "table.gpkg"
            if not await self._download(name, path):
                return None
            return await to_end(_stored, path)

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
        report, is_new = await to_end(_written, load, before if version else None, after, place)
        if is_new:
            await self._silver.upload(after, place, overwrite=False)
        return report

    async def _download(self, name: str, target: Path) -> int:
        version = await self._newest(name)
        if version:
            await self._silver.download(_name(name, version), target)
        return version

    async def _newest(self, name: str) -> int:
        """Number of the newest version, 0 when there is none; older ones may have been removed."""
        found = await self._silver.list(f"{FOLDER}/{name}/", _MOST_VERSIONS)
        numbers = [int(version[1]) for each in found if (version := _VERSION.search(each.name))]
        return max(numbers, default=0)


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
