"""The tables of declared types: what they are, and how one becomes the next.

They are in a schema of their own, apart from docflow's migrations. A change adds and widens;
what would lose values is carried out only if a person says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    Inspector,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    Time,
    inspect,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import TypeEngine

from adapters.database.models.base import (
    DOMAIN,
    STAGED,
    WIDENED,
    ExactDecimal,
    UtcDateTime,
    domain_table,
    staged_twin,
)
from workflows.shared.declared_fields import DeclaredField, nearest, value_of
from workflows.shared.declared_types import OTHER, DeclaredType
from workflows.shared.errors import RuleViolation, TableChanged

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
    "place": BigInteger(),
    "decimal": ExactDecimal(),
    "money": ExactDecimal(),
    "date": Date(),
    "time": Time(),
    "boolean": Boolean(),
}


_WIDE: Final[Mapping[str, TypeEngine[Any]]] = {
    "TEXT": Text(),
    "NUMERIC(20, 6)": ExactDecimal(),
    "TIMESTAMP WITHOUT TIME ZONE": DateTime(),
}
_WIDER: Final = frozenset({("BIGINT", "NUMERIC(20, 6)"), ("DATE", "TIMESTAMP WITHOUT TIME ZONE")})
"""Kinds of columns that keep every value of another kind, beside texts, which keep all."""


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
    declared = declared_in(DOMAIN[table])
    return declared if declared is not None and declared.target is not None else None


def declared_in(table: Table) -> DeclaredType | None:
    """The type whose rows a table has, if a team has declared it."""
    return table.info.get(_DECLARED)


def _table(declared: DeclaredType, key: str, schema: str | None) -> Table:
    values = [name for name in declared.fields if name not in declared.key]
    defaults = defaults_of_new(declared)
    columns: list[Column[Any]] = []
    for name in values:
        kind = _type(declared.fields[name])
        default = literal(defaults[name], kind) if name in defaults else None
        columns.append(Column(name, kind, default=default))
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


def defaults_of_new(declared: DeclaredType) -> Mapping[str, Any]:
    """What a new row has in columns that its file lacks, by field.

    Parts of the key are in each row anyway. Whether the row of a reference is there, is seen for
    cells alone.
    """
    return {
        name: value_of(field, field.default) if field.default else field.default
        for name, field in declared.fields.items()
        if field.default is not None and field.kind != "reference" and name not in declared.key
    }


def _type(field: DeclaredField) -> TypeEngine[Any]:
    if field.kind == "timestamp":
        return UtcDateTime() if field.zone else DateTime()
    return _TYPES.get(field.kind, Text())


def type_of(field: DeclaredField) -> str:
    """The type of the column of a field, as SQL writes it."""
    return _type(field).compile(_DIALECT)


async def columns_of(connection: AsyncConnection, schema: str, name: str) -> Sequence[str]:
    """The columns of a table or view; none: there is no such one."""
    query = text(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:name)"
        " AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    named = {"name": f"{_quoted(schema)}.{_quoted(name)}"}
    return (await connection.execute(query, named)).scalars().all()


async def as_found(connection: AsyncConnection, table: Table) -> Table:
    """A table of a declared type with the kinds that its columns have now.

    If the type has changed since, a column may have become a wider one, which keeps every value.

    Args:
        connection: To the database.
        table: As a version knows it.

    Raises:
        TableChanged: A column does not keep the values that this version has.
    """
    found, known = await _kinds_of(connection, table), table.columns.keys()
    others = _other_kinds(table, dict(zip(known, known, strict=True)), found)
    return _widened(table, others) if others else table


async def as_renamed(
    connection: AsyncConnection, table: Table, later: Sequence[DeclaredType]
) -> tuple[Table, Mapping[str, str]]:
    """A table of a declared type by the names and with the kinds that its columns have now.

    Args:
        connection: To the database.
        table: As a version knows it.
        later: Versions that were put in force since, in order.

    Returns:
        The table, and the present name of each column that is still there, by the name that the
        version knows.

    Raises:
        TableChanged: The table is gone, or a column does not keep the values of the version.
    """
    found = await _kinds_of(connection, table)
    if not found:
        raise TableChanged(
            f"the table {SCHEMA}.{table.name} is gone, and its rows with it: there is nothing to "
            "take back"
        )
    names = dict[str, str]()
    for known in table.columns.keys():  # noqa: SIM118
        name = known
        for version in later:
            was = (new for new, field in version.fields.items() if field.was == name)
            name = next(was, name)
        if name in found:
            names[known] = name
    kinds = _other_kinds(table, names, found)
    return _as_now(table, tuple(names.items()), kinds), names


async def _kinds_of(connection: AsyncConnection, table: Table) -> Mapping[str, str]:
    """The kind of each column that a table has now; none: there is no such table."""
    query = text(
        "SELECT attname, upper(format_type(atttypid, atttypmod)) FROM pg_attribute"
        " WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped"
    )
    named = {"name": f"{_quoted(SCHEMA)}.{_quoted(table.name)}"}
    return {name: kind.replace(",", ", ") for name, kind in await connection.execute(query, named)}


def _other_kinds(
    table: Table, names: Mapping[str, str], found: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Columns of a version that have become wider, and the kinds that they have now.

    Raises:
        TableChanged: One has a kind that does not keep its values.
    """
    others: list[tuple[str, str]] = []
    for known_as, name in names.items():
        column = table.c[known_as]
        known = column.type.compile(_DIALECT)
        kind = found.get(name, known)
        if kind == known:
            continue
        if kind != "TEXT" and (known, kind) not in _WIDER:
            raise TableChanged(
                f"the column {name} of {SCHEMA}.{table.name} has another kind since the "
                f"type has changed: it is {kind}, and this import knows it as {known}. Apply the "
                "earlier kind again, and retry"
            )
        others.append((known_as, kind))
    return tuple(others)


