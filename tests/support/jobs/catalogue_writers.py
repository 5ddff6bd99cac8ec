"""Writers that put items into one collection at once, each with connections of its own."""

import asyncio
from contextlib import AsyncExitStack

from activities.jobs.catalogue import Catalogue
from activities.jobs.ports import CatalogueQuery
from activities.jobs.stac_queries import LIMIT
from adapters.database.engine import open_database
from tests.support.jobs.stac import collection, item


async def write_at_once(url: str, writers: int, each: int) -> list[BaseException]:
    """Put items one by one, each in a transaction.

    Args:
        url: Of the database.
        writers: How many there are.
        each: Items of one writer, over four years.

    Returns:
        What failed.
    """
    async with AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(open_database(url)) for _ in range(writers)]
        catalogues = [Catalogue(database) for database in databases]
        await catalogues[0].put_collection(collection())
        ended = await asyncio.gather(
            *(_write(catalogue, at, each) for at, catalogue in enumerate(catalogues)),
            return_exceptions=True,
        )
    return [error for error in ended if error is not None]


async def _write(catalogue: Catalogue, writer: int, each: int) -> None:
    for at in range(each):
        put = item(f"w{writer}-{at}", days=1_400 * at / each, box=(writer, 0, writer + 1, 1))
        await catalogue.put_items("scenes", [put])


async def count(url: str) -> int:
    """Items that a search of everything finds."""
    found, query = 0, CatalogueQuery(limit=LIMIT)
    async with open_database(url) as database:
        catalogue = Catalogue(database)
        while True:
            page = await catalogue.search(query)
            found += len(page.items)
            if page.next is None:
                return found
            query = CatalogueQuery(limit=LIMIT, token=page.next)
