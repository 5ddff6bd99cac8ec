"""Concurrent writers of the catalogue, and its search, on both stores."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

from activities.jobs.embedded_catalogue import open_catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.spatial import make_spatial
from activities.jobs.stac_queries import filter_of_text
from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from benchmarks.report import Table, middle
from stack.postgres import postgis_programs, postgres_server
from tests.support.jobs.catalogue_writers import count, write_at_once

WRITERS: Final = 8
ITEMS: Final = 2_000
_SEARCHES: Final = 20


async def concurrent_writers(folder: Path) -> Table:
    """Items a second of writers that share a collection, and what a search takes."""
    columns = ("store", "items/s", "errors", "lost", "search by box", "by box and filter")
    table = Table(f"Catalogue: {WRITERS} writers, {ITEMS:,} items", columns)
    table.notes.append("each item is checked and put in a transaction of its own; target: no error")
    table.notes.append("durable: both stores write through to the disk")
    await _measure(table, "SQLite", f"sqlite:///{folder / 'catalogue.db'}")
    if postgis_programs() is None:
        table.notes.append("this machine has no PostGIS: pgstac is not measured")
        return table
    with _pgstac() as url:
        async with open_database(url) as database:
            await make_spatial(database)
        await _measure(table, "pgstac", url)
    return table


@contextmanager
def _pgstac() -> Generator[str]:
    with postgres_server(programs=postgis_programs(), durable=True) as url:
        yield url


async def _measure(table: Table, name: str, url: str) -> None:
    await upgrade(url)
    began = perf_counter()
    errors = await write_at_once(url, WRITERS, ITEMS // WRITERS)
    took = perf_counter() - began
    found = await count(url)
    box = CatalogueQuery(bbox=(2, 0, 2.5, 1), limit=10)
    filtered = CatalogueQuery(
        bbox=(2, 0, 2.5, 1), limit=10, filter=filter_of_text("id LIKE 'w2-1%'")
    )
    table.add(
        name,
        f"{ITEMS / took:,.0f}",
        str(len(errors)),
        str(ITEMS - found),
        f"{await _milliseconds(url, box):.1f} ms",
        f"{await _milliseconds(url, filtered):.1f} ms",
    )


async def _milliseconds(url: str, query: CatalogueQuery) -> float:
    """The median of several searches."""
    async with open_database(url) as database:
        catalogue = open_catalogue(database)
        await catalogue.search(query)
        took: list[float] = []
        for _ in range(_SEARCHES):
            began = perf_counter()
            await catalogue.search(query)
            took.append(1_000 * (perf_counter() - began))
    return middle(took)
