"""The catalogue on SQLite, and on pgstac where the machine has PostGIS."""

from collections.abc import AsyncGenerator

import pytest

from adapters.database import open_database
from adapters.database.jobs.catalogue import open_catalogue
from adapters.ports.catalogue import Catalogue


@pytest.fixture(params=["sqlite", pytest.param("pgstac", marks=pytest.mark.postgis)])
def catalogue_url(request: pytest.FixtureRequest) -> str:
    """URL of a database with an empty catalogue."""
    name = {"sqlite": "sqlite_database_url", "pgstac": "postgis_url"}[request.param]
    return request.getfixturevalue(name)


@pytest.fixture
async def catalogue(catalogue_url: str) -> AsyncGenerator[Catalogue]:
    """Each of the catalogues, empty."""
    async with open_database(catalogue_url) as database:
        yield open_catalogue(database)
