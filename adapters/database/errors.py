"""Failures of the database that may pass, and what it cannot hold."""

import socket
import ssl
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final

import sqlalchemy.exc
from sqlalchemy import BigInteger, Integer, Text

from adapters.database.bulk.rows import RowBatch
from adapters.database.models.base import ABOVE_ALL, ExactDecimal, key_of
from adapters.ports.errors import Denied, Unavailable
from workflows.shared.contracts import Problem
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import TableChanged
from workflows.shared.packed_rows import PackedRows

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
_OTHER_TABLES = frozenset(
    {
        "3F000",  # no such schema
        "42P01",  # no such table
        "42703",  # no such column
        "42704",  # no such type
        "42804",  # a column of another type than the value
        "42846",  # a value cannot be cast to the type of the column
        "42883",  # no operator or function for the type of the column
        "42809",  # not the kind of object that is needed: a view, an aggregate
        "42P10",  # no unique index of these columns
        "428C9",  # the server itself fills the column
    }
)
_UNREAD = frozenset(
    {
        "22P02",  # a text that is no value of the type of the column
        "22P03",  # bytes that are none
        "22007",  # a text that is no day or moment
    }
)
_REFUSED_STATES = (
    "28",  # invalid authorization: user, password, rights to connect
    "3D",  # there is no such database
    "42501",  # insufficient privilege
)


def _of_postgresql() -> tuple[type[Exception], ...]:
    """What its driver raises; loaded with the first failure, or with the first connection."""
    import asyncpg

    return asyncpg.PostgresError, asyncpg.InterfaceError


@contextmanager
def translated(
    place: str = "the database",
    dependency: Dependency = Dependency.DATABASE,
    name: str | None = None,
) -> Generator[None]:
    """Raise `Unavailable` for what may pass, and `TableChanged` for tables that are other ones.

    Everything else comes through as it is.

    Args:
        place: What to call the database.
        dependency: What to wait for.
        name: Which one, where there are many.

    Raises:
        Unavailable: Of the dependency: connection lost or refused, database full or shutting down,
            locked by another program for long, address or password wrong. Of none: deadlock, or a
            table has changed since a statement was prepared.
        TableChanged: A table or column of docflow's database was dropped or renamed, or has
            another kind.
    """
    try:
        yield
    except (
        sqlalchemy.exc.DBAPIError,
        sqlalchemy.exc.TimeoutError,
        *_of_postgresql(),
        OSError,
    ) as error:
        text = f"{place} is not available: {_first_line(error)}"
        match _kind_of(error):
            case _Kind.OUTAGE:
                raise Unavailable(text, dependency, name=name) from error
            case _Kind.REFUSAL:
                raise Unavailable(text, dependency, name=name, misconfigured=True) from error
            case _Kind.CONFLICT:
                raise Unavailable(text) from error
            case None if (differs := _of_another_table(error)) is not None:
                raise _other_table(differs) from error
            case None:
                raise


@contextmanager
def writing_typed() -> Generator[None]:
    """Raise `TableChanged` if a column has another kind than the values that are written to it.

    For values that are of the kinds that docflow knows columns with: nobody else wrote them.

    Raises:
        TableChanged: Their server, or its driver, cannot read one as a value of its column.
    """
    import asyncpg

    try:
        yield
    except (sqlalchemy.exc.DBAPIError, asyncpg.PostgresError, asyncpg.DataError) as error:
        cause = cause_of(error)
        if isinstance(cause, asyncpg.DataError) or getattr(cause, "sqlstate", None) in _UNREAD:
            raise _other_table(_first_line(cause)) from error
        raise


def _other_table(differs: str) -> TableChanged:
    return TableChanged(
        f"a table is not as this needs it: {differs}. It was dropped or renamed, or has another "
        "kind. Restore it, or run `docflow db upgrade`, and retry"
    )


def _of_another_table(error: BaseException) -> str | None:
    """What the driver's exception, or the one that it wraps, says of a table that has changed."""
    cause = getattr(error, "orig", None) or error
    while getattr(cause, "sqlstate", None) is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return _first_line(cause) if getattr(cause, "sqlstate", None) in _OTHER_TABLES else None


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
    if is_stale(error):
        return _Kind.CONFLICT
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        cause: Any = error.orig
        found = None if cause is None else _reported(cause)
        return found or (_Kind.OUTAGE if error.connection_invalidated else None)
    return _reported(error)


