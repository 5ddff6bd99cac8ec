"""What no database of ours can hold, found before it fails a whole chunk."""

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from sqlalchemy import BigInteger, Integer, Text

from adapters.database.bulk.protocol import RowBatch
from adapters.database.models.base import ABOVE_ALL, ExactDecimal, key_of
from contracts.problems import Problem
from domain.tabular.packed import PackedRows

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
