"""The catalogue: STAC collections and items as JSONB, in tables of docflow's own.

PostgreSQL narrows a search by columns, boxes and plain comparisons; `shapely` and `cql2` decide
about what is left. Pages are read by keyset, so that items that come meanwhile move no other.
"""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, cast

import cql2
import shapely
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs import stac_items
from activities.jobs.ports import CataloguePage, CatalogueQuery, JsonObject
from activities.jobs.stac_items import parsed_moment
from activities.jobs.stac_queries import (
    LIMIT,
    checked_filter,
    checked_geometry,
    interval,
    is_literal,
    utc,
)
from adapters.database.engine import Database
from adapters.files.footprints import read
from workflows.jobs.datasets import box_geometry, split_box, widened
from workflows.shared.errors import InvalidDocument, RuleViolation

_PROPERTY: Final = re.compile(r"[A-Za-z_][\w:.-]{0,99}")
_UNORDERED: Final = frozenset({"geometry", "bbox", "assets", "links"})
_PARTS: Final = 20
"""Parts of a geometry that are looked for one by one."""
_CHUNK: Final = 500
"""Rows that are read and decided about at once, at the most."""
_EXACT: Final = 2**53
"""Up to here whole numbers are the same to PostgreSQL and to `cql2`."""
_NUL: Final = "\0"
"""PostgreSQL has no text with it, and so no id."""
_UNUSABLE: Final = "22"
"""Beginning of the states that a token with values of another type ends with."""
ORGANISATION: Final = "docflow:organisation"
"""Property of an item: the organisation that it belongs to."""
_PUT_COLLECTION: Final = text("""
INSERT INTO stac_collections AS known (id, organisation_id, content)
VALUES (:id, :owner, CAST(CAST(:content AS text) AS jsonb))
ON CONFLICT (id) DO UPDATE SET content = CASE
  WHEN EXISTS (SELECT FROM stac_items WHERE collection = known.id)
  THEN excluded.content || jsonb_build_object('extent', known.content -> 'extent')
  ELSE excluded.content
END
WHERE known.organisation_id IS NOT DISTINCT FROM excluded.organisation_id
""")
_WIDEN: Final = text(
    "UPDATE stac_collections SET content = CAST(CAST(:content AS text) AS jsonb) WHERE id = :id"
)
_PUT_ITEM: Final = text("""
INSERT INTO stac_items AS known (collection, id, starts, ends, area, organisation_id, content)
VALUES (:collection, :id, :starts, :ends, CAST(CAST(:area AS text) AS box), :owner,
  CAST(CAST(:content AS text) AS jsonb))
ON CONFLICT (collection, id) DO UPDATE SET
  starts = excluded.starts, ends = excluded.ends, area = excluded.area, content = excluded.content
WHERE known.organisation_id IS NOT DISTINCT FROM excluded.organisation_id
""")
_FOREIGN: Final = text("""
SELECT id FROM stac_items WHERE collection = :collection AND id = ANY(CAST(:ids AS text[]))
AND organisation_id IS DISTINCT FROM :owner ORDER BY id LIMIT 1
""")

_Rows = Sequence[tuple[str, Sequence[str]]]
"""Items as text, each with its place in the order."""


