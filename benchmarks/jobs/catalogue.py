"""Concurrent writers of the catalogue, and its search."""

from dataclasses import replace
from time import perf_counter
from typing import Final

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.stac_queries import filter_of_text
from adapters.database.engine import open_database
from adapters.database.schema import upgrade
from benchmarks.report import Table, middle
from stack.postgres import postgres_server
from tests.support.jobs.catalogue_writers import count, write_at_once

WRITERS: Final = 8
ITEMS: Final = 2_000
_SEARCHES: Final = 20


async def concurrent_writers() -> Table:
    """Items a second of writers that share a collection, and what a search takes."""
    columns = ("items/s", "errors", "lost", "search by box", "by box and filter")
    table = Table(f"Catalogue: {WRITERS} writers, {ITEMS:,} items", columns)
    table.notes.append("each item is checked and put in a transaction of its own; target: no error")
    table.notes.append("durable: the database writes through to the disk")
    with postgres_server(durable=True) as url:
        await upgrade(url)
        began = perf_counter()
        errors = await write_at_once(url, WRITERS, ITEMS // WRITERS)
        took = perf_counter() - began
        found = await count(url)
        box = CatalogueQuery(bbox=(2, 0, 2.5, 1), limit=10)
        filtered = replace(box, filter=filter_of_text("id LIKE 'w2-1%'"))
        table.add(
            f"{ITEMS / took:,.0f}",
            str(len(errors)),
            str(ITEMS - found),
            f"{await _milliseconds(url, box):.1f} ms",
            f"{await _milliseconds(url, filtered):.1f} ms",
        )
    return table


async def _milliseconds(url: str, query: CatalogueQuery) -> float:
    """The median of several searches."""
    async with open_database(url) as database:
        catalogue = Catalogue(database)
        await catalogue.search(query)
        took: list[float] = []
        for _ in range(_SEARCHES):
            began = perf_counter()
            await catalogue.search(query)
            took.append(1_000 * (perf_counter() - began))
    return middle(took)
