"""Values of attributes whose type the file does not say, or says too loosely."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from types import MappingProxyType
from typing import Any, Final

from contracts.jobs.vectors import ColumnType

_INT64: Final = range(-(1 << 63), 1 << 63)
_EXACT: Final = 1 << 53
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?"
)


def column_of(values: Sequence[Any]) -> tuple[ColumnType, list[Any], str | None]:
    """The type that holds all values, the values in it, and what had to be changed.

    Args:
        values: As JSON has them; None is not a value. Objects and lists become JSON text.
    """
    kinds: set[type[Any]] = {type(value) for value in values if value is not None}
    if not kinds:
        return ColumnType.TEXT, list(values), None
    if kinds == {str}:
        return text_column(values)
    if kinds == {bool}:
        return ColumnType.BOOLEAN, list(values), None
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return ColumnType.INTEGER, list(values), None
    if kinds <= {int, float} and float in kinds and all(map(_is_exact, values)):
        return ColumnType.REAL, [None if v is None else float(v) for v in values], None
    return ColumnType.TEXT, [_as_text(value) for value in values], _why(kinds)


def text_column(values: Iterable[str | None]) -> tuple[ColumnType, list[Any], str | None]:
    """A column of dates, of dates and times, or of text: what all values are."""
    texts = list(values)
    present = [text for text in texts if text is not None]
    try:
        if present and all(map(_DATE.fullmatch, present)):
            return ColumnType.DATE, [text and date.fromisoformat(text) for text in texts], None
        found = [_MOMENT.fullmatch(text) for text in present]
        if not present or not all(found):
            return ColumnType.TEXT, texts, None
        zoned = {bool(each and each[3]) for each in found}
        moments = [None if text is None else datetime.fromisoformat(text) for text in texts]
    except ValueError:
        return ColumnType.TEXT, texts, None
    if zoned == {False}:
        return ColumnType.TIMESTAMP, moments, None
    if zoned == {True, False}:
        return ColumnType.TEXT, texts, "some times have a zone and some have none; kept as text"
    return ColumnType.INSTANT, *_in_utc(moments)


def _in_utc(moments: Sequence[datetime | None]) -> tuple[list[datetime | None], str | None]:
    shifted = any(moment is not None and moment.utcoffset() for moment in moments)
    note = "times of other zones were brought to UTC; the instant is the same" if shifted else None
    return [moment and moment.astimezone(UTC) for moment in moments], note


def ordinal_of(value: Any) -> int | None:
    """A date as days, a time or moment as microseconds since 1970 or midnight."""
    if value is None:
        return None
    if isinstance(value, datetime):
        delta = value.replace(tzinfo=None) - datetime(1970, 1, 1)
        return delta // (delta.resolution)
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond
    return value.toordinal() - date(1970, 1, 1).toordinal()


def _is_exact(value: Any) -> bool:
    if isinstance(value, float):
        # JSON has no infinity: it is what a number beyond all others was read as.
        return math.isfinite(value)
    return value is None or -_EXACT <= value <= _EXACT


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _why(kinds: set[type[Any]]) -> str:
    if kinds <= {dict, list}:
        return "objects and lists are kept as JSON text"
    if kinds <= {int, float}:
        return "numbers that 64 bits cannot hold exactly are kept as text"
    names = ", ".join(sorted(_NAMES[kind] for kind in kinds))
    return f"values are of several types ({names}) and are kept as text"


_NAMES: Final = MappingProxyType(
    {
        str: "text",
        bool: "boolean",
        int: "integer",
        float: "number",
        dict: "object",
        list: "list",
    }
)
