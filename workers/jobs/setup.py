"""What jobs need: containers, PostGIS, grids of PROJ, a queue."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from activities.jobs.postgis import GEO, find_postgis, make_postgis
from adapters.database.engine import Database, open_database
from adapters.files.datum_grids import grid_folder, missing_grids
from adapters.ports.errors import Denied
from workers.jobs.settings import JobQueueSettings, TierSettings
from workers.shared.services.requirements import Finding, Requirement, State, container_of
from workers.shared.services.service_bus import open_queue, queue_requirement
from workers.shared.settings.common import BlobSettings, DatabaseSettings

_DEBIAN: Final = "Debian: apt-get install postgresql-15-postgis-3"
_GRIDS_NAMED: Final = 2
"""Of each datum."""


def spatial_requirements(database: Database) -> Sequence[Requirement]:
    """What jobs with spatial data use; all work without, so that these are warnings."""
    return [_postgis(database), _grids()]


def _postgis(database: Database) -> Requirement:
    async def check() -> Finding:
        found = await find_postgis(database)
        if found.is_ready:
            return Finding(State.OK, f"PostGIS {found.version}, schema {GEO}")
        if not found.is_available:
            return Finding(
                State.OK,
                "the database server has no PostGIS: tables of vector data are GeoPackages in "
                f"silver. If you want them in the database, install it there ({_DEBIAN})",
            )
        lacks = f"schema {GEO}" if found.version else "PostGIS"
        return Finding(State.MISSING, f"the database has no {lacks}")

    async def make() -> Finding:
        try:
            await make_postgis(database)
        except Denied as error:
            return Finding(State.MISSING, str(error))
        return Finding(State.MADE, (await check()).says)

    return Requirement(
        "PostGIS",
        check,
        consequence="tables of vector data are GeoPackages in silver",
        cure=f"run `docflow setup`, or as a superuser `CREATE EXTENSION postgis; "
        f"CREATE SCHEMA {GEO}`",
        make=make,
        needed=False,
    )


def _grids() -> Requirement:
    async def check() -> Finding:
        missing = await asyncio.to_thread(missing_grids)
        folder = grid_folder()
        if not missing:
            return Finding(State.OK, folder)
        named = "; ".join(f"{datum} needs {_named(files)}" for datum, files in missing.items())
        cure = f"fetch them with `projsync --file NAME` into {folder}, or a folder of PROJ_DATA"
        return Finding(State.MISSING, named, cure)

    return Requirement(
        "datum grids",
        check,
        consequence="data in these datums are shifted less accurately, or refused",
        cure="fetch them with `projsync --file NAME`",
        needed=False,
    )


def _named(files: Sequence[str]) -> str:
    shown = ", ".join(files[:_GRIDS_NAMED])
    more = len(files) - _GRIDS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


@asynccontextmanager
async def worker_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """The containers of bronze, silver and gold, PostGIS and grids of PROJ.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    tiers = TierSettings.read(environment).of(BlobSettings.read(environment))
    names = ("bronze", "silver", "gold")
    containers = [container_of(tier, name) for tier, name in zip(tiers, names, strict=True)]
    settings = DatabaseSettings.read(environment)
    async with open_database(settings.url, settings.options) as database:
        yield [*containers, *spatial_requirements(database)]


@asynccontextmanager
async def queue_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """What the bridge of jobs needs.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = JobQueueSettings.read(environment)
    async with open_queue(settings) as queue:
        yield [queue_requirement(queue, settings, "job queue")]
