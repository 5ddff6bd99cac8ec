"""Opening a database."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from weakref import WeakSet

from sqlalchemy import URL, Connection, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.database import urls
from adapters.database.errors import translated
from adapters.database.urls import parsed

CONNECTIONS: Final = 20
"""Connections of a process at once."""
STATEMENTS: Final = 500
"""Prepared statements per connection: one per table, set of columns and strategy in use."""
_BUSY_MILLISECONDS = 30_000
_BUSY_PAUSE = 0.02
_CONNECT_SECONDS = 10
_WRITES = "docflow_writes"
_NO_SCHEMAS: Final = {"app": None}
_PROBE = {
    # A temporary table takes room on the disk at once, and a standby refuses it.
    "postgresql": "CREATE TEMP TABLE docflow_probe AS"
    " SELECT repeat('x', 1000) AS text FROM generate_series(1, 200)",
    "sqlite": "CREATE TABLE docflow_probe (text)",
}
"""What is written and rolled back to see whether anything can be."""


@dataclass(frozen=True)
class DatabaseOptions:
    """How a PostgreSQL server is used; a file of SQLite needs none of it."""

    connections: int = CONNECTIONS
    """At most at once; half of them stay open when they are not used."""
    statements: int = STATEMENTS
    """Prepared statements that each connection keeps.

    0: nothing is kept in a session of the server, as poolers need it that give a connection to
    another client after each transaction.
    """


class Database:
    """A pool of connections to one database; closes them when used as a context.

    Attributes:
        dialect: `postgresql` or `sqlite`.
        insert: The dialect's statement, which knows `ON CONFLICT`.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self.insert = sqlite.insert if self.dialect == "sqlite" else postgresql.insert
        self._writing = engine.execution_options(**{_WRITES: True})
        # SQLite begins no transaction but those of writers. To set the level again and again would
        # cost two round trips to its thread, and lose the connection to a cancel between them.
        self._reading = (
            engine
            if self.dialect == "sqlite"
            else engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        # SQLite lets writers poll for their turn; within a process they queue up instead.
        self._turn = asyncio.Lock() if self.dialect == "sqlite" else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database; None for a server."""
        return Path(self.engine.url.database or "") if self.dialect == "sqlite" else None

    @property
    def place(self) -> str:
        """Where the database is, without its password."""
        url = self.engine.url
        return f"the file {url.database}" if self.file else f"{url.database} at {url.host}"

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()

    async def probe(self) -> None:
        """See at little cost whether the database can be used.

        Raises:
            Unavailable: It cannot.
        """
        async with self.reading() as connection:
            await connection.exec_driver_sql("SELECT 1")

    async def probe_by_writing(self) -> None:
        """See whether the database can be written to: its disk has room, and it is not a standby.

        Raises:
            Unavailable: It cannot.
        """
        async with self.transaction() as connection:
            await connection.exec_driver_sql(_PROBE[self.dialect])
            await connection.rollback()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that commits when the block ends and rolls back when it fails.

        Raises:
            Unavailable: The database is unavailable or busy; nothing was written.
        """
        with translated():
            if self._turn is None:
                async with self._writing.begin() as connection:
                    yield connection
            else:
                async with self._turn, self._writing.begin() as connection:
                    yield connection

    @asynccontextmanager
    async def single(self) -> AsyncGenerator[AsyncConnection]:
        """A connection whose statements write and commit each for itself.

        It saves the round trips of a transaction. SQLite, where it would save nothing, has them
        in one.

        Raises:
            Unavailable: The database is unavailable or busy.
        """
        opened = self.transaction() if self._turn is not None else self.reading()
        async with opened as connection:
            yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection]:
        """A connection on which every statement stands for itself.

        Raises:
            Unavailable: The database is unavailable or busy.
        """
        with translated():
            async with self._reading.connect() as connection:
                yield connection

    @asynccontextmanager
    async def streaming(self) -> AsyncGenerator[AsyncConnection]:
        """A connection for results that arrive page by page, each as it was at one moment.

        Raises:
            Unavailable: The database is unavailable or busy.
        """
        with translated():
            # Cursors of a server live in transactions.
            async with self.engine.connect() as connection:
                yield connection


def open_database(url: str, options: DatabaseOptions | None = None) -> Database:
    """A database by its URL; connections are made when they are needed.

    Args:
        url: `sqlite:///docflow.db` or `postgresql://user:password@host/name`; the forms that
            name the driver (`sqlite+aiosqlite`, `postgresql+asyncpg`) are the same.
        options: Connections and statements; None: the usual ones.

    Raises:
        ValueError: The URL is none of these, or a file of its TLS cannot be used.
    """
    address = parsed(url)
    if address.get_backend_name() == "sqlite":
        return Database(_sqlite_engine(address))
    return Database(_postgres_engine(address, options or DatabaseOptions()))


def _postgres_engine(url: URL, options: DatabaseOptions) -> AsyncEngine:
    kept = (options.connections + 1) // 2
    arguments: dict[str, Any] = {
        "timeout": _CONNECT_SECONDS,
        "prepared_statement_cache_size": options.statements,
        "statement_cache_size": options.statements,
        "server_settings": {"application_name": "docflow"},
    }
    if options.statements:
        # Compiling a plan to machine code costs more than any statement of ours gains. Poolers
        # refuse settings of a session.
        arguments["server_settings"]["jit"] = "off"
    if (context := urls.context_of(url.query)) is not None:
        arguments["ssl"] = context
        url = url.difference_update_query([*urls.FILES, "ssl"])
    return create_async_engine(
        url,
        pool_size=kept,
        max_overflow=options.connections - kept,
        pool_recycle=3600,
        connect_args=arguments,
    )


def _sqlite_engine(url: URL) -> AsyncEngine:
    # It has no schemas: tables of all stand side by side.
    engine = create_async_engine(
        url,
        connect_args={"factory": _SqliteConnection},
        execution_options={"schema_translate_map": _NO_SCHEMAS},
    )
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


class _SqliteConnection(sqlite3.Connection):
    """Gives its lock back when it is closed.

    SQLite keeps a closed connection, its transaction and its lock until the last statement is
    finalized. A task that is cancelled between a statement and the fetch of its rows leaves one
    behind, which its traceback keeps alive until the garbage collector runs: until then no other
    connection could write.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cursors = WeakSet[sqlite3.Cursor]()
        self._is_open = True

    def cursor(self, *args: Any, **options: Any) -> Any:
        """A cursor that is closed with the connection."""
        cursor = super().cursor(*args, **options)
        self._cursors.add(cursor)
        return cursor

    def close(self) -> None:
        """Finalize every statement, roll back, and close; once more, it does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        for cursor in list(self._cursors):
            cursor.close()
        if self.in_transaction:
            self.rollback()
        super().close()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin_sqlite`
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    _write_ahead(connection, cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -16000")
    cursor.close()


def _write_ahead(connection: Any, cursor: Any) -> None:
    """Have the file of a database, which may be new, written ahead.

    Where several connections ask for that at once, SQLite refuses all but one without waiting, so
    as not to have them wait for each other.

    Raises:
        sqlite3.OperationalError: Another connection has kept the file busy for half a minute.
    """
    last = time.monotonic() + _BUSY_MILLISECONDS / 1_000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                raise
            connection.run_async(_pause)
        else:
            return


async def _pause(_driver: object) -> None:
    await asyncio.sleep(_BUSY_PAUSE)


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock first: one that upgrades later can be refused without waiting."""
    if connection.get_execution_options().get(_WRITES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
