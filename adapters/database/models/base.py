"""Column types and table shapes that every model shares."""

from decimal import Decimal
from typing import Any, Final, cast

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Integer,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    }
)
"""Every table of docflow."""

PLACES: Final = Decimal("0.000001")
ABOVE_ALL: Final = Decimal("99999999999999.9999995")
"""The smallest number that rounds to one NUMERIC(20, 6) does not hold."""


class ExactDecimal(Numeric[Decimal]):
    """NUMERIC(20, 6)."""

    def __init__(self) -> None:
        super().__init__(20, 6)


class UtcDateTime(DateTime):
    """A moment."""

    def __init__(self) -> None:
        super().__init__(timezone=True)


class Box(UserDefinedType[Any]):
    """PostgreSQL's own rectangle, which needs no extension."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Its name in SQL."""
        return "BOX"


# SQLAlchemy does not know the type of columns that it finds otherwise.
cast(dict[str, Any], ischema_names)["box"] = Box


DOMAIN: dict[str, Table] = {}
"""Tables whose rows come from documents, by name."""
STAGED: dict[str, Table] = {}
"""Staging twin of each table that can be loaded aside, by the name of the table."""

_KNOWN_AS: Final = "known_as"
WIDENED: Final = "widened"
"""What the `info` of a table has columns under that are wider than the values of a version."""
BOOKKEEPING: Final = frozenset(
    {"version", "source_task", "source_line", "created_at", "updated_at"}
)


def domain_table(
    name: str,
    key: tuple[Column[Any], ...],
    *columns: Column[Any],
    within: MetaData = metadata,
    known_as: str | None = None,
) -> Table:
    """A table whose natural key is its primary key, with the store's own columns.

    `version` counts the changes from 1; `source_task` and `source_line` name the import
    that changed the row last and the line of its file.

    Args:
        name: Of the table in the database.
        key: Its natural key.
        columns: All others that documents fill.
        within: The tables that it belongs to.
        known_as: What `DOMAIN` has it under; its name when absent.
    """
    table = Table(
        name,
        within,
        *key,
        *columns,
        Column("version", Integer, nullable=False),
        Column("source_task", Text, nullable=False),
        Column("source_line", Integer, nullable=False),
        Column("created_at", UtcDateTime, nullable=False),
        Column("updated_at", UtcDateTime, nullable=False),
        PrimaryKeyConstraint(*(column.name for column in key)),
        info={_KNOWN_AS: known_as or name},
    )
    DOMAIN[known_as or name] = table
    return table


def known_as(table: Table) -> str:
    """What `DOMAIN` and `STAGED` have a table under: the rows of two versions may differ."""
    return table.info[_KNOWN_AS]


def is_stamped(table: Table) -> bool:
    """Whether the rows of a table have the store's own columns, and are known by natural key."""
    return _KNOWN_AS in table.info


def identity_of(table: Table) -> tuple[str, ...]:
    """Columns that tell a row from every other: its `id`, or its natural key."""
    return key_of(table) if is_stamped(table) else ("id",)


def staged_twin(table: Table) -> Table:
    """Where rows of a table wait until all of them go in at once.

    `load_id` is the load they belong to, `cells` the row as it was read, for the report.
    """
    key = key_of(table)
    twin = Table(
        f"staged_{table.name}",
        table.metadata,
        Column("load_id", BigInteger, nullable=False),
        *(Column(name, table.c[name].type, nullable=name not in key) for name in data_of(table)),
        Column("source_line", Integer, nullable=False),
        Column("cells", Text),
        PrimaryKeyConstraint("load_id", *key),
    )
    STAGED[known_as(table)] = twin
    return twin


def key_of(table: Table) -> tuple[str, ...]:
    """Columns of the natural key, in order."""
    return tuple(column.name for column in table.primary_key.columns)


def data_of(table: Table) -> tuple[str, ...]:
    """Columns that documents fill: the natural key and the values."""
    return tuple(column.name for column in table.columns if column.name not in BOOKKEEPING)


def text_column(name: str) -> Column[Any]:
    """Text that may be absent."""
    return Column(name, Text)


def key_column(name: str) -> Column[Any]:
    """Text that is part of a natural key."""
    return Column(name, Text, nullable=False)


def decimal_column(name: str) -> Column[Any]:
    """An exact number that may be absent."""
    return Column(name, ExactDecimal)
