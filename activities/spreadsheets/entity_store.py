"""The rows that cells refer to, and what imports belong to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Select,
    Table,
    Text,
    cast,
    column,
    literal,
    select,
    table,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.entities import EntityScope, key_id
from activities.spreadsheets.import_rows import acquire_organisation_lock, target_table
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.models.base import DOMAIN
from adapters.database.models.spreadsheets import (
    countries,
    custom_list_items,
    custom_lists,
    event_categories,
    events,
    membership_types,
    races,
)
from adapters.database.records import clean
from adapters.types.files import contexts
from adapters.types.references import Referred, row_made
from adapters.types.tables import target_of
from adapters.types.targets import TargetTables
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation
from workflows.spreadsheets.fields import (
    CustomList,
    Entity,
)

MOST: Final = 100_000
_LIST: Final = "custom_list/"
_SHOWN: Final = 60
_BY_PEOPLE: Final = "spreadsheets"
"""Who made a row that a person asked for beside an import."""


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


async def read_entities(
    connection: AsyncConnection, scope: EntityScope, targets: TargetTables
) -> Sequence[Entity]:
    """Everything that cells may refer to, by name.

    Raises:
        RuleViolation: It is more than a person can choose from.
    """
    if scope.referred is not None:
        return await _read_referred(connection, scope, scope.referred, targets)
    kind = _kind(scope)
    query = _selected(kind).order_by(kind.table.c.name, kind.table.c.id).limit(MOST)
    return [_entity(row) for row in await connection.execute(query)]


async def create_entity(connection: AsyncConnection, scope: EntityScope, name: str) -> Entity:
    """Find or make a candidate of this name.

    Raises:
        ValueError: Rows of this kind cannot be added, or what they belong to is missing.
    """
    name = " ".join(clean(name).split())
    if not name:
        raise ValueError("a row to choose from needs a name")
    if scope.referred is not None:
        return await _make_referred(connection, scope, scope.referred, name)
    kind = _kind(scope)
    if kind.owner is None or kind.owned is None:
        raise ValueError(f"rows of kind {scope.kind!r} cannot be added")
    await acquire_organisation_lock(connection, scope.organisation_id)
    rows = (await connection.execute(_selected(kind).order_by(kind.table.c.id))).all()
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


async def _read_referred(
    connection: AsyncConnection, scope: EntityScope, referred: Referred, targets: TargetTables
) -> Sequence[Entity]:
    """The rows that a field of a declared type may refer to."""
    declared = None if referred.table is None else target_of(referred.table)
    if declared is not None:
        keys = await targets.keys(declared, scope.scope, referred.key, MOST + 1)
        _refuse_too_many(referred, len(keys))
        return [_entity_of_key(key, key) for key in keys]
    if referred.table is None:
        names = {referred.key, referred.label, *referred.scope}
        source = table(str(referred.name), *map(column, sorted(names)), schema=referred.schema)
    else:
        source = DOMAIN[referred.table]
    key, label = (cast(source.c[name], Text) for name in (referred.key, referred.label))
    query = select(key.label("key"), label.label("label")).where(key.is_not(None))
    for name in referred.scope:
        query = query.where(cast(source.c[name], Text) == scope.scope[name])
    rows = (await connection.execute(query.order_by(label, key).limit(MOST + 1))).all()
    _refuse_too_many(referred, len(rows))
    return [_entity_of_key(row.key, row.label or row.key) for row in rows]


def _refuse_too_many(referred: Referred, count: int) -> None:
    if count > MOST:
        raise RuleViolation(
            f"{referred.title} holds more than {MOST:,} rows, too many to choose from; send "
            "the file by a message"
        )


def _entity_of_key(key: str, label: str) -> Entity:
    return Entity(key_id(key), label, () if label == key else (key,), key)


async def _make_referred(
    connection: AsyncConnection, scope: EntityScope, referred: Referred, key: str
) -> Entity:
    """Find or make a row of a declared type that holds its key alone.

    Raises:
        RuleViolation: The type refuses the row.
    """
    if referred.table is None or not referred.can_create:
        raise ValueError(f"rows of {referred.title} cannot be added")
    made, reason = row_made(referred, scope.scope, key)
    if reason is not None:
        raise RuleViolation(
            f"{key[:_SHOWN]!r} cannot be created in {referred.title}: {reason}; cancel this "
            "import, and correct the value in the file"
        )
    target = DOMAIN[referred.table]
    values = (*(scope.scope[name] for name in referred.scope), made)
    batch = RowBatch(target, (*referred.scope, referred.key), [values], [0], [0])
    await bulk.insert_new(connection, batch, Stamp(_BY_PEOPLE, datetime.now(UTC)))
    return _entity_of_key(str(made), str(made))


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
    query = _owned(table, organisation_id).where(target_table(table).c.id == id)
    return (await connection.execute(query)).first() is not None


def _context(table: str) -> DeclaredType:
    """The type of the rows of a table that imports can belong to.

    Raises:
        ValueError: An import cannot belong to rows of this table.
    """
    for each in contexts().values():
        if each.table_name == table:
            return each
    raise ValueError(f"an import cannot belong to rows of {table!r}")


def _owned(table: str, organisation_id: int) -> Select[int]:
    """Ids of the rows of a table that belong to an organisation, or to what it owns."""
    (owner,) = _context(table).scope
    source = target_table(table)
    if owner in contexts():
        owned = _owned(contexts()[owner].table_name, organisation_id)
        return select(source.c.id).where(source.c[owner].in_(owned))
    return select(source.c.id).where(source.c[owner] == organisation_id)


async def make_context(
    connection: AsyncConnection, name: str, organisation_id: int, given: Mapping[str, Any]
) -> int:
    """Find or make a row that imports of an organisation can belong to; its id.

    Args:
        connection: In a transaction.
        name: The table.
        organisation_id: Whose row it is.
        given: Its other values.

    Raises:
        RuleViolation: It belongs to an event that is not the organisation's.
    """
    declared, source = _context(name), target_table(name)
    await acquire_organisation_lock(connection, organisation_id)
    values: dict[str, Any] = {**given, "name": clean(given["name"])}
    (owner,) = declared.scope
    above = contexts().get(owner)
    if above is None:
        values[owner] = organisation_id
    elif not await context_exists(connection, above.table_name, values[owner], organisation_id):
        called = above.title.removesuffix("s").lower()
        raise RuleViolation(f"there is no {called} {values[owner]}; choose one of yours")
    same = select(source.c.id).where(
        *(source.c[key] == values[key] for key in declared.natural_key)
    )
    found = (await connection.execute(same.limit(1))).scalar_one_or_none()
    if found is not None:
        return found
    made = await connection.execute(source.insert().values(values).returning(source.c.id))
    return made.scalar_one()


def _selected(kind: _Kind) -> Select[Any]:
    table = kind.table
    columns = [table.c[name] for name in ("id", "name", "spellings") if name in table.c]
    query = select(*columns)
    if kind.owner is not None and kind.owned is not None:
        query = query.where(kind.owner.in_(kind.owned))
    return query


def _entity(row: Any) -> Entity:
    return Entity(row.id, row.name, tuple(json.loads(getattr(row, "spellings", "[]"))))
