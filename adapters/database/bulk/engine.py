"""Bulk writes on PostgreSQL: binary COPY into a temporary table, then one upsert from there.

A small chunk goes along with its upsert as one text for each column. Large ones are a third faster
by COPY than as parameters (`unnest` of arrays).

A large chunk whose keys all seem to be new is first tried as a COPY straight into its table, which
takes the server less than half the time of the upsert, and as text, which takes the client less
than half the time of binary records.
"""

import hashlib
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from io import BytesIO
from typing import Any, Final

import asyncpg
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Executable,
    Numeric,
    Table,
    Text,
    Time,
    any_,
    bindparam,
    exists,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk import statements
from adapters.database.bulk.driver import driver_of, fetch
from adapters.database.bulk.rows import KeySource, RowBatch, Stamp
from adapters.database.bulk.statements import copy_text, packed_text, sent
from adapters.database.models.base import (
    PLACES,
    WIDENED,
    ExactDecimal,
    UtcDateTime,
    identity_of,
    key_of,
    known_as,
)
from adapters.ports.errors import Unavailable
from workflows.shared.packed_rows import NULL, PackedRows

_LARGE: Final = 1_000
"""Rows from which on a straight COPY gains more than it costs to try."""
_SAMPLE: Final = 20
"""Keys that are looked up before: a COPY that fails leaves an error in the server's log."""


def turn(*, alone: bool) -> ColumnElement[Any]:
    """An expression that waits for its turn on the number `:turn` until the transaction ends.

    A transaction-level advisory lock, exclusive or shared.

    Those that must be alone wait for all others, the others only for those.
    """
    lock = func.pg_advisory_xact_lock if alone else func.pg_advisory_xact_lock_shared
    return lock(bindparam("turn", type_=BigInteger), type_=Text).label("turn")


def turn_name(table: str, project_id: str) -> str:
    """What writers of a project's rows in one table take turns on."""
    return f"{table}/{project_id}"


async def expect_many(connection: AsyncConnection) -> None:
    """Plan the rest of the transaction for many rows, whatever the statistics are.

    No nested loops: rows just staged have no statistics yet, and look like a few.
    """
    await connection.exec_driver_sql("SET LOCAL enable_nestloop = off")


