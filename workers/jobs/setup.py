"""What jobs need: containers, PostGIS, schemas, the catalogue, grids of PROJ, a queue."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy import text

from activities.jobs.embedded_catalogue import EmbeddedCatalogue
from activities.jobs.spatial import (
    EXTENSIONS,
    GEO,
    OLDEST,
    PgstacMissing,
    Spatial,
    bundled,
    is_supported,
    make_spatial,
    spatial,
)
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
    """What jobs with spatial data need; other jobs do without, so that all are warnings."""
    if database.dialect == "postgresql":
        return [_extensions(database), _geo(database), _pgstac(database), _grids()]
    return [_embedded(database), _grids()]


def _extensions(database: Database) -> Requirement:
    def judged(found: Spatial) -> Finding:
        missing = [name for name in EXTENSIONS if name not in found.extensions]
        if not missing:
            versions = (f"{name} {found.extensions[name]}" for name in EXTENSIONS)
            return Finding(State.OK, ", ".join(versions))
        if absent := [name for name in missing if name not in found.available]:
            finding = f"the database server has no extension {', '.join(absent)}"
            return Finding(State.DIFFERS, finding, f"install it there ({_DEBIAN})")
        return Finding(State.MISSING, f"the database has no extension {', '.join(missing)}")

    commands = "; ".join(f"CREATE EXTENSION {name}" for name in EXTENSIONS)
    return _of_postgresql(
        database,
        "PostGIS",
        judged,
        consequence="vector data cannot be stored and nothing can be catalogued",
        cure=f"run `docflow setup`, or as a superuser `{commands}`",
    )


def _geo(database: Database) -> Requirement:
    def judged(found: Spatial) -> Finding:
        if found.geo:
            return Finding(State.OK, GEO)
        return Finding(State.MISSING, f"the database has no schema {GEO}")

    return _of_postgresql(
        database,
        f"schema {GEO}",
        judged,
        consequence="vector data cannot be stored",
        cure=f"run `docflow setup`, or `CREATE SCHEMA {GEO}`",
    )


def _pgstac(database: Database) -> Requirement:
    def judged(found: Spatial) -> Finding:
        if found.pgstac is not None and is_supported(found.pgstac) and not found.times:
            return Finding(
                State.MISSING,
                f"pgstac {found.pgstac} does not know that `created` and `updated` are times, and "
                "refuses filters that compare them",
            )
        if found.pgstac is not None and is_supported(found.pgstac):
            return Finding(State.OK, f"pgstac {found.pgstac}")
        oldest = ".".join(map(str, OLDEST))
        finding = (
            "the database has no pgstac"
            if found.pgstac is None
            else f"pgstac is {found.pgstac}; {oldest} is the oldest that can be used"
        )
        if bundled() is None:
            cure = "install docflow[pgstac] and run `docflow setup`, or run `pypgstac migrate`"
            return Finding(State.MISSING, finding, cure)
        return Finding(State.MISSING, finding)

    return _of_postgresql(
        database,
        "catalogue",
        judged,
        consequence="nothing can be catalogued",
        cure="run `docflow setup`, or `pypgstac migrate`",
    )


def _of_postgresql(
    database: Database,
    name: str,
    judged: Callable[[Spatial], Finding],
    *,
    consequence: str,
    cure: str,
) -> Requirement:
    async def check() -> Finding:
        return judged(await spatial(database))

    async def make() -> Finding:
        try:
            found = judged(await make_spatial(database))
        except (Denied, PgstacMissing) as error:
            return Finding(State.MISSING, str(error), cure)
        return Finding(State.MADE, found.says) if found.state is State.OK else found

    return Requirement(name, check, consequence, cure, make=make, needed=False)


def _embedded(database: Database) -> Requirement:
    async def check() -> Finding:
        asked = "SELECT count(*) FROM sqlite_master WHERE name = 'stac_boxes'"
        async with database.reading() as connection:
            found = (await connection.execute(text(asked))).scalar()
        place = f"tables in {database.place}"
        return Finding(State.OK, place) if found else Finding(State.MISSING, f"no {place} yet")

    async def make() -> Finding:
        await EmbeddedCatalogue(database).prepare()
        return Finding(State.MADE, f"tables in {database.place}")

    return Requirement(
        "catalogue",
        check,
        consequence="the first item makes them",
        cure="run `docflow setup`",
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
    """The containers of bronze, silver and gold, PostGIS, the catalogue and grids of PROJ.

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
