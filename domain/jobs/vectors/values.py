"""Values of attributes whose type the file does not say, or says too loosely."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
_EXACT_DIGITS: Final = 15
_NUMBERS: Final = frozenset({ColumnType.INTEGER, ColumnType.REAL})
_MOMENTS: Final = frozenset({ColumnType.TIMESTAMP, ColumnType.INSTANT})


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


class Texts:
    """The type of a column of texts, found chunk by chunk: what all of them are.

    Args:
        has_numbers: Texts that are written as numbers make a column of numbers; `007` is none.
        are_times: Texts that are none do not count.
    """

    def __init__(self, *, has_numbers: bool = False, are_times: bool = False) -> None:
        self._has_numbers = has_numbers
        self._are_times = are_times
        self._kinds: set[ColumnType] = set()
        self._is_shifted = False

    def add(self, texts: Iterable[str | None]) -> None:
        """Look at some more of them."""
        for text in texts:
            if ColumnType.TEXT in self._kinds:
                return
            if text is not None:
                kind = self._kind_of(text)
                if not self._are_times or kind in _MOMENTS:
                    self._kinds.add(kind)

    def _kind_of(self, text: str) -> ColumnType:
        if self._has_numbers and _NUMBER.fullmatch(text):
            # More digits than a number of 64 bits keeps are text.
            is_exact = len(text.lstrip("-").replace(".", "")) <= _EXACT_DIGITS
            kind = ColumnType.REAL if "." in text else ColumnType.INTEGER
            return kind if is_exact else ColumnType.TEXT
        try:
            if _DATE.fullmatch(text):
                date.fromisoformat(text)
                return ColumnType.DATE
            if (found := _MOMENT.fullmatch(text)) is None:
                return ColumnType.TEXT
            self._is_shifted |= bool(datetime.fromisoformat(text).utcoffset())
        except ValueError:
            return ColumnType.TEXT
        return ColumnType.INSTANT if found[3] else ColumnType.TIMESTAMP

    @property
    def kind(self) -> ColumnType:
        """The type that holds all of them."""
        if frozenset(self._kinds) == _NUMBERS:
            return ColumnType.REAL
        return max(self._kinds) if len(self._kinds) == 1 else ColumnType.TEXT

    @property
    def note(self) -> str | None:
        """What has to be changed."""
        if frozenset(self._kinds) == _MOMENTS:
            return "some times have a zone and some have none; kept as text"
        if self._is_shifted and self.kind is ColumnType.INSTANT:
            return "times of other zones were brought to UTC; the instant is the same"
        return None


def text_column(values: Iterable[str | None]) -> tuple[ColumnType, list[Any], str | None]:
    """A column of dates, of dates and times, or of text: what all values are."""
    texts, found = list(values), Texts()
    found.add(texts)
    return found.kind, from_texts(found.kind, texts), found.note


def from_texts(kind: ColumnType, texts: Iterable[str | None]) -> list[Any]:
    """Values of texts, of the type that `Texts` has found."""
    read = _READ.get(kind)
    return [text if text is None or read is None else read(text) for text in texts]


def _in_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


_READ: Final[Mapping[ColumnType, Callable[[str], Any]]] = MappingProxyType(
    {
        ColumnType.INTEGER: int,
        ColumnType.REAL: float,
        ColumnType.DATE: date.fromisoformat,
        ColumnType.TIMESTAMP: datetime.fromisoformat,
        ColumnType.INSTANT: _in_utc,
    }
)


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