def keys(table: Table, names: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> KeySource:
    """Keys as something to select from; `names` are columns of `table`.

    One array per column, unnested side by side.
    """
    arrays = [bindparam(f"key_{name}", type_=ARRAY(table.c[name].type)) for name in names]
    source = (
        func.unnest(*arrays)
        .table_valued(
            *(Column(name, table.c[name].type) for name in names),
            with_ordinality="_place",
            name="sent",
        )
        .render_derived()
    )
    columns = list(zip(*keys, strict=True)) if keys else [()] * len(names)
    return KeySource(
        source,
        {name: source.c[name] for name in names},
        source.c["_place"] - 1,
        {f"key_{name}": list(values) for name, values in zip(names, columns, strict=True)},
    )


def among(column: ColumnElement[Any], values: Sequence[str]) -> ColumnElement[bool]:
    """Whether a text column is one of these values, however many they are.

    One array parameter, whatever its length.
    """
    return column == any_(bindparam(None, list(values), ARRAY(Text)))


async def merge(connection: AsyncConnection, batch: RowBatch, stamp: Stamp) -> tuple[int, int]:
    """Upsert by natural key; how many rows were created and how many updated.

    COPY, then INSERT ... ON CONFLICT DO UPDATE of the rows that differ.
    """
    if (parameters := _sent_along(batch)) is not None:
        statement = statements.merge_from_sent(known_as(batch.table), batch.columns)
        return await _run_merge(connection, statement, parameters, stamp)
    if len(batch) >= _LARGE and _is_whole(batch) and await _copy_new(connection, batch, stamp):
        return len(batch), 0
    await _copy_incoming(connection, batch)
    return await _run_merge(
        connection,
        statements.merge_from_incoming(known_as(batch.table), batch.columns),
        {},
        stamp,
    )


async def merge_staged(
    connection: AsyncConnection,
    table: Table,
    load_id: int,
    columns: tuple[str, ...],
    stamp: Stamp,
) -> tuple[int, int]:
    """Upsert the rows a load has staged; how many were created and how many updated.

    The same upsert, from the staging twin.
    """
    statement = statements.merge_from_staged(known_as(table), columns)
    return await _run_merge(connection, statement, {"load_id": load_id}, stamp)


async def insert_new(connection: AsyncConnection, batch: RowBatch, stamp: Stamp) -> int:
    """Insert the rows whose key is unknown; how many these were.

    COPY, then INSERT ... ON CONFLICT DO NOTHING.
    """
    if (parameters := _sent_along(batch)) is not None:
        statement = statements.insert_from_sent(known_as(batch.table), batch.columns)
    else:
        parameters = {}
        await _copy_incoming(connection, batch)
        statement = statements.insert_from_incoming(known_as(batch.table), batch.columns)
    result = await connection.execute(
        statement, {"task": stamp.task, "now": stamp.now, **parameters}
    )
    return result.rowcount


async def fill(
    connection: AsyncConnection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows of Python values.

    COPY straight into the table.
    """
    driver = await driver_of(connection)
    await driver.copy_records_to_table(
        table.name, schema_name=table.schema, records=rows, columns=columns
    )


async def expect_lookups(connection: AsyncConnection) -> None:
    """Plan the rest of the transaction for look-ups by index.

    Look keys up by their index: a table that was empty a moment ago looks small still.
    """
    driver = await driver_of(connection)
    await driver.execute(
        "SET LOCAL enable_seqscan = off; "
        "SET LOCAL enable_hashjoin = off; "
        "SET LOCAL enable_mergejoin = off"
    )


def stored(
    table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> Sequence[tuple[Any, ...]]:
    """Rows as `find` gives them back.

    Numbers get their six places, JSON its canonical form, and values of a column that has become a
    wider one are of its kind.
    """
    kinds = [table.c[name].type for name in columns]
    exact = [place for place, kind in enumerate(kinds) if isinstance(kind, ExactDecimal)]
    documents = json_places(table, columns)
    wider = [place for place, name in enumerate(columns) if name in table.info.get(WIDENED, ())]
    if not (exact or documents or wider) or not rows:
        return rows
    values: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place in wider:
        values[place] = _widened(kinds[place], values[place])
    for place in documents:
        values[place] = [
            None if value is None else canonical_json(json.loads(value)) for value in values[place]
        ]
    for place in exact:
        # Amounts repeat.
        known = {number: _exact(number) for number in set(values[place]) - {None}}
        values[place] = list(map(known.get, values[place]))
    return list(zip(*values, strict=True))


def parsed(table: Table, column: str, values: Sequence[Any]) -> Sequence[Any]:
    """Values of one column as the database keeps them, from their JSON.

    Dates, moments and exact numbers from their text.
    """
    kind = table.c[column].type
    parse = _parser(kind)
    if parse is None:
        return _widened(kind, values) if column in table.info.get(WIDENED, ()) else values
    return [None if value is None else parse(value) for value in values]


def _widened(kind: Any, values: Sequence[Any]) -> Sequence[Any]:
    """Values as a column of a wider kind has them since `docflow type apply` changed it."""
    if isinstance(kind, Text):
        return [None if value is None else _text_of(value) for value in values]
    if isinstance(kind, DateTime):
        return [None if value is None else datetime.combine(value, time()) for value in values]
    return values


def _text_of(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case Decimal():
            return format(_exact(value), "f")
        case datetime():
            return value.isoformat(" ").replace("+00:00", "+00")
        case _:
            return value.isoformat()


async def existing(connection: AsyncConnection, table: Table, ids: Sequence[int]) -> set[int]:
    """Which of these ids are there; they stay until the transaction ends.

    Rows locked as a foreign key would lock them.
    """
    driver = await driver_of(connection)
    sql = (
        f"SELECT id FROM {statements.named(table)} WHERE id = ANY($1::bigint[]) "  # noqa: S608
        "ORDER BY id FOR KEY SHARE"
    )
    return {row[0] for row in await driver.fetch(sql, ids)}


async def find(
    connection: AsyncConnection,
    table: Table,
    names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
    columns: Sequence[str],
    *,
    lock: bool,
) -> Sequence[Any]:
    """Rows whose columns `names` are one of the keys: place among them, identity, the columns.

    One array for each column of the key, joined by index.
    """
    driver = await driver_of(connection)
    found = await driver.fetch(
        statements.finding(table, tuple(names), tuple(columns), lock),
        *map(list, zip(*keys, strict=True)),
    )
    before = 1 + len(identity_of(table))
    for place in json_places(table, columns):
        found = [
            (*row[:at], row[at] and canonical_json(_object(row[at])), *row[at + 1 :])
            for row in map(tuple, found)
            for at in (before + place,)
        ]
    return found


def _object(stored: Any) -> Any:
    """An object in a column of JSON: a connection may have been taught to read it, or not."""
    return json.loads(stored) if isinstance(stored, str) else stored


def json_places(table: Table, columns: Sequence[str]) -> Sequence[int]:
    """Places of columns of JSON."""
    return [place for place, name in enumerate(columns) if isinstance(table.c[name].type, JSONB)]


def canonical_json(value: Any) -> str:
    """JSON of which two texts are equal if their values are."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


async def rows(
    connection: AsyncConnection,
    table: Table,
    identities: Sequence[tuple[Any, ...]],
    columns: Sequence[str],
) -> Sequence[Any]:
    """Rows of these identities, locked: place among them, identity, then the columns.

    Rows locked in the order of their identities.
    """
    return await find(connection, table, identity_of(table), identities, columns, lock=True)


async def lookup(
    connection: AsyncConnection,
    table: Table,
    owner: tuple[str, int],
    column: str,
    values: Sequence[str],
    columns: Sequence[str],
) -> Sequence[Any]:
    """Rows of an owner whose column has one of the values: id, then the columns.

    One array of the values.
    """
    driver = await driver_of(connection)
    name, own = owner
    taken = statements.quoted(("id", *columns), "t.")
    sql = (
        f'SELECT {taken} FROM "{table.name}" AS t '  # noqa: S608
        f'WHERE t."{name}" = $1 AND t."{column}" = ANY($2::text[])'
    )
    return await driver.fetch(sql, own, list(values))


async def reserve(connection: AsyncConnection, table: Table, count: int) -> Sequence[int]:
    """Reserved ids, in ascending order.

    The next numbers of the table's sequence.
    """
    driver = await driver_of(connection)
    rows = await driver.fetch(
        f"SELECT nextval('{table.name}_id_seq') FROM generate_series(1, $1::int)",  # noqa: S608
        count,
    )
    return [row[0] for row in rows]


async def insert(
    connection: AsyncConnection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert rows.

    COPY straight into the table.

    Raises:
        Unavailable: A concurrent writer inserted one of them.
    """
    try:
        await fill(connection, table, columns, rows)
    except asyncpg.UniqueViolationError as error:
        raise Unavailable(f"another transaction is writing to {table.name}") from error


async def update(
    connection: AsyncConnection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Set the columns of rows; each row is its identity, then their values.

    UPDATE ... FROM one array for each column.
    """
    driver = await driver_of(connection)
    await driver.execute(
        statements.updating(table, tuple(columns)),
        *map(list, zip(*rows, strict=True)),
    )


async def delete(
    connection: AsyncConnection, table: Table, identities: Sequence[tuple[Any, ...]]
) -> None:
    """Delete rows.

    One array for each column of the identity.
    """
    driver = await driver_of(connection)
    await driver.execute(statements.deleting(table), *map(list, zip(*identities, strict=True)))


async def referring(
    connection: AsyncConnection, table: Table, column: str, ids: Sequence[int]
) -> Sequence[tuple[int, int]]:
    """Rows whose column refers to one of these ids: id of the row, and of what it refers to.

    One array of the ids.
    """
    driver = await driver_of(connection)
    sql = (
        f'SELECT id, "{column}" FROM "{table.name}" '  # noqa: S608
        f'WHERE "{column}" = ANY($1::bigint[])'
    )
    return [(row[0], row[1]) for row in await driver.fetch(sql, ids)]


def _is_whole(batch: RowBatch) -> bool:
    """Whether new rows have no defaults beside the values of a batch."""
    others = (each for each in batch.table.columns if each.name not in batch.columns)
    return all(each.default is None for each in others)


async def _copy_new(connection: AsyncConnection, batch: RowBatch, stamp: Stamp) -> bool:
    """COPY rows straight into their table; False, and nothing done, when a key is known."""
    places: Sequence[int] = range(len(batch))
    if not isinstance(batch.rows, PackedRows):
        places = sorted(places, key=batch.keys().__getitem__)
    sample = batch.take(places[:: len(places) // _SAMPLE])
    if await _any_known(connection, batch.table, sample.keys()):
        return False
    try:
        async with connection.begin_nested():
            await _copy_stamped(connection, batch, places, stamp)
    except asyncpg.UniqueViolationError:
        return False
    return True


async def _copy_stamped(
    connection: AsyncConnection, batch: RowBatch, places: Sequence[int], stamp: Stamp
) -> None:
    """COPY the rows at these places with their bookkeeping."""
    if isinstance(batch.rows, PackedRows):
        now = stamp.now.astimezone(UTC).isoformat()
        stamps = {"version": "1", "source_task": stamp.task, "created_at": now}
        await _copy_packed(connection, batch, batch.table, {**stamps, "updated_at": now})
        return
    columns = (*batch.columns, *statements.STAMPS)
    text = copy_text(batch, places, stamp)
    if text is not None:
        driver = await driver_of(connection)
        table = batch.table
        await driver.copy_to_table(
            table.name, schema_name=table.schema, source=BytesIO(text), columns=columns
        )
        return
    stamps = (1, stamp.task, stamp.now, stamp.now)
    rows = [(*batch.rows[place], batch.lines[place], *stamps) for place in places]
    await fill(connection, batch.table, columns, rows)


async def _any_known(
    connection: AsyncConnection, table: Table, sample: Sequence[tuple[Any, ...]]
) -> bool:
    names = key_of(table)
    sent = keys(table, names, sample)
    same = (table.c[name] == sent.columns[name] for name in names)
    known = select(sent.place).select_from(sent.source).where(exists().where(*same)).limit(1)
    return (await connection.execute(known, sent.parameters)).first() is not None


async def _copy_incoming(connection: AsyncConnection, batch: RowBatch) -> None:
    incoming, create = statements.incoming(known_as(batch.table))
    # Begins the transaction that COPY, which goes past SQLAlchemy, is to be part of. As plain
    # text, because SQLAlchemy forgets every prepared statement when it sees DDL.
    await connection.exec_driver_sql(create)
    if isinstance(batch.rows, PackedRows):
        await _copy_packed(connection, batch, incoming, {})
        return
    rows = list(map(operator.add, batch.rows, zip(batch.lines, strict=True)))
    await fill(connection, incoming, (*batch.columns, "source_line"), rows)


def advisory_lock_key(name: str) -> int:
    """A signed 64-bit number for a name, the same in every process."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


async def acquire_advisory_lock(connection: AsyncConnection, name: str) -> None:
    """Take the advisory lock of `name` until the transaction ends, waiting for its holder."""
    await connection.execute(select(turn(alone=True)), {"turn": advisory_lock_key(name)})


async def _copy_packed(
    connection: AsyncConnection, batch: RowBatch, target: Table, more: Mapping[str, str]
) -> None:
    """COPY packed rows, with the texts of `more` columns that all rows share."""
    rows = batch.rows
    assert isinstance(rows, PackedRows)
    shared = len(rows.scope)
    columns = (*batch.columns[shared:], "source_line", *batch.columns[:shared], *more)
    text = BytesIO(packed_text(rows, tuple(more.values())))
    driver = await driver_of(connection)
    await driver.copy_to_table(
        target.name, schema_name=target.schema, source=text, columns=columns, null=NULL
    )


def _sent_along(batch: RowBatch) -> Mapping[str, str] | None:
    """The parameters that hold a small batch; None: its rows are copied."""
    return sent(batch) if 0 < len(batch) < _LARGE else None


async def _run_merge(
    connection: AsyncConnection, statement: Executable, parameters: Mapping[str, Any], stamp: Stamp
) -> tuple[int, int]:
    values = {"task": stamp.task, "now": stamp.now, **parameters}
    ((created, touched),) = await fetch(connection, statement, values)
    return created, touched - created


def _exact(number: Decimal | int) -> Decimal:
    return Decimal(number).quantize(PLACES, ROUND_HALF_UP)


def _parser(kind: Any) -> Callable[[Any], Any] | None:
    if isinstance(kind, UtcDateTime | DateTime):
        return datetime.fromisoformat
    if isinstance(kind, Date):
        return date.fromisoformat
    if isinstance(kind, Time):
        return time.fromisoformat
    return Decimal if isinstance(kind, Numeric) else None
