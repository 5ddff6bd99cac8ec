"""Opening a database."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self

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
_SQLITE = ("sqlite", "sqlite+aiosqlite")
_WRITES = "docflow_writes"


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
    if parsed.drivername in _SQLITE:
        if parsed.database in (None, "", ":memory:"):
            raise ValueError("SQLite needs a file: sqlite:///path/to/docflow.db")
        return parsed.set(drivername="sqlite+aiosqlite")
    if parsed.drivername in _POSTGRES:
        mode = parsed.query.get("sslmode")
        if mode is not None:
            parsed = parsed.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
        return parsed.set(drivername="postgresql+asyncpg")
    raise ValueError(
        f"database {parsed.drivername!r} is not supported; use sqlite:/// or postgresql://"
    )


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
    engine = create_async_engine(url)
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
