"""Which database failures may pass when the same transaction runs again."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import asyncpg
import sqlalchemy.exc

from adapters.ports import Denied, Unavailable

_PASSING_CLASSES = (
    "08",  # connection exceptions
    "53",  # insufficient resources: connections, memory, disk
    "57P",  # operator intervention: shutdown, crash, still starting
)
_PASSING_STATES = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available
    }
)
_REFUSED_STATES = (
    "28",  # invalid authorization: user, password, rights to connect
    "3D",  # there is no such database
    "42501",  # insufficient privilege
)
_REFUSED_SQLITE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
_PASSING_SQLITE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})


@contextmanager
def translated() -> Generator[None]:
    """Raise `Unavailable` for what may pass; let everything else through as it is.

    Raises:
        Unavailable: Connection lost or refused, deadlock, database busy or shutting down.
    """
    try:
        yield
    except (
        sqlalchemy.exc.DBAPIError,
        sqlalchemy.exc.TimeoutError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        sqlite3.Error,
        OSError,
    ) as error:
        if _may_pass(error):
            raise Unavailable(f"the database is not available: {_first_line(error)}") from error
        raise


@contextmanager
def refused_at(place: str) -> Generator[None]:
    """Raise `Denied` where a database cannot be opened by the address that is set.

    For the first use of a database in a process. Later the same failures may pass.

    Args:
        place: Where the database is, for the message.

    Raises:
        Denied: No such folder or database, no database file, no rights.
    """
    try:
        yield
    except (sqlalchemy.exc.DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if _is_refused(getattr(error, "orig", None) or error):
            raise Denied(f"DATABASE_URL: {place} cannot be used: {_first_line(error)}") from error
        raise


def _is_refused(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _REFUSED_SQLITE
    if isinstance(error, asyncpg.exceptions.ClientConfigurationError):
        return True
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return state.startswith(_REFUSED_STATES)
    return error.__cause__ is not None and _is_refused(error.__cause__)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, OSError | sqlalchemy.exc.TimeoutError):
        return True
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        cause: Any = error.orig
        return error.connection_invalidated or (cause is not None and _is_outage(cause))
    return _is_outage(error)


def _is_outage(error: BaseException) -> bool:
    """Whether the driver's exception, or the one that it wraps, reports a passing failure."""
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _PASSING_SQLITE
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return state.startswith(_PASSING_CLASSES) or state in _PASSING_STATES
    cause = error.__cause__
    if cause is not None:
        return _is_outage(cause)
    # Without a state the error is the driver's own: its connection was closed under it.
    return isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
