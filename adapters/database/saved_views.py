"""Filters of the list of runs that people keep for themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.access import saved_views
from adapters.database.records import clean

MOST_VIEWS: Final = 20
"""Views of one person."""
_LARGEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SavedView:
    """A filter that a person keeps."""

    id: int
    name: str
    query: str
    """Of the address of the list."""


class SqlSavedViews:
    """The views of people; every method raises `Unavailable` without the database.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, subject: str) -> Sequence[SavedView]:
        """The views of a person, by name."""
        table = saved_views
        query = select(table).where(table.c.subject == clean(subject)).order_by(table.c.name)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings()
            return [SavedView(row["id"], row["name"], row["query"]) for row in rows]

    async def save(self, subject: str, name: str, query: str) -> bool:
        """Keep a view, in place of one of this name; False: the person has as many as they may."""
        table, row = saved_views, {"subject": clean(subject), "name": clean(name)}
        others = (
            select(func.count())
            .select_from(table)
            .where(table.c.subject == row["subject"], table.c.name != row["name"])
        )
        async with self._database.transaction() as connection:
            if (await connection.execute(others)).scalar_one() >= MOST_VIEWS:
                return False
            made = insert(table).values(row | {"query": clean(query)})
            await connection.execute(
                made.on_conflict_do_update(
                    index_elements=["subject", "name"], set_={"query": made.excluded.query}
                )
            )
        return True

    async def remove(self, subject: str, id: int) -> None:
        """Remove a view of a person; one that is not there, or not theirs, stays as it is."""
        if not 0 < id <= _LARGEST_ID:
            return
        table = saved_views
        own = delete(table).where(table.c.id == id, table.c.subject == clean(subject))
        async with self._database.transaction() as connection:
            await connection.execute(own)
