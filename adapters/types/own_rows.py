"""Rows of docflow's own types about people and clubs, as an upload takes them again."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, Table, select

from adapters.database.engine import Database
from adapters.database.models.every import metadata
from adapters.types.files import people_types
from workflows.shared.declared_fields import DeclaredField, field_spec
from workflows.shared.declared_types import DeclaredType, PeopleField, PeopleType
from workflows.shared.fields import ColumnKind, FieldSpec

_PAGE: Final = 5_000
_PERSON: Final = "PERSON"
_LISTS: Final = "CUSTOM_LIST_"
"""What the headers of an organisation's custom lists begin with."""


class SqlOwnRows:
    """Reads the rows of one type; every method raises `Unavailable` without the database.

    Args:
        database: With the rows.
        declared: A type about people or clubs.
        owner: Id of what the rows belong to: an organisation, an event, or the like; None: any.
    """

    def __init__(self, database: Database, declared: DeclaredType, owner: int | None) -> None:
        self._database = database
        (self._scope,) = declared.scope
        self._table = metadata.tables[declared.table_name]
        self._within = () if owner is None else (self._table.c[self._scope] == owner,)
        self._declared = declared
        self._known_lists: Mapping[str, Sequence[int]] | None = None

    async def fields(self, *, with_scope: bool) -> Sequence[FieldSpec]:
        """The columns of a file, in their order."""
        scope = (FieldSpec(self._scope, ColumnKind.INTEGER),) if with_scope else ()
        own = (field_spec(name, each) for name, each, _ in self._columns())
        lists = (FieldSpec(f"{_LISTS}{key}", ColumnKind.TEXT) for key in await self._lists())
        return (*scope, *own, *lists)

    async def read(self, *, with_scope: bool) -> AsyncGenerator[Sequence[tuple[Any, ...]]]:
        """Rows in the order in which they came, as they are at one moment.

        Yields:
            Pages of values in the order of `fields`.
        """
        scope = (self._table.c[self._scope],) if with_scope else ()
        own = (_value(each, column) for _, each, column in self._columns())
        lists = (_choice(self._table, ids) for ids in (await self._lists()).values())
        query: Select[Any] = select(*scope, *own, *lists).where(*self._within)
        if self._is_about_people:
            people = metadata.tables[people_types()[_PERSON].table_name]
            query = query.join_from(self._table, people, self._table.c.person_id == people.c.id)
        async with self._database.streaming() as connection:
            ordered = query.order_by(self._table.c.id).execution_options(yield_per=_PAGE)
            found = await connection.stream(ordered)
            async for page in found.partitions(_PAGE):
                yield [tuple(row) for row in page]

    @property
    def _is_about_people(self) -> bool:
        return isinstance(self._declared, PeopleType) and self._declared.hook is not None

    def _columns(self) -> Sequence[tuple[str, DeclaredField, Column[Any]]]:
        """Name, field and column of each field."""
        types = (people_types()[_PERSON],) if self._is_about_people else ()
        return [
            (name, field, metadata.tables[each.table_name].c[_column_of(name, field)])
            for each in (*types, self._declared)
            for name, field in each.fields.items()
        ]

    async def _lists(self) -> Mapping[str, Sequence[int]]:
        """Ids of the custom lists of the organisations whose rows are read, by key.

        They are looked up once: fields and rows have the same.
        """
        if self._known_lists is None:
            self._known_lists = await self._read_lists()
        return self._known_lists

    async def _read_lists(self) -> Mapping[str, Sequence[int]]:
        lists_by_key: dict[str, list[int]] = {}
        if not (isinstance(self._declared, PeopleType) and self._declared.custom_lists):
            return lists_by_key
        people = metadata.tables[people_types()[_PERSON].table_name]
        lists = metadata.tables["custom_lists"]
        theirs = (
            select(people.c.organisation_id)
            .join_from(self._table, people, self._table.c.person_id == people.c.id)
            .where(*self._within)
        )
        query = select(lists.c.id, lists.c.key).where(lists.c.organisation_id.in_(theirs))
        async with self._database.reading() as connection:
            for row in await connection.execute(query.order_by(lists.c.key, lists.c.id)):
                lists_by_key.setdefault(row[1], []).append(row[0])
        return lists_by_key


def _column_of(name: str, field: DeclaredField) -> str:
    return (isinstance(field, PeopleField) and field.column) or name.lower()


def _value(field: DeclaredField, column: Column[Any]) -> ColumnElement[Any]:
    if field.kind != "reference":
        return column
    (key,) = column.foreign_keys
    named = key.column.table.alias()
    return (
        select(named.c[field.label or "name"])
        .where(named.c[key.column.name] == column)
        .scalar_subquery()
    )


def _choice(table: Table, list_ids: Sequence[int]) -> ColumnElement[Any]:
    values, items = (metadata.tables[each] for each in ("custom_list_values", "custom_list_items"))
    return (
        select(items.c.name)
        .join_from(items, values, values.c.custom_list_item_id == items.c.id)
        .where(values.c.participant_id == table.c.id, values.c.custom_list_id.in_(list_ids))
        .scalar_subquery()
    )