class Catalogue:
    """STAC collections and items, searchable once written.

    What belongs to no organisation is for everybody. Every method raises `Unavailable` when the
    database does not answer.

    Args:
        database: Where they are.
        readers: Organisations whose collections and items are there as well; None: all.
        owner: Organisation that what is written belongs to; None: to none.
    """

    def __init__(
        self, database: Database, readers: Collection[int] | None = None, owner: int | None = None
    ) -> None:
        self._database = database
        self._readers = None if readers is None else sorted(readers)
        self._owner = owner

    def seen_by(self, organisations: Collection[int]) -> "Catalogue":
        """The catalogue as members of some organisations see it."""
        return Catalogue(self._database, organisations)

    def acting_for(self, organisation_id: int | None) -> "Catalogue":
        """The catalogue as a job of an organisation sees and writes it; None: of none."""
        readers = () if organisation_id is None else (organisation_id,)
        return Catalogue(self._database, readers, organisation_id)

    async def put_collection(self, collection: JsonObject) -> None:
        """Create or replace a collection; the extent of one that has items is kept.

        Raises:
            InvalidDocument: It is not a valid STAC collection, or its id is that of another owner.
        """
        await asyncio.to_thread(stac_items.check_collection, collection)
        id, content = collection["id"], json.dumps(collection)
        written = {"id": id, "content": content, "owner": self._owner}
        async with self._database.transaction() as connection:
            if not (await connection.execute(_PUT_COLLECTION, written)).rowcount:
                raise InvalidDocument(f"the collection {id!r} has another owner; name another one")

    async def put_items(self, collection: str, items: Sequence[JsonObject]) -> None:
        """Create or replace items, all or none; another datetime leaves one item of an id.

        Raises:
            InvalidDocument: One is not valid or has the id of another owner's, two have the same
                id, or there is no such collection.
        """
        known = await self.collection(collection)
        if known is None:
            raise _no_collection(collection)
        if not items:
            return
        items = [_owned(item, self._owner) for item in items]
        # In a thread: each takes milliseconds.
        await asyncio.to_thread(_check_items, known, items)
        rows = [{**_row(item), "owner": self._owner} for item in items]
        ids = [item["id"] for item in items]
        asked = {"collection": collection, "ids": ids, "owner": self._owner}
        async with self._database.transaction() as connection:
            # Writers of one collection take turns, so that its extent holds the items of all.
            known, owner = await self._known(connection, collection, "FOR UPDATE")
            if known is None:
                raise _no_collection(collection)
            await connection.execute(_PUT_ITEM, rows)
            foreign = (await connection.execute(_FOREIGN, asked)).scalar()
            if foreign is not None:
                raise InvalidDocument(
                    f"the item {foreign!r} of {collection!r} has another owner; give another id, "
                    "or name another collection"
                )
            # The extent of a shared collection would say where items of an organisation are.
            wider = widened(known, items) if owner == self._owner else None
            if wider is not None:
                await connection.execute(_WIDEN, {"id": collection, "content": json.dumps(wider)})

    async def delete_item(self, collection: str, item: str) -> bool:
        """Delete an item of the owner, or any where all may be read; False: there was none."""
        if _NUL in collection + item:
            return False
        named: dict[str, Any] = {"collection": collection, "id": item}
        mine = "true"
        if self._readers is not None:
            mine, named["owner"] = "organisation_id IS NOT DISTINCT FROM :owner", self._owner
        asked = text(
            f"DELETE FROM stac_items WHERE collection = :collection AND id = :id AND {mine}"  # noqa: S608 - our own
        )
        async with self._database.transaction() as connection:
            return (await connection.execute(asked, named)).rowcount > 0

    async def collections(self) -> Sequence[JsonObject]:
        """All collections, by id."""
        where = self._seen()
        asked = text(
            f"SELECT CAST(content AS text) FROM stac_collections WHERE {where.text} ORDER BY id"  # noqa: S608 - our own
        )
        async with self._database.reading() as connection:
            found = await connection.execute(asked, where.values)
            return [_loaded(each) for each in found.scalars()]

    async def collection(self, id: str) -> JsonObject | None:
        """One collection; None if there is no such collection."""
        async with self._database.reading() as connection:
            return None if _NUL in id else (await self._known(connection, id))[0]

    async def item(self, collection: str, id: str) -> JsonObject | None:
        """One item; None if there is no such item."""
        if _NUL in collection + id:
            return None
        where = self._seen()
        asked = text(
            "SELECT CAST(content AS text) FROM stac_items WHERE collection = :collection"  # noqa: S608 - our own
            f" AND id = :id AND {where.text}"
        )
        values = {**where.values, "collection": collection, "id": id}
        async with self._database.reading() as connection:
            content = (await connection.execute(asked, values)).scalar()
            return None if content is None else _loaded(content)

    async def search(self, query: CatalogueQuery) -> CataloguePage:
        """A page of items in the order that is asked for.

        Returns:
            The page, and how many are found: None beyond the first page of a search by place or
            filter, which would have to look at every item.

        Raises:
            RuleViolation: The filter, the order or the token is not valid.
        """
        if query.limit < 1:
            raise RuleViolation("limit: 1 is the least")
        limit = min(query.limit, LIMIT)
        area = _area(query)
        filter = None if query.filter is None else checked_filter(query.filter)
        order = _Order(_sort(query))
        where = _conditions(self._seen(), query, area, filter)
        decision = _Decision(area, filter)
        backwards, place = (False, None) if query.token is None else order.place(query.token)
        try:
            found = await self._found(where, order, decision, place, backwards, limit + 1)
        except DBAPIError as error:
            if str(getattr(error.orig, "sqlstate", "")).startswith(_UNUSABLE):
                raise RuleViolation(
                    "the search is not valid: a token or an id has another form"
                ) from error
            raise
        more = len(found) > limit
        page = found[:limit]
        if backwards:
            page.reverse()
        matched = len(page) if place is None and not more else None
        if matched is None and not decision.decides:
            matched = await self._count(where)
        has_next, has_previous = (True, more) if backwards else (more, place is not None)
        return CataloguePage(
            items=[item for item, _ in page],
            next=_token("next", page[-1][1]) if has_next and page else None,
            previous=_token("prev", page[0][1]) if has_previous and page else None,
            matched=matched,
        )

    def _seen(self) -> "_Where":
        """Rows that may be read."""
        where = _Where([], {})
        if self._readers is not None:
            own = f"organisation_id = ANY(CAST({where.value(self._readers)} AS bigint[]))"
            where.clauses.append(f"(organisation_id IS NULL OR {own})")
        return where

    async def _known(
        self, connection: AsyncConnection, id: str, how: str = ""
    ) -> tuple[JsonObject | None, int | None]:
        """A collection that may be read, and its owner."""
        where = self._seen()
        asked = text(
            "SELECT CAST(content AS text) AS content, organisation_id FROM stac_collections"  # noqa: S608 - our own
            f" WHERE id = :id AND {where.text} {how}"
        )
        row = (await connection.execute(asked, {**where.values, "id": id})).one_or_none()
        return (None, None) if row is None else (_loaded(row.content), row.organisation_id)

    async def _count(self, where: "_Where") -> int:
        asked = text(f"SELECT count(*) FROM stac_items WHERE {where.text}")  # noqa: S608 - our own
        async with self._database.reading() as connection:
            return (await connection.execute(asked, where.values)).scalar_one()

    async def _found(
        self,
        where: "_Where",
        order: "_Order",
        decision: "_Decision",
        place: Sequence[str] | None,
        backwards: bool,
        wanted: int,
    ) -> list[tuple[JsonObject, Sequence[str]]]:
        """The first items behind a place, by chunks, until as many as wanted are accepted."""
        found: list[tuple[JsonObject, Sequence[str]]] = []
        size = min(wanted, _CHUNK)
        async with self._database.reading() as connection:
            while len(found) < wanted:
                asked, values = order.statement(where, place, backwards, size)
                chunk = [
                    (content, cast(Sequence[str], at))
                    for content, *at in await connection.execute(text(asked), values)
                ]
                found += await asyncio.to_thread(decision.those_of, chunk)
                if len(chunk) < size:
                    break
                # The fewer are accepted, the more are read.
                place, size = chunk[-1][1], min(2 * size, _CHUNK)
        return found[:wanted]


