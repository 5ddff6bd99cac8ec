"""Opening a database."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.database import urls
from adapters.database.errors import translated
from adapters.database.urls import parsed
from adapters.ports.errors import Denied

CONNECTIONS: Final = 20
"""Connections of a process at once."""
STATEMENTS: Final = 500
"""Prepared statements per connection: one per table, set of columns and strategy in use."""
_CONNECT_SECONDS = 10
_PROBE: Final = (
    "CREATE TEMP TABLE docflow_probe AS"
    " SELECT repeat('x', 1000) AS text FROM generate_series(1, 200)"
)
"""What is written and rolled back to see whether anything can be: a temporary table takes room on
the disk at once, and a standby refuses it."""


@dataclass(frozen=True)
class DatabaseOptions:
    """How a server is used."""

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
        connections: At most at once.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        alone: Callable[[], AsyncEngine] | None,
        connections: int = CONNECTIONS,
    ) -> None:
        self.engine, self.connections = engine, connections
        self._alone = alone
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def place(self) -> str:
        """Where the database is, without its password."""
        url = self.engine.url
        return f"{url.database} at {url.host}"

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
            await connection.exec_driver_sql(_PROBE)
            await connection.rollback()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that commits when the block ends and rolls back when it fails.

        Raises:
            Unavailable: The database is unavailable or busy; nothing was written.
        """
        with translated():
            async with self.engine.begin() as connection:
                yield connection

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Self]:
        """The same database through one session, which sees its own temporary tables alone.

        If the session is lost, the one that takes its place sees no table at all.

        Raises:
            Denied: A pooler gives connections to another client after each transaction.
        """
        if self._alone is None:
            raise Denied(
                f"DATABASE_URL: {self.place} is behind a pooler (DOCFLOW_DATABASE_STATEMENTS=0), "
                "which keeps no session; name the server itself"
            )
        async with type(self)(self._alone(), self._alone) as database:
            yield database

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection]:
        """A connection on which every statement stands for itself, and commits what it writes.

        It saves the round trips of a transaction.

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
        url: `postgresql://user:password@host/name`; the form that names the driver
            (`postgresql+asyncpg`) is the same.
        options: Connections and statements; None: the usual ones.

    Raises:
        ValueError: The URL is not of this form, or a file of its TLS cannot be used.
    """
    address, options = parsed(url), options or DatabaseOptions()
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
    if (context := urls.context_of(address.query)) is not None:
        arguments["ssl"] = context
        address = address.difference_update_query([*urls.FILES, "ssl"])
    made = partial(create_async_engine, address)
    temporary = {**arguments["server_settings"], "search_path": "pg_temp"}
    alone = {**arguments, "server_settings": temporary}
    return Database(
        made(
            pool_size=kept,
            max_overflow=options.connections - kept,
            pool_recycle=3600,
            connect_args=arguments,
        ),
        partial(made, pool_size=1, max_overflow=0, connect_args=alone)
        if options.statements
        else None,
        options.connections,
    )
