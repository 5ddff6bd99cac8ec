"""Databases and tables that other teams keep, and how a step is done there once.

docflow never makes, changes or drops such a table. What it needs to know of a table is in the
catalog.

A crash between their transaction and docflow's doubles nothing: the result of a step is a row of
the side table `docflow_progress`, written in the transaction that writes the rows.
"""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Self

import sqlalchemy.exc
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database, DatabaseOptions, open_database
from adapters.database.errors import cause_of, is_stale, translated
from adapters.ports.errors import Denied
from workflows.shared.dependencies import Dependency

SIDE: Final = "docflow_progress"
"""The side table, in the schema of the table that rows go to."""
_CONNECTIONS: Final = 6
_SESSION: Final = (
    "SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),"
    " set_config('IntervalStyle', 'postgres', true), set_config('bytea_output', 'hex', true),"
    " set_config('lock_timeout', '10s', true)"
)
"""So that texts of values mean the same in every session, and that a lock there is waited for by
another attempt: docflow holds locks of its own meanwhile."""
_TABLE: Final = """
SELECT c.oid::bigint AS oid, c.relkind::text AS kind, EXISTS (
    SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 7 = 7
  ) AS has_trigger
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
"""
_COLUMNS: Final = """
SELECT a.attname AS name, quote_ident(n.nspname) || '.' || quote_ident(t.typname) AS cast_to,
  format_type(a.atttypid, a.atttypmod) AS written, t.typcategory::text AS category,
  t.typtype = 'd' AS is_domain, coalesce(b.typname, t.typname) AS base,
  a.attnotnull AS needed, a.atthasdef OR t.typdefault IS NOT NULL AS has_default,
  a.attgenerated <> '' AS is_generated, a.attidentity::text AS identity
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS: Final = """
SELECT c.relname::text, i.indpred IS NULL, array_agg(a.attname::text ORDER BY a.attname::text)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::smallint[])
WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND i.indisvalid AND i.indexprs IS NULL
  AND i.indnatts = i.indnkeyatts
GROUP BY c.relname, i.indpred IS NULL
UNION ALL
SELECT c.conname::text, false, array_agg(a.attname::text ORDER BY a.attname::text)
FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
WHERE c.conrelid = $1::bigint::oid AND c.contype IN ('c', 'f', 'x') GROUP BY c.conname
"""
_OF_THE_TABLE: Final = ("42", "3F", "0A", "2B", "2F", "XX")
"""What is wrong with the table, or with docflow's rights on it, and not with a row."""
_PASSING: Final = ("08", "53", "57", "25", "58", "40", "55", "28", "3D")
_BY_POLICY: Final = "row-level security"
_PLAIN_NUMBER: Final = r"^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?$"
"""A text that a column of numbers keeps as it is: no `007`, `1e5` or `NaN`."""
_OF_TEXT: Final = ("E", "U", "I", "R")
_NUMBER: Final = ("N",)
_TAKEN: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "integer": _NUMBER,
        "sequence": _NUMBER,
        "decimal": _NUMBER,
        "money": _NUMBER,
        "place": _NUMBER,
        "code": ("N", *_OF_TEXT),
        "reference": ("N", *_OF_TEXT),
        "duration": ("N", "T"),
        "boolean": ("B",),
        "date": ("date", "timestamp"),
        "time": ("time",),
        "timestamp": ("timestamp", "timestamptz"),
    }
)
"""Kind of a field to the categories and types of columns that take its values, beside texts; any
other kind is a text."""
_NATIVE: Final = frozenset("NSBDET")
"""Categories of types whose values can be compared as they are; others are compared as text."""