def _loaded(content: str) -> Any:
    """JSON as it was put: PostgreSQL writes 1e300, and what rasters have for no data, in digits."""
    return json.loads(content, parse_int=_number)


def _number(digits: str) -> int | float:
    if len(digits) < 20:
        return int(digits)
    short, exact = float(digits), int(digits)
    return short if isfinite(short) and Decimal(repr(short)) == exact else exact


def _no_collection(id: str) -> InvalidDocument:
    return InvalidDocument(f"there is no collection {id!r}; put it first")


def _owned(item: JsonObject, owner: int | None) -> JsonObject:
    """An item that says whose it is."""
    properties = {key: value for key, value in item["properties"].items() if key != ORGANISATION}
    if owner is not None:
        properties[ORGANISATION] = owner
    return {**item, "properties": properties}


def _check_items(collection: JsonObject, items: Sequence[JsonObject]) -> None:
    ids = [str(item.get("id")) for item in items]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidDocument(f"item {twice!r} is given twice")
    for item in items:
        stac_items.check_item(item, collection)


def _row(item: JsonObject) -> dict[str, Any]:
    begins, ends = map(parsed_moment, _ends(item["properties"]))
    bbox = item["bbox"]
    west, south, east, north = bbox if len(bbox) == 4 else [*bbox[:2], *bbox[3:5]]
    return {
        "collection": item["collection"],
        "id": item["id"],
        "starts": begins,
        "ends": ends,
        # Across the antimeridian it ends beyond 180 degrees, where searches look too.
        "area": _box((west, south, east if west <= east else east + 360, north)),
        "content": json.dumps(item),
    }


