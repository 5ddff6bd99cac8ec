"""The catalogue in pgstac: its functions write and search."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
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
from adapters.database.jobs.catalogue.sorting import SORTED, sorted_page
from adapters.ports import Denied
from adapters.ports.catalogue import CataloguePage, CatalogueQuery, JsonObject
from domain.errors import RuleViolation
from domain.jobs.stac import widened
from domain.jobs.stac.items import moment
from domain.jobs.stac.queries import checked_filter, interval

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
