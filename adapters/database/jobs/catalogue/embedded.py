"""The catalogue in SQLite: an R*Tree finds boxes, `cql2` decides about filters."""

import asyncio
import base64
import binascii
import json
from collections.abc import Sequence
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.database.jobs.catalogue.checks import (
    area_of,
    check_collection,
    check_items,
    limit_of,
    no_collection,
    sort_of,
)
from adapters.database.jobs.catalogue.conditions import (
    Conditions,
    Decision,
    Place,
    conditions_of,
    ends_of,
    sortable,
)
from adapters.database.jobs.catalogue.sorting import SORTED, sorted_page
from adapters.ports.catalogue import CataloguePage, CatalogueQuery, JsonObject
from domain.errors import RuleViolation
from domain.jobs.stac import split_box, widened
from domain.jobs.stac import validation as stac

_SCHEMA: Final = (
    """
    CREATE TABLE IF NOT EXISTS stac_collections (
      id TEXT NOT NULL PRIMARY KEY,
      content TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS stac_items (
      key INTEGER PRIMARY KEY,
      collection TEXT NOT NULL REFERENCES stac_collections (id),
      id TEXT NOT NULL,
      starts TEXT NOT NULL,
      ends TEXT NOT NULL,
      content TEXT NOT NULL,
      UNIQUE (collection, id)
    )
    """,
    "CREATE INDEX IF NOT EXISTS stac_items_order ON stac_items (starts, collection, id)",
    # Rows 2 key and 2 key + 1: an item across the antimeridian has two boxes.
    "CREATE VIRTUAL TABLE IF NOT EXISTS stac_boxes USING rtree (id, west, east, south, north)",
)
_CHUNK: Final = 500
"""Rows that are read and decided about at once, at the most."""
_UPSERT: Final = text(
    "INSERT INTO stac_items (collection, id, starts, ends, content) "
    "VALUES (:collection, :id, :starts, :ends, :content) "
    "ON CONFLICT (collection, id) DO UPDATE "
    "SET starts = excluded.starts, ends = excluded.ends, content = excluded.content "
    "RETURNING key"
)
_BOX: Final = text("INSERT INTO stac_boxes VALUES (:id, :west, :east, :south, :north)")