def _ends(properties: Mapping[str, Any]) -> tuple[str, str]:
    """First and last moment of an item."""
    moment = properties["datetime"]
    begins, ends = properties.get("start_datetime"), properties.get("end_datetime")
    return (begins, ends) if begins and ends else (moment, moment)


def _box(sides: Sequence[float]) -> str:
    west, south, east, north = sides
    return f"({west!r},{south!r}),({east!r},{north!r})"


def _area(query: CatalogueQuery) -> dict[str, Any] | None:
    """The geometry that items have to meet; None: any."""
    if query.bbox is not None and query.intersects is not None:
        raise RuleViolation("bbox and intersects exclude each other")
    if query.intersects is not None:
        return checked_geometry(query.intersects)
    return None if query.bbox is None else box_geometry(split_box(query.bbox))


def _sort(query: CatalogueQuery) -> Sequence[tuple[str, bool]]:
    """The order of items: names without `properties.` before them."""
    names = [name.removeprefix("properties.") for name, _ in query.sort]
    for name in names:
        if not _PROPERTY.fullmatch(name):
            raise RuleViolation(f"sortby: {name[:100]!r} is not a property")
        if names.count(name) > 1:
            raise RuleViolation(f"sortby: {name!r} is given twice")
        if name in _UNORDERED:
            raise RuleViolation(f"sortby: {name} has no order")
    return [(name, falls) for name, (_, falls) in zip(names, query.sort, strict=True)]


@dataclass
class _Where:
    """What PostgreSQL decides: rows that may be found."""

    clauses: list[str]
    values: dict[str, Any]

    @property
    def text(self) -> str:
        return " AND ".join(self.clauses) or "true"

    def value(self, value: Any) -> str:
        """The name of a further value."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def near(self, area: Mapping[str, Any]) -> None:
        """Rows whose box meets one of a geometry's, as it is or once around the Earth."""
        shape = read(area)
        parts = getattr(shape, "geoms", [shape])
        bounds = [part.bounds for part in parts] if len(parts) <= _PARTS else [shape.bounds]
        boxes = [
            _box((west + turn, south, east + turn, north))
            for west, south, east, north in bounds
            for turn in (0, 360)
        ]
        met = [f"area && CAST(CAST({self.value(box)} AS text) AS box)" for box in boxes]
        self.clauses.append(f"({' OR '.join(met)})")


