"""The tables of declared types: what they are, and how one becomes the next.

They are in a schema of their own, apart from docflow's migrations. A change adds and widens;
what would lose values is carried out only if a person says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Date,
    DateTime,
    MetaData,
    Table,
    Text,
    Time,
    inspect,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import TypeEngine

from adapters.database.models.base import (
    DOMAIN,
    STAGED,
    ExactDecimal,
    UtcDateTime,
    domain_table,
    staged_twin,
)
from workflows.shared.declared_types import OTHER, DeclaredField, DeclaredType
from workflows.shared.errors import RuleViolation

SCHEMA: Final = "docflow_types"
"""Schema of the tables of declared types."""
_VERSION: Final = 8
_IN_SESSION: Final = "_dry"
"""Ends what a table of a dry run is known as: it is another one than that of the same version."""
_DECLARED: Final = "declared"
_DIALECT: Final = postgresql.dialect()
_TYPES: Final[Mapping[str, TypeEngine[Any]]] = {
    "integer": BigInteger(),
    "sequence": BigInteger(),
    "duration": BigInteger(),
    "decimal": ExactDecimal(),
    "money": ExactDecimal(),
    "date": Date(),
    "time": Time(),
    "boolean": Boolean(),
}
_WIDER: Final = frozenset({("BIGINT", "NUMERIC(20, 6)")})
"""Type to one that holds all of its values; text holds those of any type."""


def key_of_version(declared: DeclaredType) -> str:
    """What `DOMAIN` has the table of this version under."""
    return f"{declared.table_name}_{declared.digest[:_VERSION]}"


def register_table(declared: DeclaredType, *, schema: str | None = SCHEMA) -> str:
    """Make the table of a version known to the store, with its staging twin.

    Args:
        declared: The version.
        schema: Of the table; None: that of the session, as in a dry run.

    Returns:
        What `DOMAIN` and `STAGED` have it under.
    """
    key = key_of_version(declared) + ("" if schema else _IN_SESSION)
    if key not in DOMAIN:
        table = _table(declared, key, schema)
        table.info[_DECLARED] = declared
        staged_twin(table)
    return key


def target_of(table: str) -> DeclaredType | None:
    """The type of a table in `DOMAIN`, if its rows go elsewhere: a table of yours, or a file."""
    declared: DeclaredType | None = DOMAIN[table].info.get(_DECLARED)
    return declared if declared is not None and declared.target is not None else None


def _table(declared: DeclaredType, key: str, schema: str | None) -> Table:
    values = [name for name in declared.fields if name not in declared.key]
    columns = [Column(name, _type(declared.fields[name])) for name in values]
    if declared.unmapped == "keep":
        columns.append(Column(OTHER, JSONB()))
    return domain_table(
        declared.table_name,
        (
            *(Column(name, Text, nullable=False) for name in declared.scope),
            *(Column(name, _type(declared.fields[name]), nullable=False) for name in declared.key),
        ),
        *columns,
        within=MetaData(schema=schema),
        known_as=key,
    )


def _type(field: DeclaredField) -> TypeEngine[Any]:
    if field.kind == "timestamp":
        return UtcDateTime() if field.zone else DateTime()
    return _TYPES.get(field.kind, Text())


@dataclass(frozen=True, slots=True)
class Change:
    """One statement that leads a table to a declaration.

    Attributes:
        sql: The statement.
        loses: What would be lost; None: nothing.
        at: The database of another team that it is for; None: docflow's own.
    """

    sql: str
    loses: str | None = None
    at: str | None = None


def changes_to(connection: Connection, declared: DeclaredType) -> Sequence[Change]:
    """What leads the database to a version of a type; nothing: it is there.

    Raises:
        RuleViolation: The key of the table is another one: no statement leads there.
    """
    key = register_table(declared)
    found = inspect(connection)
    changes: list[Change] = []
    if SCHEMA not in found.get_schema_names():
        changes.append(Change(f"CREATE SCHEMA {SCHEMA}"))
    known = set(found.get_table_names(schema=SCHEMA)) if not changes else set[str]()
    own = (STAGED[key],) if declared.target is not None else (DOMAIN[key], STAGED[key])
    for table in own:
        if table.name not in known:
            sql = str(CreateTable(table).compile(dialect=_DIALECT))
            changes.append(Change(" ".join(sql.split())))
            continue
        there = {each["name"]: each for each in found.get_columns(table.name, schema=SCHEMA)}
        primary = found.get_pk_constraint(table.name, schema=SCHEMA)["constrained_columns"]
        wanted = [column.name for column in table.primary_key.columns]
        if primary != wanted:
            raise RuleViolation(
                f"the key of {SCHEMA}.{table.name} is {', '.join(primary)}, and the type has "
                f"{', '.join(wanted)}: rows cannot be given another key; declare a type of "
                "another name, or drop the table"
            )
        changes.extend(_between(table, there))
    return changes


def _between(table: Table, there: Mapping[str, Any]) -> Iterable[Change]:
    name = f"{SCHEMA}.{_quoted(table.name)}"
    for column in table.columns:
        wanted, own = column.type.compile(_DIALECT), _quoted(column.name)
        if column.name not in there:
            yield Change(f"ALTER TABLE {name} ADD COLUMN {own} {wanted}")
            continue
        present = there[column.name]["type"].compile(_DIALECT)
        if present == wanted:
            continue
        if wanted == "TEXT" or (present, wanted) in _WIDER:
            yield Change(
                f"ALTER TABLE {name} ALTER COLUMN {own} TYPE {wanted} USING {own}::{wanted}"
            )
            continue
        if column.primary_key:
            raise RuleViolation(
                f"{column.name} is part of the key of {name}, and is {present} there: its type "
                f"cannot become {wanted}; declare a type of another name"
            )
        yield Change(
            f"ALTER TABLE {name} DROP COLUMN {own}, ADD COLUMN {own} {wanted}",
            f"the values of {column.name}, which are {present} and would be {wanted}",
        )
    for gone in sorted(there.keys() - {column.name for column in table.columns}):
        yield Change(
            f"ALTER TABLE {name} DROP COLUMN {_quoted(gone)}",
            f"the values of {gone}, which the type does not have any more",
        )


def _quoted(name: str) -> str:
    return _DIALECT.identifier_preparer.quote(name)


@lru_cache(maxsize=256)
def declared_of(text: str) -> DeclaredType:
    """A version as the database keeps it."""
    return DeclaredType.model_validate_json(text)
