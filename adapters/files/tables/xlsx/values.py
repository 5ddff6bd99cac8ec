"""Values of worksheet cells: numbers, dates by number format, text escapes.

Source: ECMA-376 part 1, 18.8.30 (number formats), 18.17.4 (dates), 22.9.2.19 (escapes).
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache

from adapters.files import limits
from domain.tabular.rows import Cell
from domain.tabular.values import shown_number

NUMBER = rb"[+-]?+(?:\d{1,308}+(?:\.\d{0,308}+)?+|\.\d{1,308}+)(?:[eE][+-]?+\d{1,3}+)?+"
"""A number as programs write it, as a pattern over bytes."""

TEXT_BYTES = bytes({*range(0x20, 0x100), 0x09, 0x0A} - {*b"<&>", 0xEF})
"""Bytes of UTF-8 that mean themselves in the text of an element, whatever stands beside them.

Left out: '<', '&' (markup), '>' (XML forbids ']]>'), control characters and '\\r' (XML forbids or
changes them), and 0xEF, the first byte of U+FFFE and U+FFFF, which XML forbids.
"""

_NUMBER = re.compile(NUMBER)
_SHOWN = 15
"""Digits that a user sees; a shorter text holds no more."""
_EXACT = 10**15
"""Below this every integral double is written without exponent or loss."""


def number(raw: bytes) -> int | float | str:
    """A number's value: an exact int when it is integral, else a float.

    Text that is not a finite number comes back as text, as it stands.
    """
    if raw.isdigit() or (raw[:1] in b"+-" and raw[1:].isdigit()):
        return int(raw) if len(raw) < 309 else raw.decode("utf-8")
    if _NUMBER.fullmatch(raw) is None:
        return raw.decode("utf-8")
    return matched_number(raw)


def matched_number(raw: bytes) -> int | float | str:
    """As `number`, for text that is known to match `NUMBER`."""
    if raw.isdigit():
        return int(raw)
    value = float(raw)
    if math.isinf(value):
        return raw.decode("utf-8")
    if len(raw) > _SHOWN:
        value = shown_number(value)
    return int(value) if value.is_integer() and -_EXACT < value < _EXACT else value


_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    is_text = code in (0x09, 0x0A, 0x0D) or (code >= 0x20 and not 0xD800 <= code <= 0xDFFF)
    return chr(code) if is_text else match[0]


def text(value: str) -> str | None:
    """A string with `_xHHHH_` escapes resolved; None when empty.

    Escapes of control characters that no database takes stay as they are written.
    """
    return (_ESCAPE.sub(_unescape, value) if "_x" in value else value) or None


class Format(Enum):
    """What a number format makes of a number."""

    NUMBER = "number"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    """A time of day or a length of time, given as text, hours:minutes:seconds; with a day as well
    where one of this calendar is meant."""


DIGIT = "\0"


@dataclass(frozen=True)
class Mask:
    """A number format that shows leading zeros: what it shows is a code."""

    parts: tuple[str, ...]
    """Literal text and the places of digits (`DIGIT`), in order."""

    def shown(self, value: int | float) -> Cell:
        """A whole number as the user's program shows it; others as they are."""
        if not isinstance(value, int) or value < 0:
            return value
        zeros = self.parts.count(DIGIT)
        digits = str(value).zfill(zeros)
        head, tail = digits[: len(digits) - zeros], list(digits[len(digits) - zeros :])
        tail[0] = head + tail[0]
        return "".join(tail.pop(0) if part == DIGIT else part for part in self.parts)


Shown = Format | Mask
"""What a cell format makes of a number."""

_BUILT_IN = (
    {code: Format.DATE for code in (*range(14, 18), *range(27, 32), *range(50, 59), 36)}
    | {code: Format.TIME for code in (*range(18, 22), *range(32, 36), *range(45, 48))}
    | {22: Format.DATETIME}
)
_MASK = re.compile(r'(?:"[^"]*"|\\.|[0 /()-])+')
_MASK_PART = re.compile(r'"([^"]*)"|\\(.)|(.)')
_LETTER_AT_END = re.compile(r"[^\W\d_][^\0]*$")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.')
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\]]*\]")


