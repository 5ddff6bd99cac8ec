"""Databases with PostGIS, where the machine has them.

Tests that need one carry the marker `postgis`: they are left out where PostGIS is not installed,
and the end of the run says so.
"""

import asyncio
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from activities.jobs.postgis import make_postgis
from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from stack.postgres import postgis_programs, postgres_server
from tests.support.fresh_database import FreshDatabase, administer, sibling

_TEMPLATE: Final = "spatial"


@dataclass(frozen=True)
class PostgisServer:
    """A server with a template of docflow's schema, PostGIS and `geo`."""

    url: str
    """Of its `postgres` database."""
    fresh: FreshDatabase
    """For one test after the other."""

    @contextmanager
    def bare_database(self) -> Generator[str]:
        """URL of a database with nothing in it; dropped when the block ends."""
        name = f"spatial_{uuid.uuid4().hex}"
        asyncio.run(administer(self.url, f"CREATE DATABASE {name}"))
        try:
            yield sibling(self.url, name)
        finally:
            asyncio.run(administer(self.url, f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def postgis_server() -> Generator[PostgisServer]:
    """Run a server with PostGIS until the block ends."""
    programs = postgis_programs()
    assert programs is not None, "the test needs the marker `postgis`"
    with postgres_server(programs=programs) as url:
        asyncio.run(_make_template(url))
        yield PostgisServer(url, FreshDatabase(url, _TEMPLATE))


async def _make_template(url: str) -> None:
    await administer(url, f"CREATE DATABASE {_TEMPLATE}")
    await upgrade(sibling(url, _TEMPLATE))
    async with open_database(sibling(url, _TEMPLATE)) as database:
        await make_postgis(database)