@lru_cache(maxsize=256)
def _as_now(
    table: Table, names: tuple[tuple[str, str], ...], kinds: tuple[tuple[str, str], ...]
) -> Table:
    wider = dict(kinds)
    key = {column.name for column in table.primary_key.columns}
    columns = [
        Column(
            name,
            _WIDE[wider[known]] if known in wider else table.c[known].type,
            nullable=table.c[known].nullable,
        )
        for known, name in names
    ]
    made = Table(
        table.name,
        MetaData(),
        *columns,
        PrimaryKeyConstraint(*(name for known, name in names if known in key)),
        schema=table.schema,
        info=dict(table.info),
    )
    made.info[WIDENED] = frozenset(name for known, name in names if known in wider)
    return made


@lru_cache(maxsize=256)
def _widened(table: Table, kinds: tuple[tuple[str, str], ...]) -> Table:
    wider = table.to_metadata(MetaData())
    for name, kind in kinds:
        wider.c[name].type = _WIDE[kind]
    wider.info[WIDENED] = frozenset(name for name, _ in kinds)
    return wider


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


def changes_to(
    connection: Connection,
    declared: DeclaredType,
    before: DeclaredType | None = None,
    *,
    alone: bool = False,
) -> Sequence[Change]:
    """What leads the database to a version of a type; nothing: it is there.

    Args:
        connection: To the database.
        declared: The version.
        before: The version that is in force.
        alone: Let nobody write a table whose values are counted, up to the end of the transaction.

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
        renamed = dict(_renamed(declared, table, there))
        if table is DOMAIN[key]:
            _refuse_unknown(declared, table, there)
        primary = [renamed.get(name, name) for name in primary]
        wanted = [column.name for column in table.primary_key.columns]
        if primary != wanted:
            raise RuleViolation(
                f"{declared.at('key')}: the key of {SCHEMA}.{table.name} is "
                f"{', '.join(primary)}, and the type has {', '.join(wanted)}: rows "
                "cannot be given another key; declare a type of another name, or drop the table"
            )
        whose = "" if table is DOMAIN[key] else ", in rows that open imports have staged"
        count = _Count(connection, alone, whose)
        changes.extend(_between(table, there, renamed, _Casts(declared, before), count))
    return [*changes, *_index(declared, found, is_new=declared.table_name not in known)]


def _index(declared: DeclaredType, found: Inspector, *, is_new: bool) -> Iterator[Change]:
    """What makes the index by which rows are found that are kept no longer, or drops it."""
    name = f"ix_{declared.table_name}_updated_at"
    indexes = [] if is_new else found.get_indexes(declared.table_name, schema=SCHEMA)
    is_there = any(each["name"] == name for each in indexes)
    if declared.retention is not None and not is_there:
        table = f"{SCHEMA}.{_quoted(declared.table_name)}"
        yield Change(f"CREATE INDEX {_quoted(name)} ON {table} (updated_at)")
    if declared.retention is None and is_there:
        yield Change(f"DROP INDEX {SCHEMA}.{_quoted(name)}")


def _renamed(
    declared: DeclaredType, table: Table, there: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Old name and new name of each column that a field renames.

    Raises:
        RuleViolation: The table has both.
    """
    for name, field in declared.fields.items():
        if field.was is None or field.was not in there:
            continue
        if name in there:
            raise RuleViolation(
                f"{declared.at('fields', name, 'was')}: {table.name} has the columns {field.was} "
                f"and {name}, so that {name} cannot be what {field.was} was; remove 'was' to drop "
                f"{field.was}"
            )
        yield field.was, name


