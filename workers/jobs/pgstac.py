"""A database with pgstac, which the catalogue is exported to."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import text

from adapters.database.engine import Database
from adapters.ports.errors import Denied

_TURN: Final = text(
    "SELECT pg_advisory_xact_lock(hashtext(:collection)), "
    "set_config('search_path', 'pgstac, public', true)"
)
"""Concurrent upserts into one collection of pgstac deadlock without the lock."""
_OF_THE_API: Final = frozenset({"self", "root", "parent", "collection", "items"})
"""Links that whoever serves an item or a collection adds."""
_QUERYABLES: Final = "/rel/ogc/1.0/queryables"


class PgstacTarget:
    """Writes collections and items over those with their ids; what else there is stays.

    Args:
        database: With the schema `pgstac`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self) -> None:
        """See that it has pgstac.

        Raises:
            Denied: It has none.
            Unavailable: It does not answer.
        """
        asked = text("SELECT to_regclass('pgstac.items') IS NOT NULL")
        async with self._database.reading() as connection:
            if not (await connection.execute(asked)).scalar():
                place = self._database.place
                raise Denied(f"{place} has no pgstac: run `pypgstac migrate` for it")

    async def put_collection(self, collection: Mapping[str, Any]) -> None:
        """Write a collection, as the STAC API serves it."""
        await self._put("upsert_collection", str(collection["id"]), _stored(collection))

    async def put_items(self, collection: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Write items of a collection, as the STAC API serves them."""
        await self._put("upsert_items", collection, [_stored(each) for each in items])

    async def _put(self, function: str, collection: str, body: object) -> None:
        written = text(f"SELECT {function}(CAST(CAST(:body AS text) AS jsonb))")
        async with self._database.transaction() as connection:
            await connection.execute(_TURN, {"collection": collection})
            await connection.execute(written, {"body": json.dumps(body)})


def _stored(served: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = [
        link
        for link in served["links"]
        if link["rel"] not in _OF_THE_API and not link["rel"].endswith(_QUERYABLES)
    ]
    return {**served, "links": kept}