def quoted(name: str) -> str:
    """An identifier as it is written in SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class ForeignColumn:
    """A column, as the catalog has it."""

    name: str
    cast_to: str
    """Its type without length, so that a value that is too long is refused and not cut."""
    written: str
    """Its type as people write it: `numeric(10,2)`."""
    category: str
    """Of its type: N numbers, S texts, B truth values, D days and moments, T durations, E enums."""
    base: str
    needed: bool
    has_default: bool
    is_generated: bool
    identity: str
    is_domain: bool

    @property
    def is_filled(self) -> bool:
        """Whether their server fills it, whatever a row says."""
        return self.is_generated or self.identity == "a"

    def value(self, text: str) -> str:
        """SQL of a value, from SQL of its text."""
        return f"{text}::numeric::{self.cast_to}" if self._is_whole else f"{text}::{self.cast_to}"

    def read(self, stored: str) -> str:
        """SQL of the text of a stored value; of a duration in milliseconds."""
        if self.category == "T":
            return f"(extract(epoch FROM {stored}) * 1000)::bigint::text"
        return f"{stored}::text"

    @property
    def _is_whole(self) -> bool:
        return self.base in ("int2", "int4", "int8")

    def is_lost(self, text: str) -> str | None:
        """SQL that is true if the column does not keep all of a value; None: it always does."""
        if self.category == "N":
            number = f"{text}::numeric"
            kept = f"({number}::{self.written})::numeric"
            return f"({text} !~ '{_PLAIN_NUMBER}' OR {number} IS DISTINCT FROM {kept})"
        if self.category == "S" and (self.is_domain or "(" in self.written):
            return f"({text} IS DISTINCT FROM {text}::{self.written}::text)"
        if self.category in "DT":
            return f"({text}::{self.cast_to} IS DISTINCT FROM {text}::{self.written})"
        return None

    def is_same(self, stored: str, text: str) -> str:
        """SQL that is true if a stored value is that of a text."""
        if self.category in _NATIVE:
            return f"{stored} IS NOT DISTINCT FROM {self.value(text)}"
        return f"{stored}::text IS NOT DISTINCT FROM {self.value(text)}::text"

    def takes(self, kind: str, *, zoned: bool) -> str | None:
        """Why it cannot take values of a declared kind; None: it can."""
        if self.category == "S":
            return None
        taken = _TAKEN.get(kind, _OF_TEXT)
        if self.base == "timestamptz" and kind == "timestamp" and not zoned:
            return "give the field a 'zone': the column holds moments"
        if self.category in taken or self.base in taken:
            return None
        kinds = " or ".join(k for k, columns in _TAKEN.items() if self.category in columns)
        return f"the kinds do not fit; {self.written} takes {kinds or 'none of these kinds'}"


@dataclass(frozen=True)
class ForeignTable:
    """A table of another team, as the catalog has it."""

    schema: str
    name: str
    columns: Mapping[str, ForeignColumn]
    unique: Sequence[frozenset[str]]
    """Columns of each index that makes rows unique, without conditions and expressions."""
    constraints: Mapping[str, Sequence[str]]
    """Columns of each constraint and unique index, by its name."""
    has_trigger: bool
    """A trigger sees each row before it goes in, and may fill its columns."""

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.schema}.{self.name}"

    @cached_property
    def sql(self) -> str:
        """Its name in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def own(self) -> Sequence[str]:
        """Columns that are stored and not computed."""
        return [name for name, each in self.columns.items() if not each.is_generated]


class ForeignDatabases:
    """The databases that types name as the place of their rows.

    Each is opened when it is needed first. Use it as a context: it closes them.

    Args:
        own: docflow's own, for types that name none.
        urls: Name of each other one to its URL.
        dry: Take back all that is written, at the end of its transaction.
    """

    def __init__(
        self, own: Database, urls: Mapping[str, str] | None = None, *, dry: bool = False
    ) -> None:
        self._own = own
        self._urls = urls or {}
        self._dry = dry
        self._open: dict[str, Database] = {}

    @property
    def at_once(self) -> int:
        """How many may hold a connection of docflow's own database beside another one."""
        return max(1, self._own.connections // 2)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        async with AsyncExitStack() as stack:
            for each in self._open.values():
                stack.push_async_callback(each.close)

    def _database(self, name: str | None) -> Database:
        if name is None:
            return self._own
        if name not in self._urls:
            raise Denied(
                f"DOCFLOW_TYPE_DATABASES has no {name!r}, which the type names as its database; "
                "add it, restart the workers, and retry"
            )
        if name not in self._open:
            # Their pooler may share sessions, and their columns may change at any time.
            options = DatabaseOptions(connections=_CONNECTIONS, statements=0)
            self._open[name] = open_database(self._urls[name], options)
        return self._open[name]

    def has(self, name: str | None) -> bool:
        """Whether this process may use one of them."""
        return name is None or name in self._urls

    @asynccontextmanager
    async def transaction(
        self, name: str | None, *, dry: bool = False
    ) -> AsyncGenerator[AsyncConnection]:
        """A transaction in one of them; constraints are checked with each statement.

        Args:
            name: Which one; None: docflow's own.
            dry: Take back what is written, at its end.

        Raises:
            Unavailable: It is unavailable or busy; nothing was written.
            Denied: The settings do not name it, or it refuses a statement for good.
        """
        database = self._database(name)
        with _translated(name):
            async with database.engine.begin() as connection:
                await connection.exec_driver_sql(_SESSION)
                await connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
                yield connection
                if self._dry or dry:
                    await connection.rollback()

    async def probe(self, name: str) -> None:
        """See at little cost whether one of them can be used.

        Raises:
            Unavailable: It cannot.
        """
        async with self.transaction(name) as connection:
            await connection.exec_driver_sql("SELECT 1")


@contextmanager
def _translated(name: str | None) -> Generator[None]:
    """Raise what a failed statement on one of them means; None: on docflow's own."""
    place = "the database" if name is None else f"the database {name}"
    dependency = Dependency.DATABASE if name is None else Dependency.TARGET
    with translated(place, dependency, name):
        try:
            yield
        except sqlalchemy.exc.DBAPIError as error:
            if not is_stale(error) and (state_of(error) or "").startswith(_OF_THE_TABLE):
                raise Denied(f"{place} refuses: {first_line(error)}") from error
            raise


def state_of(error: BaseException) -> str | None:
    return getattr(cause_of(error), "sqlstate", None)


def first_line(error: BaseException) -> str:
    cause = cause_of(error)
    text = str(getattr(cause, "message", "") or cause).strip()
    return text.splitlines()[0] if text else type(cause).__name__


def is_refusal(error: BaseException) -> bool:
    """Whether a row is what is wrong: a value, a constraint, or what a trigger says."""
    state = state_of(error)
    if state is None or is_stale(error):
        return False
    if state == "42501":
        return _BY_POLICY in str(cause_of(error))
    return not state.startswith((*_OF_THE_TABLE, *_PASSING))


def refuses(state: str, message: str) -> str:
    """SQL of `is_refusal`, from SQL of the state and the message of an error."""
    others = ", ".join(f"'{each}'" for each in (*_OF_THE_TABLE, *_PASSING))
    return (
        f"({state} = '42501' AND position('{_BY_POLICY}' IN {message}) > 0"
        f" OR left({state}, 2) NOT IN ({others}))"
    )


async def rows_of(connection: AsyncConnection, sql: str, *values: Any) -> Sequence[Any]:
    return (await connection.exec_driver_sql(sql, values)).all()


async def described(connection: AsyncConnection, schema: str, name: str) -> ForeignTable:
    """What the catalog says about a table.

    Raises:
        Denied: There is no such table.
    """
    found = await rows_of(connection, _TABLE, schema, name)
    if not found:
        raise Denied(f"there is no table {schema}.{name}; make it, or correct `target`")
    oid, kind, has_trigger = found[0]
    if kind not in ("r", "p"):
        raise Denied(f"{schema}.{name} is no table; name the table whose rows are to be written")
    columns = [ForeignColumn(**row._mapping) for row in await rows_of(connection, _COLUMNS, oid)]
    rules = await rows_of(connection, _CONSTRAINTS, oid)
    return ForeignTable(
        schema,
        name,
        {each.name: each for each in columns},
        [frozenset(names) for _, is_key, names in rules if is_key],
        {rule: names for rule, _, names in rules},
        has_trigger,
    )


def side_table(schema: str) -> str:
    """The statement that makes the side table of a schema."""
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(schema)}.{SIDE} (run text NOT NULL, step text NOT"
        " NULL, result bytea, written_at timestamptz NOT NULL DEFAULT now(),"
        " PRIMARY KEY (run, step))"
    )