def _refuse_unknown(declared: DeclaredType, table: Table, there: Mapping[str, Any]) -> None:
    """See that no field was a column that the table never had: its values would be lost.

    Raises:
        RuleViolation: One was.
    """
    for name, field in declared.fields.items():
        if field.was is not None and field.was not in there and name not in there:
            old = set(there) - set(table.columns.keys())
            known = nearest(field.was, old) if old else "its columns all have fields"
            raise RuleViolation(
                f"{declared.at('fields', name, 'was')}: {name} was {field.was!r}, and "
                f"{table.name} has no such column; correct 'was' or remove it: {known}"
            )


def _between(
    table: Table,
    there: Mapping[str, Any],
    renamed: Mapping[str, str],
    casts: "_Casts",
    count: "_Count",
) -> Iterable[Change]:
    name = f"{SCHEMA}.{_quoted(table.name)}"
    for old, new in renamed.items():
        yield Change(f"ALTER TABLE {name} RENAME COLUMN {_quoted(old)} TO {_quoted(new)}")
    earlier = {new: old for old, new in renamed.items()}
    for column in table.columns:
        wanted, own = column.type.compile(_DIALECT), _quoted(column.name)
        old = earlier.get(column.name, column.name)
        if old not in there:
            yield Change(f"ALTER TABLE {name} ADD COLUMN {own} {wanted}")
            continue
        present = there[old]["type"].compile(_DIALECT)
        if present == wanted:
            continue
        if column.primary_key and wanted != "TEXT":
            raise RuleViolation(
                f"{casts.at(column.name)}: {column.name} is part of the key of {name}, and is "
                f"{present} there: its type cannot become {wanted}; declare a type of another name"
            )
        sql = f"ALTER TABLE {name} ALTER COLUMN {own} TYPE {wanted} USING "
        loses = None
        if wanted != "TEXT":
            kept = casts.of(column.name, _quoted(old), present, wanted)
            loses = count.unfit(name, _quoted(old), kept, f"{old}, which do not fit {wanted}")
        yield Change(sql + casts.of(column.name, own, present, wanted), loses)
    kept_columns = {column.name for column in table.columns} | renamed.keys()
    for gone in sorted(there.keys() - kept_columns):
        sql = f"ALTER TABLE {name} DROP COLUMN {_quoted(gone)}"
        yield Change(sql, count.filled(name, gone))


class _Casts:
    """How values of a column become those of a field.

    Args:
        declared: The version that is wanted.
        before: The version that is in force.
    """

    def __init__(self, declared: DeclaredType, before: DeclaredType | None) -> None:
        self._declared = declared
        self._before = before

    def at(self, name: str) -> str:
        """Where the kind of a field stands."""
        return self._declared.at("fields", name, "kind")

    def of(self, name: str, value: str, present: str, wanted: str) -> str:
        """SQL for a value of a column as one of another type; NULL if it does not fit."""
        field = self._declared.fields.get(name)
        earlier = earlier_field(self._declared, self._before, name)
        kinds = [each.kind for each in (field, earlier) if each is not None]
        if "duration" in kinds and wanted != "TEXT":
            # A number that is no duration does not say what it counts.
            return f"NULL::{wanted}"
        old, new = (None if each is None else each.zone for each in (earlier, field))
        return _cast(value, present, wanted, (old or new or "UTC", new or old or "UTC"))


def earlier_field(
    declared: DeclaredType, before: DeclaredType | None, name: str
) -> DeclaredField | None:
    """What a field was in the version before; None: it is new."""
    if before is None or name not in declared.fields:
        return None
    was = declared.fields[name].was
    return before.fields.get(name) or (None if was is None else before.fields.get(was))


class _Count:
    """Counts values of a table that a change would lose.

    Args:
        connection: To the database.
        alone: Let nobody write meanwhile.
        whose: What is said of its rows; empty for stored ones.
    """

    def __init__(self, connection: Connection, alone: bool, whose: str) -> None:
        self._connection = connection
        self._alone = alone
        self._whose = whose

    def unfit(self, table: str, column: str, kept: str, what: str) -> str | None:
        """What an expression does not keep of a column, for people; None: it keeps all."""
        is_lost = f"FILTER (WHERE {column} IS NOT NULL AND {kept} IS NULL)"
        example_of = f"min({column}::text) {is_lost}"
        lost, every, example = self._of(
            table, f"count(*) {is_lost}", f"count({column})", example_of
        )
        if not lost:
            return None
        shown = str(example)[:_SHOWN]
        return f"{lost:,} of {every:,} values of {what}, for example {shown!r}{self._whose}"

    def filled(self, table: str, column: str) -> str | None:
        """The values of a column, for people; None: it has none."""
        [number] = self._of(table, f"count({_quoted(column)})")
        if not number:
            return None
        count = "1 value" if number == 1 else f"{number:,} values"
        said = f"the values of {column}, which the type does not have any more ({count})"
        return said + self._whose

    def _of(self, table: str, *columns: str) -> Sequence[Any]:
        if self._alone:
            self._connection.exec_driver_sql(f"LOCK TABLE {table}")
        return self._connection.execute(
            select(*map(literal_column, columns)).select_from(text(table))
        ).one()


