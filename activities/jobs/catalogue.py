"""The catalogue in pgstac, and what every catalogue checks before it writes or searches."""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs.ports import CataloguePage, CatalogueQuery, JsonObject
from activities.jobs.stac_items import moment
from activities.jobs.stac_queries import LIMIT, checked_filter, checked_geometry, interval
from adapters.database.engine import Database
from adapters.ports.errors import Denied
from workflows.jobs.datasets import box_geometry, split_box, widened
from workflows.shared.errors import InvalidDocument, RuleViolation

_PROPERTY: Final = re.compile(r"[A-Za-z_][\w:.-]{0,99}")


async def check_items(collection: JsonObject, items: Sequence[JsonObject]) -> None:
    """Check items, in a thread: each takes milliseconds.

    Raises:
        InvalidDocument: One is not valid, or two have the same id.
    """
    ids = [str(item.get("id")) for item in items]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidDocument(f"item {twice!r} is given twice")

    def check() -> None:
        # Loaded with the first item: it takes half a second.
        from activities.jobs.stac_items import check_item

        for item in items:
            check_item(item, collection)

    await asyncio.to_thread(check)


async def check_collection(collection: JsonObject) -> None:
    """Check a collection, in a thread.

    Raises:
        InvalidDocument: It is not valid.
    """

    def check() -> None:
        from activities.jobs import stac_items

        stac_items.check_collection(collection)

    await asyncio.to_thread(check)


def no_collection(id: str) -> InvalidDocument:
    """What is raised for items of a collection that is not there."""
    return InvalidDocument(f"there is no collection {id!r}; put it first")


def area_of(query: CatalogueQuery) -> dict[str, Any] | None:
    """The geometry that items have to meet; None: any.

    Raises:
        RuleViolation: The box or the geometry is not valid, or both are given.
    """
    if query.bbox is not None and query.intersects is not None:
        raise RuleViolation("bbox and intersects exclude each other")
    if query.intersects is not None:
        return checked_geometry(query.intersects)
    return None if query.bbox is None else box_geometry(split_box(query.bbox))


def sort_of(query: CatalogueQuery) -> Sequence[tuple[str, bool]]:
    """The order of items: names without `properties.` before them.

    Raises:
        RuleViolation: A name is none of a property, or stands there twice.
    """
    names = [name.removeprefix("properties.") for name, _ in query.sort]
    for name in names:
        if not _PROPERTY.fullmatch(name):
            raise RuleViolation(f"sortby: {name[:100]!r} is not a property")
        if names.count(name) > 1:
            raise RuleViolation(f"sortby: {name!r} is given twice")
        if name in ("geometry", "bbox", "assets", "links"):
            raise RuleViolation(f"sortby: {name} has no order")
    return [(name, falls) for name, (_, falls) in zip(names, query.sort, strict=True)]


def limit_of(query: CatalogueQuery) -> int:
    """Items of a page.

    Raises:
        RuleViolation: Fewer than one are asked for.
    """
    if query.limit < 1:
        raise RuleViolation("limit: 1 is the least")
    return min(query.limit, LIMIT)


SORTED: Final = 10_000
"""Items that are put in order at most."""


def sorted_page(
    items: Sequence[JsonObject],
    order: Sequence[tuple[str, bool]],
    limit: int,
    token: str | None,
) -> CataloguePage:
    """A page of items, with ties by collection and id.

    A token names the item at which a page ends, so that items that come meanwhile move no other
    from one page to the next.

    Args:
        items: All that are found.
        order: Properties, and whether each falls.
        limit: Items of the page.
        token: Of the page.

    Raises:
        RuleViolation: There are too many, or the token is not one of a page.
    """
    if len(items) > SORTED:
        raise RuleViolation(
            f"sortby: more than {SORTED:,} items are found, too many for this order; narrow the "
            "search"
        )
    ordered = sorted(items, key=lambda item: (item["collection"], item["id"]))
    for name, falls in reversed(order):
        having = [item for item in ordered if _value(item, name) is not None]
        lacking = [item for item in ordered if _value(item, name) is None]
        having.sort(key=lambda item: _comparable(_value(item, name)), reverse=falls)
        # As PostgreSQL does: what lacks a property stands above all values.
        ordered = [*lacking, *having] if falls else [*having, *lacking]
    begin, end = _span(ordered, limit, token)
    page = ordered[begin:end]
    return CataloguePage(
        items=page,
        next=_sorted_token("next", page[-1]) if page and end < len(ordered) else None,
        previous=_sorted_token("prev", page[0]) if page and begin else None,
        matched=len(ordered),
    )


def _span(ordered: Sequence[JsonObject], limit: int, token: str | None) -> tuple[int, int]:
    """Where a page begins and ends among all items."""
    if token is None:
        return 0, limit
    direction, *place = _read(token)
    for at, item in enumerate(ordered):
        if [item["collection"], item["id"]] == place:
            return (at + 1, at + 1 + limit) if direction == "next" else (max(at - limit, 0), at)
    raise RuleViolation(
        "the token names an item that is no longer found: begin with the first page again"
    )


