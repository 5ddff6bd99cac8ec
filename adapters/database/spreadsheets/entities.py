"""Rows that cells refer to: countries, categories, types of membership, choices of lists."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Select, Table, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.people import (
    countries,
    custom_list_items,
    custom_lists,
    event_categories,
    events,
    membership_periods,
    membership_types,
    races,
)
from adapters.database.spreadsheets.locked_import import acquire_organisation_lock
from domain.spreadsheets.records import CustomList, Entity, EntityScope

MOST: Final = 100_000
_LIST: Final = "custom_list/"


@dataclass(frozen=True)
class _Kind:
    """Where rows of one kind are, and to whom they belong.

    Attributes:
        table: Has `id`, `name` and perhaps `spellings`.
        owner: Column that names the owner of a row; None: shared by all.
        owned: Ids that the column may have, for an organisation.
    """

    table: Table
    owner: Column[Any] | None = None
    owned: Select[Any] | None = None


def _kind(scope: EntityScope) -> _Kind:
    if scope.kind == "countries":
        return _Kind(countries)
    if scope.kind == "event_categories":
        owned = select(events.c.id).where(
            events.c.organisation_id == scope.organisation_id, events.c.id == scope.context_id
        )
        return _Kind(event_categories, event_categories.c.event_id, owned)
    if scope.kind == "race_categories":
        owned = (
            select(events.c.id)
            .join(races, races.c.event_id == events.c.id)
            .where(
                events.c.organisation_id == scope.organisation_id, races.c.id == scope.context_id
            )
        )
        return _Kind(event_categories, event_categories.c.event_id, owned)
    if scope.kind == "membership_types":
        owner = membership_types.c.organisation_id
        owned = select(literal(scope.organisation_id, BigInteger))
        return _Kind(membership_types, owner, owned)
    if scope.kind.startswith(_LIST) and scope.kind[len(_LIST) :].isdecimal():
        owned = select(custom_lists.c.id).where(
            custom_lists.c.organisation_id == scope.organisation_id,
            custom_lists.c.id == int(scope.kind[len(_LIST) :]),
        )
        return _Kind(custom_list_items, custom_list_items.c.custom_list_id, owned)
    raise ValueError(f"cells cannot refer to rows of kind {scope.kind!r}")


async def read_entities(connection: AsyncConnection, scope: EntityScope) -> Sequence[Entity]:
    """Everything that cells may refer to, by name."""
    kind = _kind(scope)
    query = _selected(kind).order_by(kind.table.c.name, kind.table.c.id).limit(MOST)
    return [_entity(row) for row in await connection.execute(query)]


async def create_entity(
    connection: AsyncConnection, bulk: BulkEngine, scope: EntityScope, name: str
) -> Entity:
    """Find or make a candidate of this name.

    Raises:
        ValueError: Rows of this kind cannot be added, or what they belong to is missing.
    """
    kind = _kind(scope)
    if kind.owner is None or kind.owned is None:
        raise ValueError(f"rows of kind {scope.kind!r} cannot be added")
    name = " ".join(clean(name).split())
    if not name:
        raise ValueError("a row to choose from needs a name")
    await acquire_organisation_lock(connection, bulk, scope.organisation_id)
    rows = (await connection.execute(_selected(kind).order_by(kind.table.c.id))).all()
    # SQLite knows the case of ASCII letters only.
    same = [row for row in rows if row.name.casefold() == name.casefold()]
    if same:
        return _entity(next((row for row in same if row.name == name), same[0]))
    owner = (await connection.execute(kind.owned)).scalar_one_or_none()
    if owner is None:
        raise ValueError(f"what {scope.kind!r} belongs to is not there")
    made = await connection.execute(
        kind.table.insert()
        .values({kind.owner.name: owner, "name": name})
        .returning(kind.table.c.id)
    )
    return Entity(made.scalar_one(), name)


async def read_custom_lists(
    connection: AsyncConnection, organisation_id: int
) -> Sequence[CustomList]:
    """The organisation's custom lists, by key."""
    rows = await connection.execute(
        select(custom_lists)
        .where(custom_lists.c.organisation_id == organisation_id)
        .order_by(custom_lists.c.key)
    )
    return [CustomList(row.id, row.key, row.name, row.open) for row in rows]


async def context_exists(
    connection: AsyncConnection, table: str, id: int, organisation_id: int
) -> bool:
    """Whether an event, period or race is the organisation's.

    Raises:
        ValueError: An import cannot belong to rows of this table.
    """
    if table == events.name:
        query = select(events.c.id).where(events.c.organisation_id == organisation_id)
        query = query.where(events.c.id == id)
    elif table == membership_periods.name:
        query = select(membership_periods.c.id).where(
            membership_periods.c.organisation_id == organisation_id, membership_periods.c.id == id
        )
    elif table == races.name:
        query = (
            select(races.c.id)
            .join(events, races.c.event_id == events.c.id)
            .where(events.c.organisation_id == organisation_id, races.c.id == id)
        )
    else:
        raise ValueError(f"an import cannot belong to rows of {table!r}")
    return (await connection.execute(query)).first() is not None


def _selected(kind: _Kind) -> Select[Any]:
    table = kind.table
    columns = [table.c[name] for name in ("id", "name", "spellings") if name in table.c]
    query = select(*columns)
    if kind.owner is not None and kind.owned is not None:
        query = query.where(kind.owner.in_(kind.owned))
    return query


def _entity(row: Any) -> Entity:
    return Entity(row.id, row.name, tuple(json.loads(getattr(row, "spellings", "[]"))))
