"""Which database failures may pass when the same transaction runs again."""

import socket
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import asyncpg
import sqlalchemy.exc

from adapters.ports import Unavailable
from contracts.dependencies import Dependency

_OUTAGES = (
    "08",  # connection exceptions
    "53",  # insufficient resources: connections, memory, disk
    "57P",  # operator intervention: shutdown, crash, still starting
)
_REFUSALS = (
    "28",  # authorisation: user or password
    "3D",  # no such database
)
_CONFLICTS = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available
    }
)
_SQLITE_CONFLICTS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


@contextmanager
def translated() -> Generator[None]:
    """Raise `Unavailable` for what may pass; let everything else through as it is.

    Raises:
        Unavailable: Of the dependency `DATABASE`: connection lost or refused, database full or
            shutting down, address or password wrong. Of none: deadlock, database busy.
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


class _Kind(Enum):
    """What may pass when the same transaction runs again."""

    OUTAGE = "the database cannot be used by anyone"
    REFUSAL = "it cannot be used with these settings"
    CONFLICT = "another transaction was in the way"


def _kind_of(error: BaseException) -> _Kind | None:
    if isinstance(error, socket.gaierror):
        return _Kind.REFUSAL
    if isinstance(error, OSError | sqlalchemy.exc.TimeoutError):
        return _Kind.OUTAGE
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        cause: Any = error.orig
        found = None if cause is None else _reported(cause)
        return found or (_Kind.OUTAGE if error.connection_invalidated else None)
    return _reported(error)


def _reported(error: BaseException) -> _Kind | None:
    """What the driver's own exception, or the one behind SQLAlchemy's wrapper, reports."""
    if isinstance(error, sqlite3.Error):
        return _reported_by_sqlite(error)
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return _reported_by_postgresql(state)
    cause = error.__cause__
    if cause is not None:
        return _reported(cause)
    # Without a state the driver speaks of itself: its connection was closed under it.
    is_closed = isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)
    return _Kind.OUTAGE if is_closed else None


def _reported_by_sqlite(error: sqlite3.Error) -> _Kind | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return _Kind.OUTAGE
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
