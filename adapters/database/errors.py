"""Which database failures may pass when the same transaction runs again."""

import socket
import sqlite3
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import sqlalchemy.exc

from adapters.ports import Denied, Unavailable
from contracts.dependencies import Dependency

_OUTAGES = (
    "08",  # connection exceptions
    "53",  # insufficient resources: connections, memory, disk
    "57P",  # operator intervention: shutdown, crash, still starting
    "25006",  # read-only: a standby, or a disk that its provider protects
    "58",  # system errors: input and output
)
_REFUSALS = (
    "28",  # authorisation: user or password
    "3D",  # no such database
    "42501",  # insufficient privilege
)
_CONFLICTS = frozenset(
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
# A connection waits for its turn: when that is over, another program keeps the file locked.
_SQLITE_OUTAGES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY})
_SQLITE_REFUSALS = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)
_SQLITE_CONFLICTS = frozenset({sqlite3.SQLITE_LOCKED})


def _of_postgresql() -> tuple[type[Exception], ...]:
    """What its driver raises; loaded with the first failure, or with the first connection."""
    import asyncpg

    return asyncpg.PostgresError, asyncpg.InterfaceError


@contextmanager
def translated() -> Generator[None]:
    """Raise `Unavailable` for what may pass; let everything else through as it is.

    Raises:
        Unavailable: Of the dependency `DATABASE`: connection lost or refused, database full or
            shutting down, locked by another program for long, address or password wrong. Of none:
            deadlock.
    """
    try:
        yield
    except (
        sqlalchemy.exc.DBAPIError,
        sqlalchemy.exc.TimeoutError,
        *_of_postgresql(),
        sqlite3.Error,
        OSError,
    ) as error:
        text = f"the database is not available: {_first_line(error)}"
        match _kind_of(error):
            case _Kind.OUTAGE:
                raise Unavailable(text, Dependency.DATABASE) from error
            case _Kind.REFUSAL:
                raise Unavailable(text, Dependency.DATABASE, misconfigured=True) from error
            case _Kind.CONFLICT:
                raise Unavailable(text) from error
            case None:
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
    except (
        Unavailable,
        sqlalchemy.exc.DBAPIError,
        *_of_postgresql(),
    ) as error:
        # Open runs wait for the same refusal: it comes as `Unavailable`.
        cause = error.__cause__ or error if isinstance(error, Unavailable) else error
        if _is_refused(getattr(cause, "orig", None) or cause):
            raise Denied(f"DATABASE_URL: {place} cannot be used: {_first_line(cause)}") from error
        raise


def _is_refused(error: BaseException) -> bool:
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _REFUSED_SQLITE
    import asyncpg

    if isinstance(error, asyncpg.exceptions.ClientConfigurationError):
        return True
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return state.startswith(_REFUSED_STATES)
    return error.__cause__ is not None and _is_refused(error.__cause__)


class _Kind(Enum):
    """What may pass when the same transaction runs again."""

    OUTAGE = "the database cannot be used by anyone"
    REFUSAL = "it cannot be used with these settings"
    CONFLICT = "another transaction was in the way"


def _kind_of(error: BaseException) -> _Kind | None:
    if isinstance(error, socket.gaierror | ssl.SSLCertVerificationError):
        return _Kind.REFUSAL
    if isinstance(error, OSError | sqlalchemy.exc.TimeoutError):
        return _Kind.OUTAGE
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        cause: Any = error.orig
        found = None if cause is None else _reported(cause)
        return found or (_Kind.OUTAGE if error.connection_invalidated else None)
    return _reported(error)


def _reported(error: BaseException) -> _Kind | None:
    """What the driver's exception, or the one that it wraps, reports."""
    if isinstance(error, sqlite3.Error):
        return _reported_by_sqlite(error)
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return _reported_by_postgresql(state)
    cause = error.__cause__
    if cause is not None:
        return _reported(cause)
    import asyncpg

    # Without a state the error is the driver's own: its connection was closed under it.
    is_closed = isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)
    return _Kind.OUTAGE if is_closed else None


def _reported_by_sqlite(error: sqlite3.Error) -> _Kind | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    if code & 0xFF in _SQLITE_OUTAGES:
        return _Kind.OUTAGE
    if code & 0xFF in _SQLITE_REFUSALS:
        return _Kind.REFUSAL
    return _Kind.CONFLICT if code & 0xFF in _SQLITE_CONFLICTS else None


def _reported_by_postgresql(state: str) -> _Kind | None:
    if state.startswith(_OUTAGES):
        return _Kind.OUTAGE
    if state.startswith(_REFUSALS):
        return _Kind.REFUSAL
    return _Kind.CONFLICT if state in _CONFLICTS else None


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