def number_format(code: int, pattern: str | None) -> Shown:
    """What a format does, from its id and, when the workbook defines it, its pattern."""
    if pattern is None:
        return _BUILT_IN.get(code, Format.NUMBER)
    if (mask := _mask(pattern)) is not None:
        return mask
    first = _LITERAL.sub("", pattern).split(";", 1)[0].lower()
    if _ELAPSED.search(first):
        return Format.TIME
    first = _BRACKETS.sub("", first).replace("general", "").replace("am/pm", "h")
    has_date = "d" in first or "y" in first or ("m" in first and not ("h" in first or "s" in first))
    has_time = "h" in first or "s" in first
    if has_date:
        return Format.DATETIME if has_time else Format.DATE
    return Format.TIME if has_time else Format.NUMBER


def _mask(pattern: str) -> Mask | None:
    """The mask that a pattern is; None where it shows a quantity, a day or a time."""
    section = _BRACKETS.sub("", pattern.split(";", 1)[0])
    if _MASK.fullmatch(section) is None:
        return None
    parts: list[str] = []
    for quoted, escaped, plain in _MASK_PART.findall(section):
        parts.extend([DIGIT] if plain == "0" else list(quoted + escaped + plain))
    shown = "".join(parts)
    # One zero is any whole number; letters behind the digits are a unit.
    if parts.count(DIGIT) < 2 or _LETTER_AT_END.search(shown):
        return None
    return Mask(tuple(parts))


LONGEST_TIME = 366
"""Days: a number that is shown as a time and is larger is a day of the calendar with a time."""
_LAST_SERIAL = 2_958_465  # 9999-12-31
_LEAP_BUG = 60  # 1900-02-29, a day that Excel knows and the calendar does not


def from_serial(value: int | float, kind: Format, date1904: bool) -> Cell:
    """A serial day number as date, datetime or time text; the number when it is none of them."""
    if kind is Format.NUMBER or not 0 <= value <= _LAST_SERIAL:
        return value
    milliseconds = round(value * 86_400_000)
    days, rest = divmod(milliseconds, 86_400_000)
    if kind is Format.TIME and days < LONGEST_TIME:
        return _clock(milliseconds)
    if days == 0 and not date1904:
        return _clock(milliseconds) if rest else value
    if date1904:
        epoch = date(1904, 1, 1)
    elif days == _LEAP_BUG:
        return value
    else:
        epoch = date(1899, 12, 30) if days > _LEAP_BUG else date(1899, 12, 31)
    if days > (date.max - epoch).days:
        return value
    day = epoch + timedelta(days=days)
    if kind is Format.DATE and not rest:
        return day
    return datetime(day.year, day.month, day.day) + timedelta(milliseconds=rest)


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{rest:03}" if rest else clock


class Memo(dict[bytes | None, Cell]):
    """Values by their bytes in the file, worked out once; None stands for a blank cell."""

    _MOST_VALUES = 1 << 16
    _MOST_CHARACTERS = 4 * limits.MB

    def __init__(self, value_of: Callable[[bytes], Cell]) -> None:
        super().__init__({None: None})
        self._value_of = value_of
        self._characters = 0

    def __missing__(self, raw: bytes) -> Cell:
        if len(self) >= self._MOST_VALUES or self._characters >= self._MOST_CHARACTERS:
            self.clear()
            self[None] = None
            self._characters = 0
        value = self[raw] = self._value_of(raw)
        if isinstance(value, str):
            self._characters += len(value)
        return value


@lru_cache(maxsize=1 << 15)
def column_number(letters: str) -> int:
    """0 for A, 25 for Z, 26 for AA; beyond every limit when it is not a column."""
    result = 0
    if len(letters) > 3:
        return limits.COLUMNS**2
    for letter in letters:
        result = result * 26 + ord(letter) - 64
    return result - 1