def _reported(error: BaseException) -> _Kind | None:
    """What the driver's exception, or the one that it wraps, reports."""
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


def _reported_by_postgresql(state: str) -> _Kind | None:
    if state.startswith(_OUTAGES):
        return _Kind.OUTAGE
    if state.startswith(_REFUSALS):
        return _Kind.REFUSAL
    return _Kind.CONFLICT if state in _CONFLICTS else None


def cause_of(error: BaseException) -> Any:
    """Return what the driver itself raised."""
    found = getattr(error, "orig", None) or error
    return found.__cause__ or found


def is_stale(error: BaseException) -> bool:
    """Whether a statement was prepared before its table changed: the next attempt prepares it."""
    import asyncpg

    return isinstance(cause_of(error), asyncpg.exceptions.InvalidCachedStatementError)


def _first_line(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__


_KEY_BYTES: Final = 2_000
"""An index entry of PostgreSQL holds 2,704 bytes."""
_SHOWN: Final = 200


def unstorable(batch: RowBatch) -> dict[int, Problem]:
    """The rows that cannot be stored, by place, with what is wrong.

    Whole columns are looked at first; single values only when something is wrong.
    """
    if isinstance(batch.rows, PackedRows):
        return {}
    found: dict[int, Problem] = {}
    for column, values in zip(batch.columns, batch.values, strict=True):
        kind = batch.table.c[column].type
        for row, reason in _faults(kind, values):
            value = str(values[row])[:_SHOWN].encode("utf-8", "replace").decode()
            found.setdefault(
                row,
                Problem(line=batch.lines[row], column=column, value=value, reason=reason),
            )
    for row in _long_keys(batch, found):
        reason = f"the key is longer than {_KEY_BYTES:,} bytes; shorten it"
        found.setdefault(row, Problem(line=batch.lines[row], reason=reason))
    return found


def _faults(kind: Any, values: Sequence[Any]) -> Iterator[tuple[int, str]]:
    if isinstance(kind, Text):
        yield from _bad_texts(values)
    elif isinstance(kind, ExactDecimal):
        yield from _bad_decimals(values)
    elif isinstance(kind, Integer):
        bits = 63 if isinstance(kind, BigInteger) else 31
        yield from _bad_integers(values, 1 << bits)


def _bad_texts(values: Sequence[str | None]) -> Iterator[tuple[int, str]]:
    if _is_clean("".join(filter(None, values))):
        return
    for row, value in enumerate(values):
        if value is not None and not _is_clean(value):
            yield row, "holds a character that cannot be stored; remove it"


def _is_clean(text: str) -> bool:
    """Neither NUL nor half of a surrogate pair."""
    if "\0" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _bad_decimals(values: Sequence[Decimal | int | None]) -> Iterator[tuple[int, str]]:
    if _are_decimals([value for value in values if value is not None]):
        return
    for row, value in enumerate(values):
        if value is not None and not _is_decimal(value):
            yield row, "is not a number of at most 14 digits before the decimal point"


def _are_decimals(values: Sequence[Decimal | int]) -> bool:
    try:
        return min(values, default=0) > -ABOVE_ALL and max(values, default=0) < ABOVE_ALL
    except InvalidOperation:  # NaN has no order
        return False


def _is_decimal(value: Decimal | int) -> bool:
    if isinstance(value, Decimal) and not value.is_finite():
        return False
    return -ABOVE_ALL < value < ABOVE_ALL


def _bad_integers(values: Sequence[int | None], limit: int) -> Iterator[tuple[int, str]]:
    numbers = [value for value in values if value is not None]
    if -limit <= min(numbers, default=0) and max(numbers, default=0) < limit:
        return
    for row, value in enumerate(values):
        if value is not None and not -limit <= value < limit:
            yield row, "is too large a whole number"


def _long_keys(batch: RowBatch, faulty: dict[int, Problem]) -> Iterator[int]:
    names = [name for name in key_of(batch.table) if isinstance(batch.table.c[name].type, Text)]
    columns = [batch.column(name) for name in names]
    if sum(max(map(len, column), default=0) for column in columns) * 4 <= _KEY_BYTES:
        return
    for row, key in enumerate(zip(*columns, strict=True)):
        if row not in faulty and sum(len(part.encode()) for part in key) > _KEY_BYTES:
            yield row