_SHOWN: Final = 40
_WHOLE: Final = "^[+-]?[0-9]{1,18}$"
_NUMBER: Final = r"^[+-]?[0-9]{1,14}(\.[0-9]{1,6})?$"
_DAY: Final = "^(19|2[01])[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_CLOCK: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?$"


def _cast(value: str, present: str, wanted: str, zones: tuple[str, str]) -> str:
    """SQL for a value as one of another type; NULL if it does not fit. It never fails."""
    old, new = ("'" + zone.replace("'", "''") + "'" for zone in zones)
    word = f"btrim({value})"
    match present, wanted:
        case _, "TEXT":
            return f"{value}::TEXT"
        case ("BIGINT", "NUMERIC(20, 6)") | ("DATE", "TIMESTAMP WITHOUT TIME ZONE"):
            return f"{value}::{wanted}"
        case "DATE", "TIMESTAMP WITH TIME ZONE":
            return f"{value}::TIMESTAMP AT TIME ZONE {new}"
        case "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP WITH TIME ZONE":
            return f"{value} AT TIME ZONE {new}"
        case "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE":
            return f"{value} AT TIME ZONE {old}"
        case "TIMESTAMP WITHOUT TIME ZONE", "DATE":
            return f"CASE WHEN {value} = date_trunc('day', {value}) THEN {value}::DATE END"
        case "TIMESTAMP WITH TIME ZONE", "DATE":
            local = f"({value} AT TIME ZONE {old})"
            return _cast(local, "TIMESTAMP WITHOUT TIME ZONE", wanted, zones)
        case "NUMERIC(20, 6)", "BIGINT":
            return f"CASE WHEN {value} = trunc({value}) THEN {value}::BIGINT END"
        case "TEXT", "BIGINT":
            return f"CASE WHEN {word} ~ '{_WHOLE}' THEN {word}::BIGINT END"
        case "TEXT", "NUMERIC(20, 6)":
            return f"CASE WHEN {word} ~ '{_NUMBER}' THEN {word}::{wanted} END"
        case "TEXT", "BOOLEAN":
            lower = f"lower({word})"
            return f"CASE WHEN {lower} IN ('true', 'yes', 'false', 'no') THEN {lower}::BOOLEAN END"
        case "TEXT", "TIME WITHOUT TIME ZONE":
            return f"CASE WHEN {word} ~ '{_CLOCK}' THEN {word}::TIME END"
        case "TEXT", "DATE":
            month = f"(left({word}, 7) || '-01')::DATE"
            last = f"extract(day FROM {month} + INTERVAL '1 month - 1 day')"
            fits = f"CASE WHEN right({word}, 2)::INTEGER <= {last} THEN {word}::DATE END"
            return f"CASE WHEN {word} ~ '{_DAY}' THEN {fits} END"
        case "TEXT", ("TIMESTAMP WITHOUT TIME ZONE" | "TIMESTAMP WITH TIME ZONE"):
            day = _cast(f"left({word}, 10)", "TEXT", "DATE", zones)
            clock = _cast(f"substr({word}, 12)", "TEXT", "TIME WITHOUT TIME ZONE", zones)
            local = f"({day}) + ({clock})"
            return f"({local})" + (f" AT TIME ZONE {new}" if "WITH TIME" in wanted else "")
        case _:
            return f"NULL::{wanted}"


def locking(declared: DeclaredType) -> str:
    """The statement that keeps the rows of a type as they are, up to the end of a transaction."""
    return f"LOCK TABLE {SCHEMA}.{_quoted(declared.table_name)}"


def dropping(declared: DeclaredType) -> Iterator[str]:
    """The statements that drop the tables of a type."""
    key = register_table(declared)
    for table in (DOMAIN[key], STAGED[key]):
        yield f"DROP TABLE IF EXISTS {SCHEMA}.{_quoted(table.name)}"


def _quoted(name: str) -> str:
    return _DIALECT.identifier_preparer.quote(name)


@lru_cache(maxsize=256)
def declared_of(text: str) -> DeclaredType:
    """A version as the database keeps it."""
    return DeclaredType.model_validate_json(text)
