"""Rows of a small batch, sent with the statement that writes them: one text for each column.

For 200 rows of 12 columns the client takes half the processor time that binary records of COPY or
arrays take, whose values the driver encodes one by one, and the server is spared the temporary
table that rows of COPY wait in.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Date, Integer, Text

from adapters.database.bulk.protocol import RowBatch
from adapters.database.models.base import ExactDecimal

SEPARATOR: Final = "\x1f"
NOTHING: Final = "\x1e"
"""Stands where a row has no value."""
_NONE: Final = type(None)
_TEXTS: Final = frozenset({str, _NONE})
_NUMBERS: Final = frozenset({Decimal, int, _NONE})
_INTEGERS: Final = frozenset({int, _NONE})
_DATES: Final = frozenset({date, _NONE})
_NOTHING: Final = frozenset({_NONE})


def parameter(name: str) -> str:
    """The parameter that holds a column."""
    return f"sent_{name}"


def sent(batch: RowBatch) -> Mapping[str, str] | None:
    """The parameters that hold the columns of a batch and `source_line`.

    Returns:
        None where a column has values that a text cannot stand for.
    """
    found = {parameter("source_line"): SEPARATOR.join(map(str, batch.lines))}
    for name, values in zip(batch.columns, batch.values, strict=True):
        text = _joined(batch.table.c[name].type, values)
        if text is None:
            return None
        found[parameter(name)] = text
    return found


def _joined(kind: Any, values: Sequence[Any]) -> str | None:
    types = list(map(type, values))
    if not _types_of(kind).issuperset(types):
        return None
    absent = types.count(_NONE)
    if absent:
        texts = [NOTHING if value is None else str(value) for value in values]
    else:
        texts = values if isinstance(kind, Text) else list(map(str, values))
    joined = SEPARATOR.join(texts)
    # A text may hold the marks; and nothing at all is no array of one empty text.
    if not joined or joined.count(SEPARATOR) != len(values) - 1:
        return None
    return joined if joined.count(NOTHING) == absent else None


def _types_of(kind: Any) -> frozenset[type]:
    """Those whose `str` is what the database reads."""
    if isinstance(kind, Text):
        return _TEXTS
    if isinstance(kind, ExactDecimal):
        return _NUMBERS
    if isinstance(kind, Integer):
        return _INTEGERS
    return _DATES if isinstance(kind, Date) else _NOTHING