def _conditions(
    where: _Where,
    query: CatalogueQuery,
    area: Mapping[str, Any] | None,
    filter: JsonObject | None,
) -> _Where:
    for column, known in (("collection", query.collections), ("id", query.ids)):
        if known is not None:
            where.clauses.append(f"{column} = ANY(CAST({where.value(list(known))} AS text[]))")
    if query.datetime is not None:
        first, last = interval(query.datetime)
        if first is not None:
            where.clauses.append(f"ends >= {where.value(first)}")
        if last is not None:
            where.clauses.append(f"starts <= {where.value(last)}")
    if area is not None:
        where.near(area)
    if filter is not None:
        _narrow(where, filter)
    return where


_MOMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {"datetime": "starts", "start_datetime": "starts", "end_datetime": "ends"}
)
_COMPARISONS: Final = ("=", "<", "<=", ">", ">=")
_MEETING: Final = frozenset(
    f"s_{name}"
    for name in ("contains", "crosses", "equals", "intersects", "overlaps", "touches", "within")
)


def _narrow(where: _Where, filter: Any) -> None:
    """Leave out rows of which plain comparisons in a filter say that they are not found.

    What is left is decided by `cql2`: values of other types than the filter's stay in.
    """
    match filter:
        case {"op": "and", "args": [*parts]}:
            for part in parts:
                _narrow(where, part)
        case {"op": operator, "args": [{"property": "geometry"}, {"type": str()} as area]} if (
            operator in _MEETING
        ):
            where.near(cast(JsonObject, area))
        case {"op": operator, "args": [{"property": str(name)}, value]} if operator in _COMPARISONS:
            name = name.removeprefix("properties.")
            if (column := _MOMENTS.get(name)) is not None:
                if is_literal(value) and "timestamp" in value:
                    moment = where.value(utc(value["timestamp"]))
                    where.clauses.append(f"{column} {operator} {moment}")
                return
            kind = _kind(operator, value)
            if kind is not None and name not in ("id", "collection"):
                stored = f"content -> 'properties' -> CAST({where.value(name)} AS text)"
                other = f"CAST(CAST({where.value(json.dumps(value))} AS text) AS jsonb)"
                where.clauses.append(
                    f"(jsonb_typeof({stored}) <> '{kind}' OR {stored} {operator} {other})"
                )
        case _:
            pass


def _kind(operator: str, value: Any) -> str | None:
    """The type of values that PostgreSQL compares with one as `cql2` does; None: of none."""
    match value:
        case bool():
            return None
        case int() | float() if abs(value) < _EXACT:
            return "number"
        case str() if operator == "=" and _NUL not in value:
            return "string"
        case _:
            return None


class _Decision:
    """What is left to decide about rows: the exact geometry, and the filter."""

    def __init__(self, area: Mapping[str, Any] | None, filter: JsonObject | None) -> None:
        self._area = None if area is None else read(area)
        self._filter = None if filter is None else cql2.parse_json(json.dumps(filter))

    @property
    def decides(self) -> bool:
        """Whether anything is left to decide."""
        return self._area is not None or self._filter is not None

    def those_of(self, rows: _Rows) -> list[tuple[JsonObject, Sequence[str]]]:
        """The rows that are found."""
        items = [(_loaded(content), place) for content, place in rows]
        return [(item, place) for item, place in items if self._accepts(item)]

    def _accepts(self, item: JsonObject) -> bool:
        if self._area is not None and not shapely.intersects(read(item["geometry"]), self._area):
            return False
        return self._filter is None or _matches(self._filter, item)


