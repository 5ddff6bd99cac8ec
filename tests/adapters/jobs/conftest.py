"""The catalogue; rasters, jobs, vectors."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.jobs.catalogue import Catalogue
from adapters.database.engine import open_database
from adapters.files.rasters.pool import FileRasters
from adapters.files.vectors.reader import VectorFiles
from tests.support.jobs.raster_jobs import RasterJobs, raster_jobs
from tests.support.jobs.vector_reading import Read, Reading
from workflows.jobs.vectors import VectorOptions


@pytest.fixture
async def catalogue(database_url: str) -> AsyncGenerator[Catalogue]:
    """An empty catalogue."""
    async with open_database(database_url) as database:
        yield Catalogue(database)


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