async def has_table(connection: AsyncConnection, schema: str, name: str) -> bool:
    """Whether a schema has a table."""
    return bool(await rows_of(connection, _TABLE, schema, name))


@dataclass(frozen=True, slots=True)
class Step:
    """A part of some work in their database.

    Attributes:
        run: The work; nobody else has this name.
        name: Of the part.
        digest: Of what is to be done: an attempt that does something else is another one.
    """

    run: str
    name: str
    digest: bytes = b""


async def once(
    connection: AsyncConnection,
    schema: str,
    step: Step,
    act: Callable[[], Awaitable[bytes]],
    undo: Callable[[bytes], Awaitable[None]] | None = None,
) -> bytes:
    """Do a step once, in the transaction of the connection, and remember its result.

    A second call returns what the first one did, and does nothing; if it is to do something else,
    what the first one did is taken back first. A concurrent one waits. Results of other steps of
    the run are forgotten: docflow has them when the next step begins.

    Args:
        connection: In a transaction of their database.
        schema: Of the side table.
        step: What is done once.
        act: Does it, on the connection.
        undo: Takes back a result; None: the step does the same each time.

    Raises:
        Denied: There is no side table.
    """
    side = f"{quoted(schema)}.{SIDE}"
    if not await has_table(connection, schema, SIDE):
        raise Denied(
            f"there is no table {schema}.{SIDE}, in which docflow notes how far an import has "
            f"come; let its owner run `docflow type apply`, or: {side_table(schema)}"
        )
    began = await rows_of(
        connection,
        f"INSERT INTO {side} (run, step) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING run",
        step.run,
        step.name,
    )
    mark = hashlib.sha256(step.digest).digest()
    if not began:
        query = f"SELECT result FROM {side} WHERE run = $1 AND step = $2"
        done = bytes((await rows_of(connection, query, step.run, step.name))[0][0])
        if undo is None or done.startswith(mark):
            return done[len(mark) :]
        await undo(done[len(mark) :])
    result = await act()
    await connection.exec_driver_sql(
        f"UPDATE {side} SET result = $3 WHERE run = $1 AND step = $2",
        (step.run, step.name, mark + result),
    )
    await connection.exec_driver_sql(
        f"DELETE FROM {side} WHERE run = $1 AND step <> $2", (step.run, step.name)
    )
    return result


async def remembered(connection: AsyncConnection, schema: str, run: str) -> Sequence[Any]:
    """Steps of a run that the side table remembers: name and result of each."""
    query = f"SELECT step, result FROM {quoted(schema)}.{SIDE} WHERE run = $1"
    found = await rows_of(connection, query, run)
    return [(step, bytes(result)[hashlib.sha256().digest_size :]) for step, result in found]


async def forget(connection: AsyncConnection, schema: str, *runs: str) -> None:
    """Remove what the side table remembers of runs that have ended."""
    await connection.exec_driver_sql(
        f"DELETE FROM {quoted(schema)}.{SIDE} WHERE run = ANY ($1::text[])", ([*runs],)
    )