def _value(item: JsonObject, name: str) -> Any:
    if name in ("id", "collection"):
        return item[name]
    properties = item["properties"]
    if name in ("datetime", "start_datetime"):
        # A range is ordered by its first moment, as searches see it.
        return properties.get("start_datetime") or properties.get("datetime")
    if name == "end_datetime":
        return properties.get("end_datetime") or properties.get("datetime")
    return properties.get(name)


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers come before texts, and texts before what has no order of its own."""
    match value:
        case bool():
            return 0, int(value)
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case _:
            return 2, str(value)


def _sorted_token(direction: str, item: JsonObject) -> str:
    known = json.dumps([direction, item["collection"], item["id"]]).encode()
    return base64.urlsafe_b64encode(known).decode().rstrip("=")


def _read(token: str) -> Sequence[str]:
    try:
        known = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, binascii.Error) as error:
        raise RuleViolation(f"the token {token[:100]!r} is not one of a page") from error
    match known:
        case ["next" | "prev" as direction, str() as collection, str() as id]:
            return direction, collection, id
        case _:
            raise RuleViolation(f"the token {token[:100]!r} is not one of a page")


_COLUMNS: Final = frozenset({"id", "collection", "datetime", "start_datetime", "end_datetime"})
"""That pgstac has of every item."""
_REFUSED: Final = ("P0001", "22", "42")
"""States that pgstac's search ends with when it cannot use what is asked."""
_NUL: Final = "\0"
"""PostgreSQL has no text with it, and so no name."""
_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext(:collection))")
"""Concurrent upserts into one collection deadlock without it."""


