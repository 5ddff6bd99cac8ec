"""Opening a database."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.database.errors import translated

_BUSY_MILLISECONDS = 30_000
_CONNECT_SECONDS = 10
_POOL_SIZE = 10
_STATEMENTS_CACHED = 500
"""Prepared statements per connection: one per table, set of columns and strategy in use."""
_POSTGRES = ("postgres", "postgresql", "postgresql+asyncpg")
_POSTGRES_OPTIONS = frozenset(
    {"gsslib", "host", "krbsrvname", "passfile", "port", "ssl", "sslmode", "target_session_attrs"}
)
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SQLITE = ("sqlite", "sqlite+aiosqlite")
_WRITES = "docflow_writes"
_NO_SCHEMAS: Final = {"app": None}
_PROBE = {
    # A temporary table takes room on the disk at once, and a standby refuses it.
    "postgresql": "CREATE TEMP TABLE docflow_probe AS"
    " SELECT repeat('x', 1000) AS text FROM generate_series(1, 200)",
    "sqlite": "CREATE TABLE docflow_probe (text)",
}
"""What is written and rolled back to see whether anything can be."""


class Database:
    """A pool of connections to one database; closes them when used as a context.

    Attributes:
        dialect: `postgresql` or `sqlite`.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self._writing = engine.execution_options(**{_WRITES: True})
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
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
        """See whether the database can be written to: its disk has room, and it is no standby.

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


def open_database(url: str) -> Database:
    """A database by its URL; connections are made when they are needed.

    Args:
        url: `sqlite:///docflow.db` or `postgresql://user:password@host/name`; the forms that
            name the driver (`sqlite+aiosqlite`, `postgresql+asyncpg`) are the same.

    Raises:
        ValueError: The URL is none of these.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return Database(_sqlite_engine(parsed))
    return Database(_postgres_engine(parsed))


def check_url(url: str) -> None:
    """See whether `open_database` would take a URL.

    Raises:
        ValueError: It would not; the message says why.
    """
    _parsed(url)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError("it cannot be read; use sqlite:/// or postgresql://") from error
    except ValueError:
        # What it says may hold a part of the password.
        raise ValueError("the port is not a number") from None
    if parsed.port is not None and not 0 < parsed.port < 1 << 16:
        raise ValueError("the port is not a number up to 65535")
    if parsed.drivername in _SQLITE:
        return _sqlite_url(parsed)
    if parsed.drivername in _POSTGRES:
        return _postgres_url(parsed)
    raise ValueError(
        f"database {parsed.drivername!r} is not supported; use sqlite:/// or postgresql://"
    )


def _sqlite_url(url: URL) -> URL:
    if url.database in (None, "", ":memory:"):
        raise ValueError("SQLite needs a file: sqlite:///path/to/docflow.db")
    if "\0" in (url.database or ""):
        raise ValueError("the name of the file holds a null character")
    _refuse_options(url, frozenset())
    return url.set(drivername="sqlite+aiosqlite")


def _postgres_url(url: URL) -> URL:
    _refuse_options(url, _POSTGRES_OPTIONS)
    if {"ssl", "sslmode"} <= url.query.keys():
        raise ValueError("sslmode and ssl are the same option; keep one")
    mode = url.query.get("sslmode", url.query.get("ssl"))
    if mode is not None:
        if mode not in _SSL_MODES:
            raise ValueError(f"sslmode must be one of {', '.join(_SSL_MODES)}, not {mode!r}")
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url.set(drivername="postgresql+asyncpg")


def _refuse_options(url: URL, known: frozenset[str]) -> None:
    """Drivers fail on options that they do not know, or ignore them."""
    if unknown := sorted(url.query.keys() - known):
        allowed = f"known are {', '.join(sorted(known))}" if known else "SQLite takes none"
        raise ValueError(f"option {unknown[0]!r} is unknown; {allowed}")


def _postgres_engine(url: URL) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_recycle=3600,
        connect_args={
            "timeout": _CONNECT_SECONDS,
            "prepared_statement_cache_size": _STATEMENTS_CACHED,
            "statement_cache_size": _STATEMENTS_CACHED,
            # Compiling a plan to machine code costs more than any statement of ours gains.
            "server_settings": {"application_name": "docflow", "jit": "off"},
        },
    )


def _sqlite_engine(url: URL) -> AsyncEngine:
    # It has no schemas: tables of all stand side by side.
    engine = create_async_engine(url, execution_options={"schema_translate_map": _NO_SCHEMAS})
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin_sqlite`
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -16000")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock first: one that upgrades later can be refused without waiting."""
    if connection.get_execution_options().get(_WRITES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
