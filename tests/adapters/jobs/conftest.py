"""The catalogue on SQLite, and on pgstac where the machine has PostGIS; rasters, jobs, vectors."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.jobs.embedded_catalogue import open_catalogue
from activities.jobs.ports import Catalogue
from adapters.database.engine import open_database
from adapters.files.rasters.pool import FileRasters
from adapters.files.vectors.reader import VectorFiles
from tests.support.jobs.raster_jobs import RasterJobs, raster_jobs
from tests.support.jobs.vector_reading import Read, Reading
from workflows.jobs.vectors import VectorOptions


@pytest.fixture(params=["sqlite", pytest.param("pgstac", marks=pytest.mark.postgis)])
def catalogue_url(request: pytest.FixtureRequest) -> str:
    """URL of a database with an empty catalogue."""
    name = {"sqlite": "database_url", "pgstac": "postgis_url"}[request.param]
    return request.getfixturevalue(name)


@pytest.fixture
async def catalogue(catalogue_url: str) -> AsyncGenerator[Catalogue]:
    """Each of the catalogues, empty."""
    async with open_database(catalogue_url) as database:
        yield open_catalogue(database)


@pytest.fixture(scope="module")
def rasters() -> Iterator[FileRasters]:
    """Readers of rasters, in one process."""
    found = FileRasters(1)
    yield found
    asyncio.run(found.aclose())


@pytest.fixture
async def jobs(
    rasters: FileRasters, tmp_path: Path, database_url: str
) -> AsyncGenerator[RasterJobs]:
    """Jobs over an empty catalogue."""
    async with raster_jobs(tmp_path, rasters, database_url) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files() -> AsyncGenerator[VectorFiles]:
    """Readers of vector data."""
    async with VectorFiles() as found:
        yield found


@pytest.fixture
def read(files: VectorFiles, tmp_path: Path) -> Reading:
    """Reads a file as a job does."""

    async def reading(path: Path, **options: Any) -> Read:
        inside, outside = tmp_path / "in", tmp_path / "out"
        inside.mkdir()
        outside.mkdir()
        path = path.rename(inside / "x")
        options = {"dataset": "test", **options}
        return Read(await files.read(path, outside, VectorOptions(**options)), outside)

    return reading