class PgstacCatalogue:
    """Implements `Catalogue` over the schema `pgstac`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_there = False

    async def put_collection(self, collection: JsonObject) -> None:
        """Create or replace a collection; the extent of one that has items is kept."""
        await check_collection(collection)
        async with self._transaction(collection["id"]) as connection:
            known = await _collection(connection, collection["id"])
            if known is not None and await _has_items(connection, collection["id"]):
                collection = {**collection, "extent": known["extent"]}
            await _call(connection, "upsert_collection(CAST(:body AS jsonb))", collection)

    async def put_items(self, collection: str, items: Sequence[JsonObject]) -> None:
        """Create or replace items, all or none."""
        known = await self.collection(collection)
        if known is None:
            raise no_collection(collection)
        if not items:
            return
        await check_items(known, items)
        async with self._transaction(collection) as connection:
            known = await _collection(connection, collection)
            if known is None:
                raise no_collection(collection)
            await _call(connection, "upsert_items(CAST(:body AS jsonb))", list(items))
            if (wider := widened(known, items)) is not None:
                await _call(connection, "update_collection(CAST(:body AS jsonb))", wider)

    async def delete_item(self, collection: str, item: str) -> bool:
        """Delete an item; False when there was none."""
        async with self._transaction(collection) as connection:
            deleted = await connection.execute(
                text("DELETE FROM items WHERE collection = :collection AND id = :id"),
                {"collection": collection, "id": item},
            )
            return deleted.rowcount > 0

    async def collections(self) -> Sequence[JsonObject]:
        """All collections, by id."""
        async with self._transaction() as connection:
            found = await connection.execute(
                text("SELECT CAST(content AS text) FROM collections ORDER BY id")
            )
            return [json.loads(content) for content in found.scalars()]

    async def collection(self, id: str) -> JsonObject | None:
        """One collection; None: there is none."""
        if _NUL in id:
            return None
        async with self._transaction() as connection:
            return await _collection(connection, id)

    async def item(self, collection: str, id: str) -> JsonObject | None:
        """One item; None: there is none."""
        if _NUL in collection + id:
            return None
        asked = text("SELECT CAST(get_item(:id, :collection) AS text)")
        async with self._transaction() as connection:
            found = await connection.execute(asked, {"id": id, "collection": collection})
            content = found.scalar()
            return None if content is None else _whole(json.loads(content))

    async def search(self, query: CatalogueQuery) -> CataloguePage:
        """A page of items, the newest datetime first."""
        order = sort_of(query)
        asked = _search(query)
        async with self._transaction() as connection:
            if await _has_no_order(connection, [name for name, _ in order]):
                asked = _search(replace(query, sort=(), token=None)) | {"limit": SORTED + 1}
                every = (await _found(connection, asked))["features"]
                return sorted_page(list(map(_whole, every)), order, limit_of(query), query.token)
            answer = await _found(connection, asked)
        links = {link["rel"]: link["href"] for link in answer["links"]}
        return CataloguePage(
            items=[_whole(item) for item in answer["features"]],
            next=_token(links, "next"),
            previous=_token(links, "prev"),
            matched=answer.get("numberMatched"),
        )

    @asynccontextmanager
    async def _transaction(self, collection: str | None = None) -> AsyncGenerator[AsyncConnection]:
        """Also for reading: pgstac's functions need its schema on their path.

        Args:
            collection: Written to by one transaction at a time; None: nothing is written.

        Raises:
            Denied: The database has no pgstac.
        """
        async with self._database.transaction() as connection:
            if not self._is_there:
                await _require(connection)
                self._is_there = True
            await connection.execute(text("SET LOCAL search_path TO pgstac, public"))
            if collection is not None:
                await connection.execute(_LOCK, {"collection": collection})
            yield connection


async def _found(connection: AsyncConnection, asked: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found = await connection.execute(
            text("SELECT CAST(search(CAST(:asked AS jsonb)) AS text)"),
            {"asked": json.dumps(asked)},
        )
    except DBAPIError as error:
        if (refused := _refusal(error)) is not None:
            raise RuleViolation(f"the search is not valid: {refused}") from error
        raise
    return json.loads(found.scalar_one())


async def _has_no_order(connection: AsyncConnection, names: Sequence[str]) -> bool:
    """Whether pgstac would put a property in the order of its text: 100 before 9."""
    asked = text(
        "SELECT name FROM queryables WHERE name = ANY(:names) AND (property_wrapper IS NOT NULL "
        "OR definition ->> 'type' IN ('number', 'integer') "
        "OR definition ->> 'format' = 'date-time')"
    )
    others = set(names) - _COLUMNS
    if not others:
        return False
    return bool(others - set((await connection.execute(asked, {"names": list(others)})).scalars()))


async def _require(connection: AsyncConnection) -> None:
    asked = text("SELECT to_regclass('pgstac.items') IS NOT NULL")
    if not (await connection.execute(asked)).scalar():
        raise Denied("the database has no catalogue (pgstac): run `docflow setup`")


async def _collection(connection: AsyncConnection, id: str) -> JsonObject | None:
    asked = text("SELECT CAST(content AS text) FROM collections WHERE id = :id")
    content = (await connection.execute(asked, {"id": id})).scalar()
    return None if content is None else json.loads(content)


async def _has_items(connection: AsyncConnection, collection: str) -> bool:
    asked = text("SELECT EXISTS (SELECT FROM items WHERE collection = :id)")
    return bool((await connection.execute(asked, {"id": collection})).scalar())


async def _call(connection: AsyncConnection, function: str, body: object) -> None:
    await connection.execute(text(f"SELECT {function}"), {"body": json.dumps(body)})


def _search(query: CatalogueQuery) -> dict[str, Any]:
    """The body of pgstac's search, which records nothing of it."""
    asked: dict[str, Any] = {
        "limit": limit_of(query),
        "conf": {"readonly": "true", "context": "on"},
    }
    if query.collections is not None:
        asked["collections"] = list(query.collections)
    if query.ids is not None:
        asked["ids"] = list(query.ids)
    if (area := area_of(query)) is not None:
        asked["intersects"] = area
    if query.datetime is not None:
        ends = (".." if end is None else moment(end) for end in interval(query.datetime))
        asked["datetime"] = "/".join(ends)
    if query.filter is not None:
        asked |= {"filter": checked_filter(query.filter), "filter-lang": "cql2-json"}
    asked["sortby"] = _whole_order(sort_of(query))
    if query.token is not None:
        asked["token"] = query.token
    return asked


def _whole_order(order: Sequence[tuple[str, bool]]) -> Sequence[Mapping[str, str]]:
    """An order in which no two items tie, as pages need it.

    By itself pgstac adds the id, which several collections may have, and releases before 0.10 look
    for the next page in another direction than they have sorted in.
    """
    falls = not order
    wanted = list(order) or [("datetime", True)]
    if "collection" not in {name for name, _ in wanted}:
        wanted.append(("collection", falls))
    # Its tokens tell items apart by the fields up to `id`, so that this one comes last.
    fields = [("properties.id" if name == "id" else name, falls) for name, falls in wanted]
    directions = {True: "desc", False: "asc"}
    return [
        {"field": name, "direction": directions[down]} for name, down in (*fields, ("id", falls))
    ]


def _whole(item: dict[str, Any]) -> JsonObject:
    """An item as it was put: pgstac leaves out the null that an item over a range has."""
    item["properties"].setdefault("datetime", None)
    return item


def _token(links: Mapping[str, str], rel: str) -> str | None:
    href = links.get(rel)
    return None if href is None else parse_qs(urlsplit(href).query)["token"][0]


def _refusal(error: DBAPIError) -> str | None:
    """What pgstac says is wrong with a search; None: another failure."""
    state = getattr(error.orig, "sqlstate", None)
    if state is None or not str(state).startswith(_REFUSED) or state == "42501":
        return None
    return str(getattr(error.orig, "__cause__", None) or error.orig).splitlines()[0][:500]