class EmbeddedCatalogue:
    """Implements `Catalogue` in tables of docflow's own database, which it makes when needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_ready = False

    async def prepare(self) -> None:
        """Make the tables where there are none."""
        if self._is_ready:
            return
        asked = "SELECT count(*) FROM sqlite_master WHERE name = 'stac_boxes'"
        async with self._database.reading() as connection:
            found = (await connection.execute(text(asked))).scalar()
        if not found:
            async with self._database.transaction() as connection:
                for statement in _SCHEMA:
                    await connection.execute(text(statement))
        self._is_ready = True

    async def put_collection(self, collection: JsonObject) -> None:
        """Create or replace a collection; the extent of one that has items is kept."""
        await check_collection(collection)
        await self.prepare()
        async with self._database.transaction() as connection:
            known = await _collection(connection, collection["id"])
            has_items = text("SELECT EXISTS (SELECT 1 FROM stac_items WHERE collection = :id)")
            kept = (await connection.execute(has_items, {"id": collection["id"]})).scalar()
            if known is not None and kept:
                collection = {**collection, "extent": known["extent"]}
            await _write_collection(connection, collection)

    async def put_items(self, collection: str, items: Sequence[JsonObject]) -> None:
        """Create or replace items, all or none."""
        known = await self.collection(collection)
        if known is None:
            raise no_collection(collection)
        await check_items(known, items)
        async with self._database.transaction() as connection:
            known = await _collection(connection, collection)
            if known is None:
                raise no_collection(collection)
            for item in items:
                await _write_item(connection, item)
            if (wider := widened(known, items)) is not None:
                await _write_collection(connection, wider)

    async def delete_item(self, collection: str, item: str) -> bool:
        """Delete an item; False when there was none."""
        await self.prepare()
        asked = text(
            "DELETE FROM stac_items WHERE collection = :collection AND id = :id RETURNING key"
        )
        async with self._database.transaction() as connection:
            found = await connection.execute(asked, {"collection": collection, "id": item})
            key = found.scalar()
            if key is None:
                return False
            await _delete_boxes(connection, key)
            return True

    async def collections(self) -> Sequence[JsonObject]:
        """All collections, by id."""
        await self.prepare()
        async with self._database.reading() as connection:
            found = await connection.execute(
                text("SELECT content FROM stac_collections ORDER BY id")
            )
            return [json.loads(content) for content in found.scalars()]

    async def collection(self, id: str) -> JsonObject | None:
        """One collection; None: there is none."""
        await self.prepare()
        async with self._database.reading() as connection:
            return await _collection(connection, id)

    async def item(self, collection: str, id: str) -> JsonObject | None:
        """One item; None: there is none."""
        await self.prepare()
        asked = text("SELECT content FROM stac_items WHERE collection = :collection AND id = :id")
        async with self._database.reading() as connection:
            found = await connection.execute(asked, {"collection": collection, "id": id})
            content = found.scalar()
            return None if content is None else json.loads(content)

    async def search(self, query: CatalogueQuery) -> CataloguePage:
        """A page of items in the order that is asked for, with how many are found."""
        limit = limit_of(query)
        area = area_of(query)
        order = sort_of(query)
        conditions = conditions_of(query, area)
        accepts = Decision(query, area)
        if order:
            await self.prepare()
            every = await self._found(conditions, accepts, None, False, SORTED + 1)
            return sorted_page([item for _, item in every], order, limit, query.token)
        backwards, place = (False, None) if query.token is None else _place_of(query.token)
        await self.prepare()
        found = await self._found(conditions, accepts, place, backwards, limit + 1)
        more = len(found) > limit
        page = found[:limit]
        if backwards:
            page.reverse()
        is_all = place is None and not more
        matched = len(page) if is_all else await self._matched(conditions, accepts)
        has_next, has_previous = (True, more) if backwards else (more, place is not None)
        return CataloguePage(
            items=[item for _, item in page],
            next=_token("next", page[-1][0]) if has_next and page else None,
            previous=_token("prev", page[0][0]) if has_previous and page else None,
            matched=matched,
        )

    async def _matched(self, conditions: Conditions, accepts: Decision) -> int | None:
        """How many are found; None where that has to be decided item by item."""
        if accepts.decides:
            return None
        async with self._database.reading() as connection:
            return (await connection.execute(*conditions.count())).scalar_one()

    async def _found(
        self,
        conditions: Conditions,
        accepts: Decision,
        place: Place | None,
        backwards: bool,
        wanted: int,
    ) -> list[tuple[Place, JsonObject]]:
        """The first items behind a place, by chunks, until as many as wanted are accepted."""
        found: list[tuple[Place, JsonObject]] = []
        size = min(wanted, _CHUNK)
        async with self._database.reading() as connection:
            while len(found) < wanted:
                rows = await connection.execute(*conditions.statement(place, backwards, size))
                chunk = [((row.starts, row.collection, row.id), row.content) for row in rows]
                found += await asyncio.to_thread(accepts.those_of, chunk)
                if len(chunk) < size:
                    break
                # The fewer are accepted, the more are read.
                place, size = chunk[-1][0], min(2 * size, _CHUNK)
        return found[:wanted]


async def _collection(connection: AsyncConnection, id: str) -> JsonObject | None:
    asked = text("SELECT content FROM stac_collections WHERE id = :id")
    content = (await connection.execute(asked, {"id": id})).scalar()
    return None if content is None else json.loads(content)


async def _write_collection(connection: AsyncConnection, collection: JsonObject) -> None:
    await connection.execute(
        text(
            "INSERT INTO stac_collections (id, content) VALUES (:id, :content) "
            "ON CONFLICT (id) DO UPDATE SET content = excluded.content"
        ),
        {"id": collection["id"], "content": json.dumps(collection)},
    )


async def _write_item(connection: AsyncConnection, item: JsonObject) -> None:
    begins, ends = (sortable(stac.moment(end)) for end in ends_of(item["properties"]))
    written = await connection.execute(
        _UPSERT,
        {
            "collection": item["collection"],
            "id": item["id"],
            "starts": begins,
            "ends": ends,
            "content": json.dumps(item),
        },
    )
    key = written.scalar_one()
    await _delete_boxes(connection, key)
    bbox = item["bbox"]
    box = bbox if len(bbox) == 4 else [bbox[0], bbox[1], bbox[3], bbox[4]]
    for number, (west, south, east, north) in enumerate(split_box(box)):
        sides = {"west": west, "east": east, "south": south, "north": north}
        await connection.execute(_BOX, {"id": 2 * key + number, **sides})


async def _delete_boxes(connection: AsyncConnection, key: int) -> None:
    await connection.execute(
        text("DELETE FROM stac_boxes WHERE id IN (:one, :other)"),
        {"one": 2 * key, "other": 2 * key + 1},
    )


def _token(direction: str, place: Place) -> str:
    known = json.dumps([direction, *place]).encode()
    return base64.urlsafe_b64encode(known).decode().rstrip("=")


def _place_of(token: str) -> tuple[bool, Place]:
    """Whether a token leads backwards, and from where."""
    try:
        known = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, binascii.Error) as error:
        raise RuleViolation(f"the token {token[:100]!r} is not one of a page") from error
    match known:
        case ["next" | "prev" as direction, str() as starts, str() as collection, str() as id]:
            return direction == "prev", (starts, collection, id)
        case _:
            raise RuleViolation(f"the token {token[:100]!r} is not one of a page")