def _matches(expression: Any, item: JsonObject) -> bool:
    """Whether a filter is true; one about a property that the item has not is not."""
    begins, ends = _ends(item["properties"])
    # Filters see a range as it is searched: by its two ends.
    seen = {"datetime": begins, "start_datetime": begins, "end_datetime": ends}
    try:
        return expression.matches({**item, "properties": {**item["properties"], **seen}})
    except Exception as error:
        # The library has no type of its own for this.
        if "reduce" in str(error):
            return False
        raise RuleViolation(f"filter: {' '.join(str(error).split())[:500]}") from error


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of the order, never null."""

    sql: str
    type: str
    falls: bool


class _Order:
    """An order in which no two items tie, and pages within it.

    Args:
        sort: Names and whether each falls; none: the newest first.
    """

    def __init__(self, sort: Sequence[tuple[str, bool]]) -> None:
        wanted = list(sort) or [("datetime", True)]
        named = {name for name, _ in wanted}
        wanted += [(name, not sort) for name in ("collection", "id") if name not in named]
        self._names: dict[str, str] = {}
        self._terms = [term for name, falls in wanted for term in self._of(name, falls)]

    def _of(self, name: str, falls: bool) -> Iterator[_Term]:
        if name in ("id", "collection"):
            yield _Term(name, "text", falls)
        elif (column := _MOMENTS.get(name)) is not None:
            yield _Term(column, "timestamptz", falls)
        else:
            # What lacks a property stands above all values, as PostgreSQL does it with nulls.
            bound = f"s{len(self._names)}"
            self._names[bound] = name
            stored = f"content -> 'properties' -> CAST(:{bound} AS text)"
            yield _Term(f"(coalesce({stored}, 'null') = 'null')", "boolean", falls)
            if name in ("created", "updated"):
                moment = f"CAST(({stored}) #>> '{{}}' AS timestamptz)"
                yield _Term(f"coalesce({moment}, '-infinity')", "timestamptz", falls)
            else:
                yield _Term(f"coalesce({stored}, 'null')", "jsonb", falls)

    def statement(
        self, where: _Where, place: Sequence[str] | None, backwards: bool, size: int
    ) -> tuple[str, dict[str, Any]]:
        """The next rows behind a place, as many as `size`, and its values."""
        values = where.values | self._names
        clauses = [where.text]
        if place is not None:
            values |= {f"p{at}": each for at, each in enumerate(place)}
            clauses.append(self._behind(backwards))
        shown = ", ".join(f"CAST({term.sql} AS text)" for term in self._terms)
        by = ", ".join(
            f"{term.sql} {'DESC' if term.falls != backwards else 'ASC'}" for term in self._terms
        )
        return (
            f"SELECT CAST(content AS text), {shown} FROM stac_items "  # noqa: S608 - our own
            f"WHERE {' AND '.join(clauses)} ORDER BY {by} LIMIT {size}",
            values,
        )

    def _behind(self, backwards: bool) -> str:
        """Terms of one direction are compared as a row, which an index can answer."""
        condition = ""
        groups = groupby(enumerate(self._terms), lambda each: each[1].falls)
        for falls, group in reversed([(falls, list(group)) for falls, group in groups]):
            row = ", ".join(term.sql for _, term in group)
            place = ", ".join(f"CAST(CAST(:p{at} AS text) AS {term.type})" for at, term in group)
            sign = "<" if falls != backwards else ">"
            later = f"({row}) {sign} ({place})"
            condition = (
                f"({later} OR (({row}) = ({place}) AND {condition}))" if condition else later
            )
        return condition

    def place(self, token: str) -> tuple[bool, Sequence[str]]:
        """Whether a token leads backwards, and from where."""
        refused = RuleViolation(f"the token {token[:100]!r} is not one of a page")
        try:
            known = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except (ValueError, binascii.Error) as error:
            raise refused from error
        match known:
            case ["next" | "prev" as direction, *place] if len(place) == len(self._terms) and all(
                isinstance(each, str) for each in place
            ):
                return direction == "prev", cast(list[str], place)
            case _:
                raise refused


def _token(direction: str, place: Sequence[str]) -> str:
    known = json.dumps([direction, *place]).encode()
    return base64.urlsafe_b64encode(known).decode().rstrip("=")
