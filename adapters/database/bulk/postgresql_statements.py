"""Statements of bulk writes on PostgreSQL, made once for each table and set of columns."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Executable,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.schema import CreateTable

from adapters.database.bulk.postgresql_driver import DIALECT
from adapters.database.bulk.postgresql_sent import NOTHING, SEPARATOR, parameter
from adapters.database.models.base import UtcDateTime
from adapters.database.models.every import DOMAIN, STAGED, data_of, key_of

STAMPS: Final = ("source_line", "version", "source_task", "created_at", "updated_at")
"""The bookkeeping of a row, in the order of `_source`."""


@lru_cache
def incoming(name: str) -> tuple[Table, str]:
    """The session's temporary table for a chunk; empty again at every commit."""
    table = DOMAIN[name]
    temporary = Table(
        f"incoming_{name}",
        MetaData(),
        *(Column(column, table.c[column].type) for column in data_of(table)),
        Column("source_line", Integer),
        prefixes=["TEMPORARY"],
        postgresql_on_commit="DELETE ROWS",
    )
    create = CreateTable(temporary, if_not_exists=True).compile(dialect=DIALECT)
    return temporary, str(create)


def _source(source: FromClause, key: Sequence[str], columns: Sequence[str]) -> Select[Any]:
    """Rows with their bookkeeping, ordered so that concurrent writers cannot deadlock."""
    return select(
        *(source.c[name] for name in columns),
        source.c["source_line"],
        literal_column("1", Integer),
        bindparam("task", type_=Text),
        bindparam("now", type_=UtcDateTime),
        bindparam("now", type_=UtcDateTime),
    ).order_by(*(_as_python_sorts(source.c[name]) for name in key))


def _as_python_sorts(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The order that rows of a straight COPY are in, whatever the collation of the database."""
    return column.collate("C") if isinstance(column.type, Text) else column


def _insert(table: Table, columns: Sequence[str], source: Select[Any]) -> Insert:
    return insert(table).from_select([*columns, *STAMPS], source)


def _merge(table: Table, columns: Sequence[str], source: Select[Any]) -> Executable:
    """Counts in one round trip: a created row is at version 1, an updated one beyond."""
    key = key_of(table)
    values = [name for name in columns if name not in key]
    statement = _insert(table, columns, source)
    if values:
        new = statement.excluded
        written = statement.on_conflict_do_update(
            index_elements=key,
            set_={
                **{name: new[name] for name in values},
                "version": table.c.version + 1,
                **{name: new[name] for name in ("source_line", "source_task", "updated_at")},
            },
            where=or_(*(table.c[name].is_distinct_from(new[name]) for name in values)),
        )
    else:
        written = statement.on_conflict_do_nothing()
    rows = written.returning(table.c.version).cte("written")
    return select(func.count().filter(rows.c.version == literal(1)), func.count()).select_from(rows)


@lru_cache(maxsize=512)
def merge_from_incoming(name: str, columns: tuple[str, ...]) -> Executable:
    """Upsert the rows of `incoming`; yields how many were created, and created or updated."""
    table, (source, _) = DOMAIN[name], incoming(name)
    return _merge(table, columns, _source(source, key_of(table), columns))


@lru_cache(maxsize=512)
def merge_from_staged(name: str, columns: tuple[str, ...]) -> Executable:
    """The same upsert, of the rows that a load has staged."""
    table, staged = DOMAIN[name], STAGED[name]
    rows = _source(staged, key_of(table), columns)
    rows = rows.where(staged.c.load_id == bindparam("load_id", type_=BigInteger))
    return _merge(table, columns, rows)


@lru_cache(maxsize=512)
def insert_from_incoming(name: str, columns: tuple[str, ...]) -> Executable:
    """Insert the rows of `incoming` whose key is unknown."""
    table, (source, _) = DOMAIN[name], incoming(name)
    rows = _source(source, key_of(table), columns)
    return _insert(table, columns, rows).on_conflict_do_nothing()


@lru_cache(maxsize=512)
def merge_from_sent(name: str, columns: tuple[str, ...]) -> Executable:
    """The same upsert, of rows that are sent as one text for each column."""
    table = DOMAIN[name]
    return _merge(table, columns, _source(_sent(table, columns), key_of(table), columns))


@lru_cache(maxsize=512)
def insert_from_sent(name: str, columns: tuple[str, ...]) -> Executable:
    """Insert those of such rows whose key is unknown."""
    table = DOMAIN[name]
    rows = _source(_sent(table, columns), key_of(table), columns)
    return _insert(table, columns, rows).on_conflict_do_nothing()


def _sent(table: Table, columns: Sequence[str]) -> FromClause:
    """The rows that parameters hold, one for each column."""
    kinds = {name: table.c[name].type for name in (*columns, "source_line")}
    marks = [literal_column(f"chr({ord(mark)})", Text) for mark in (SEPARATOR, NOTHING)]
    arrays = [
        cast(func.string_to_array(bindparam(parameter(name), type_=Text), *marks), ARRAY(kind))
        for name, kind in kinds.items()
    ]
    named = [Column(name, kind) for name, kind in kinds.items()]
    return func.unnest(*arrays).table_valued(*named, name="sent").render_derived()


def quoted(columns: Sequence[str], of: str = "") -> str:
    """Names for a statement, each with the prefix `of`."""
    return ", ".join(f'{of}"{column}"' for column in columns)


def _arrays(table: Table, columns: Sequence[str]) -> str:
    kinds = (table.c[column].type.compile(DIALECT) for column in columns)
    return ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, start=1))


@lru_cache(maxsize=512)
def finding(table: Table, key: tuple[str, ...], columns: tuple[str, ...], lock: bool) -> str:
    """Find rows by keys that are sent as one array for each column."""
    same = " AND ".join(f't."{column}" = sent."{column}"' for column in key)
    return (
        f"SELECT sent.place - 1, {quoted(('id', *columns), 't.')} "  # noqa: S608
        f"FROM unnest({_arrays(table, key)}) WITH ORDINALITY AS sent({quoted(key)}, place) "
        f'JOIN "{table.name}" AS t ON {same}' + (" ORDER BY t.id FOR UPDATE OF t" if lock else "")
    )


@lru_cache(maxsize=512)
def updating(table: Table, columns: tuple[str, ...]) -> str:
    """Update rows by id from one array for each column."""
    changes = ", ".join(f'"{column}" = new."{column}"' for column in columns)
    return (
        f'UPDATE "{table.name}" AS t SET {changes} '  # noqa: S608
        f"FROM unnest({_arrays(table, ('id', *columns))}) AS new({quoted(('id', *columns))}) "
        "WHERE t.id = new.id"
    )
