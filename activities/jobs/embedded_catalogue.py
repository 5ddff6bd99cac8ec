"""The catalogue in SQLite: an R*Tree finds boxes, `cql2` decides about filters."""

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import cql2
import shapely
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs import stac_items
from activities.jobs.catalogue import (
    SORTED,
    PgstacCatalogue,
    area_of,
    check_collection,
    check_items,
    limit_of,
    no_collection,
    sort_of,
    sorted_page,
)
from activities.jobs.ports import Catalogue, CataloguePage, CatalogueQuery, JsonObject
from activities.jobs.stac_queries import checked_filter, interval
from adapters.database.engine import Database
from adapters.files.footprints import read
from workflows.jobs.datasets import split_box, widened
from workflows.shared.errors import RuleViolation

_IN_BOXES: Final = """
key IN (
  SELECT found.id / 2 FROM stac_boxes AS found, json_each(:boxes) AS asked
  WHERE found.east >= asked.value ->> 'west' AND found.west <= asked.value ->> 'east'
  AND found.north >= asked.value ->> 'south' AND found.south <= asked.value ->> 'north'
)
"""
_SIDES: Final = ("west", "south", "east", "north")
_PARTS: Final = 20
"""Parts of a geometry that are looked for one by one."""


Place = tuple[str, str, str]
"""Where an item stands in the order of results: its first moment, collection and id."""


@dataclass(frozen=True)
class Conditions:
    """What SQLite decides: rows that may be found."""

    clauses: Sequence[str]
    values: Mapping[str, Any]

    def count(self) -> tuple[Any, dict[str, Any]]:
        """How many rows there are."""
        where = " AND ".join(self.clauses) or "1"
        return text(f"SELECT count(*) FROM stac_items WHERE {where}"), dict(self.values)  # noqa: S608

    def statement(
        self, place: Place | None, backwards: bool, size: int
    ) -> tuple[Any, dict[str, Any]]:
        """The next rows behind a place, as many as `size`."""
        clauses, values = list(self.clauses), dict(self.values)
        order = "ASC" if backwards else "DESC"
        if place is not None:
            sign = ">" if backwards else "<"
            clauses.append(f"(starts, collection, id) {sign} (:starts, :collection, :id)")
            values |= dict(zip(("starts", "collection", "id"), place, strict=True))
        where = " AND ".join(clauses) or "1"
        return (
            text(
                f"SELECT starts, collection, id, content FROM stac_items WHERE {where} "  # noqa: S608
                f"ORDER BY starts {order}, collection {order}, id {order} LIMIT {size}"
            ),
            values,
        )


class Decision:
    """What is left to decide about rows: the exact geometry, and the filter."""

    def __init__(self, query: CatalogueQuery, area: Mapping[str, Any] | None) -> None:
        self._area = None if area is None else read(area)
        self._filter = None
        if query.filter is not None:
            self._filter = cql2.parse_json(json.dumps(checked_filter(query.filter)))

    @property
    def decides(self) -> bool:
        """Whether anything is left to decide."""
        return self._area is not None or self._filter is not None

    def those_of(self, rows: Sequence[tuple[Any, str]]) -> list[tuple[Any, JsonObject]]:
        """The rows that are found, with their items."""
        items = [(place, json.loads(content)) for place, content in rows]
        return [(place, item) for place, item in items if self._accepts(item)]

    def _accepts(self, item: JsonObject) -> bool:
        if self._area is not None:
            shape = read(item["geometry"])
            if not shapely.intersects(shape, self._area):
                return False
        return self._filter is None or _matches(self._filter, item)


def _matches(expression: Any, item: JsonObject) -> bool:
    """Whether a filter is true; one about a property that the item has not is not."""
    begins, ends = ends_of(item["properties"])
    properties = {
        **item["properties"],
        # Filters see a range as it is searched: by its two ends.
        "datetime": begins,
        "start_datetime": begins,
        "end_datetime": ends,
    }
    try:
        return expression.matches({**item, "properties": properties})
    except Exception as error:
        # The library has no type of its own for this.
        if "reduce" in str(error):
            return False
        raise RuleViolation(f"filter: {' '.join(str(error).split())[:500]}") from error


def conditions_of(query: CatalogueQuery, area: Mapping[str, Any] | None) -> Conditions:
    """The part of a query that SQL decides; `area` is the geometry it is about, if any."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    if query.collections is not None:
        clauses.append("collection IN (SELECT value FROM json_each(:collections))")
        values["collections"] = json.dumps(list(query.collections))
    if query.ids is not None:
        clauses.append("id IN (SELECT value FROM json_each(:ids))")
        values["ids"] = json.dumps(list(query.ids))
    if query.datetime is not None:
        first, last = interval(query.datetime)
        if first is not None:
            clauses.append("ends >= :first")
            values["first"] = sortable(first)
        if last is not None:
            clauses.append("starts <= :last")
            values["last"] = sortable(last)
    if area is not None:
        boxes = [dict(zip(_SIDES, box, strict=True)) for box in _boxes_of(area)]
        clauses.append(_IN_BOXES)
        values["boxes"] = json.dumps(boxes)
    return Conditions(clauses, values)


def _boxes_of(area: Mapping[str, Any]) -> Sequence[tuple[float, float, float, float]]:
    """Around the parts of a geometry, which may lie on both sides of the antimeridian."""
    shape = read(area)
    parts = getattr(shape, "geoms", [shape])
    return [part.bounds for part in parts] if len(parts) <= _PARTS else [shape.bounds]


def ends_of(properties: Mapping[str, Any]) -> tuple[str, str]:
    """First and last moment of an item."""
    moment = properties["datetime"]
    begins, ends = properties.get("start_datetime"), properties.get("end_datetime")
    return (begins, ends) if begins and ends else (moment, moment)


def sortable(value: datetime) -> str:
    """A moment as text that sorts by time."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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
    begins, ends = (sortable(stac_items.parsed_moment(end)) for end in ends_of(item["properties"]))
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


def open_catalogue(database: Database) -> Catalogue:
    """The catalogue that a database has; it holds no connection while it is not used."""
    if database.dialect == "postgresql":
        return PgstacCatalogue(database)
    return EmbeddedCatalogue(database)
