"""Values of worksheet cells: numbers, dates by number format, strings in bounded memory.

Values of worksheet cells: numbers, dates by number format, text escapes.

Source: ECMA-376 part 1, 18.8.30 (number formats), 18.17.4 (dates), 22.9.2.19 (escapes).

Shared strings of a workbook, in bounded memory.

Programs write nearly all of them as `<si><t>text</t></si>`. Runs of such items are taken without
the XML parser where every byte of them is known to mean itself; the parser reads all else.
"""

import math
import os
import re
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from types import TracebackType
from typing import BinaryIO, Final, Self

from adapters.files import limits
from adapters.files.package import DAMAGED, XmlStream, parse
from adapters.ports.errors import UnreadableDocument
from workflows.shared.cells import PERCENT_SIGN, Cell, Length, Signed, shown_number
from workflows.shared.currencies import currency_of

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
    LENGTH = "length"
    """A length of time, given as a text of its own kind."""


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


@dataclass(frozen=True)
class Sign:
    """A number format that shows a percent sign or a currency beside the number."""

    sign: str

    def shown(self, value: int | float) -> Cell:
        """The number with its sign; as it is if a float does not hold it."""
        return Signed(value, self.sign) if abs(value) < _EXACT else value


Shown = Format | Mask | Sign
"""What a cell format makes of a number."""

_BUILT_IN = (
    {code: Format.DATE for code in (*range(14, 18), *range(27, 32), *range(50, 59), 36)}
    | {code: Format.TIME for code in (*range(18, 22), *range(32, 36), *range(45, 48))}
    | {22: Format.DATETIME, 46: Format.LENGTH}
    | dict.fromkeys((9, 10), Sign(PERCENT_SIGN))
)
_SPACE: Final = re.compile(r"_.|\*.")
"""A blank as wide as a character, and one that fills the cell."""
_MARKED: Final = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
"""The currency of a format, with its language: `[$CHF-807]`."""
_DIGITS: Final = re.compile(r"[#0?,.]*[#0?][#0?,.]*")
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
    if (sign := _sign(pattern)) is not None:
        return Sign(sign)
    first = _LITERAL.sub("", pattern).split(";", 1)[0].lower()
    if _ELAPSED.search(first):
        return Format.LENGTH
    first = _BRACKETS.sub("", first).replace("general", "").replace("am/pm", "h")
    has_date = "d" in first or "y" in first or ("m" in first and not ("h" in first or "s" in first))
    has_time = "h" in first or "s" in first
    if has_date:
        return Format.DATETIME if has_time else Format.DATE
    return Format.TIME if has_time else Format.NUMBER


def _sign(pattern: str) -> str | None:
    """The percent sign or currency that a pattern shows beside a number; None: it shows none."""
    bare = _SPACE.sub(" ", pattern)
    if PERCENT_SIGN in _BRACKETS.sub("", _LITERAL.sub("", bare)).split(";", 1)[0]:
        return PERCENT_SIGN
    section = _BRACKETS.sub("", _MARKED.sub(r" \1 ", bare).split(";", 1)[0])
    beside, digits = _DIGITS.subn("1", section.replace("\\", "").replace('"', ""))
    return currency_of(beside) if digits == 1 else None


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
    if kind is Format.LENGTH and days < LONGEST_TIME:
        return Length(_clock(milliseconds))
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


def read_formats(blocks: Iterable[bytes]) -> list[Shown]:
    """What each cell format (`cellXfs` of the styles part, by index) makes of a number.

    Raises:
        UnreadableDocument: The part is damaged or hostile.
    """
    patterns: dict[int, str] = {}
    formats: list[int] = []
    within: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        within.append(name)
        if name == "numFmt" and within[-2:-1] == ["numFmts"] and len(patterns) < limits.STYLES:
            patterns[_int(attributes, "numFmtId")] = attributes.get("formatCode", "")[:512]
        elif name == "xf" and within[-2:-1] == ["cellXfs"]:
            if len(formats) >= limits.STYLES:
                raise UnreadableDocument(
                    f"the workbook holds more than {limits.STYLES:,} cell formats"
                )
            formats.append(_int(attributes, "numFmtId"))

    def end(name: str) -> None:
        within.pop()

    parse(blocks, XmlStream(start, end))
    return [number_format(code, patterns.get(code)) for code in formats]


def _int(attributes: dict[str, str], name: str) -> int:
    value = attributes.get(name, "0")
    return int(value) if value.isdecimal() and len(value) < 10 else 0


_END: Final = b"</si>"
_TOGETHER: Final = 64
"""Items that the XML parser gets together where one of them is not plain."""
_BETWEEN: Final = b"</t></si><si><t>"
_FIRST: Final = b"<si><t>"
_LAST: Final = b"</t></si>"
_ENTITIES: Final = (
    *((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&apos;", b"'")),
    (b"&amp;", b"&"),
)
"""Those that XML knows by itself; the ampersand last, so that none is made on the way."""


class SharedStrings:
    """Strings by index: a list while they are few, packed in memory, in temporary files at last."""

    _IN_MEMORY = 16 * limits.MB
    _LISTED = 32 * limits.MB

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        """Start empty; `in_memory` is the size in bytes from which on files are used."""
        self._in_memory = in_memory
        self._listed: list[str | None] | None = []
        self._listed_bytes = 0
        self._packed = bytearray()
        self._ends = array("Q", [0])
        self._files: tuple[BinaryIO, BinaryIO] | None = None
        self._spilled_bytes = 0
        self._count = 0
        self.by_digits = Memo(self._by_digits)
        """Strings by the digits of their index, as a cell holds them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files or ():
            file.close()

    def load(self, blocks: Iterable[bytes]) -> None:
        """Read the shared strings part.

        Raises:
            UnreadableDocument: It is damaged or hostile.
        """
        parser = _StringsParser(self._add)
        buffer = b""
        for block in blocks:
            buffer = buffer + block if buffer else block
            end = buffer.rfind(_END) + len(_END)
            if end < len(_END):
                # Perhaps no strings at all; text that never ends is for the parser to refuse.
                if len(buffer) > limits.MB:
                    parser.stream.feed(buffer)
                    buffer = b""
                continue
            self._take(buffer[:end], parser)
            buffer = buffer[end:]
        parser.stream.feed(buffer, final=True)
        if self._files is not None:
            self._spill()
            for file in self._files:
                file.flush()

    def _take(self, buffer: bytes, parser: "_StringsParser") -> None:
        """Read what ends with an item."""
        if not parser.between_items:
            # The start of the part, or the rest of an item whose parts look like one.
            end = buffer.index(_END) + len(_END)
            parser.stream.feed(buffer[:end])
            buffer = buffer[end:]
        if not buffer:
            return
        if parser.between_items and (found := _plain(buffer)) is not None:
            self._add(found)
            return
        items = buffer.split(_END)[:-1]
        for start in range(0, len(items), _TOGETHER):
            part = _END.join(items[start : start + _TOGETHER]) + _END
            found = _plain(part) if parser.between_items else None
            if found is None:
                parser.stream.feed(part)
            else:
                self._add(found)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < self._count:
            raise UnreadableDocument(f"a cell refers to shared string {index}, which is not there")
        if self._listed is not None:
            return self._listed[index] or ""
        if self._files is None:
            return self._packed[self._ends[index] : self._ends[index + 1]].decode("utf-8")
        strings, ends = self._files
        begin, end = array("Q", os.pread(ends.fileno(), 16, index * 8))
        return os.pread(strings.fileno(), end - begin, begin).decode("utf-8")

    def cells(self, raws: Sequence[bytes | None]) -> list[Cell]:
        """The strings of cells by the digits that they hold; a blank cell holds none."""
        if self._listed is not None:
            try:
                # `int` takes signs and underscores as well, and a negative index is another string.
                if b"".join(raws).isdigit():  # type: ignore[arg-type]
                    return list(map(self._listed.__getitem__, map(int, raws)))  # type: ignore[arg-type]
            except (TypeError, ValueError, IndexError):  # a blank, or no such string
                pass
        return list(map(self.by_digits.__getitem__, raws))

    def _by_digits(self, raw: bytes) -> str | None:
        digits = raw.strip()
        if not digits.isdigit() or len(digits) > 9:
            raise UnreadableDocument(f"{DAMAGED} (a cell refers to shared string {raw[:40]!r})")
        return self[int(digits)] or None

    def _add(self, texts: Sequence[str]) -> None:
        self._count += len(texts)
        if self._listed is None:
            self._pack(texts)
            return
        self._listed.extend(text or None for text in texts)
        self._listed_bytes += sum(map(sys.getsizeof, texts)) + 8 * len(texts)
        if self._listed_bytes > min(self._LISTED, 2 * self._in_memory):
            listed, self._listed = self._listed, None
            self._pack([text or "" for text in listed])

    def _pack(self, texts: Sequence[str]) -> None:
        encoded = [text.encode("utf-8") for text in texts]
        begin = self._spilled_bytes + len(self._packed)
        self._packed += b"".join(encoded)
        self._ends.extend(begin + end for end in accumulate(map(len, encoded)))
        if len(self._packed) + 8 * len(self._ends) > self._in_memory:
            self._spill()

    def _spill(self) -> None:
        if self._files is None:
            new = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed on exit
            self._files = new[0], new[1]
        strings, ends = self._files
        strings.write(self._packed)
        ends.write(self._ends.tobytes())
        self._spilled_bytes += len(self._packed)
        self._packed.clear()
        del self._ends[:]


class _StringsParser:
    """Collects each `si`: its text, or its rich text runs joined, without phonetic runs."""

    def __init__(self, add: Callable[[Sequence[str]], None]) -> None:
        self.stream = XmlStream(self._start, self._end, self._text)
        self._add = add
        self._pieces: list[str] = []
        self._length = 0
        self._collecting = False
        self._phonetic = 0
        self._boundary = 0

    @property
    def between_items(self) -> bool:
        """Whether all that was fed is consumed, and the next item may begin."""
        stream = self.stream
        return (
            stream.depth == 1
            and self._boundary == stream.fed
            and stream.encoding == "utf-8"
            and not (self._collecting or self._phonetic)
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "t":
            self._collecting = not self._phonetic
        elif name == "si":
            self._pieces.clear()
            self._length = 0
        elif name == "rPh":
            self._phonetic += 1

    def _text(self, value: str) -> None:
        if self._collecting:
            self._pieces.append(value)
            self._length += len(value)
            if self._length > limits.CELL_CHARACTERS:
                raise UnreadableDocument(
                    f"a cell holds more than {limits.CELL_CHARACTERS:,} characters"
                )

    def _end(self, name: str) -> None:
        if name == "t":
            self._collecting = False
        elif name == "si":
            self._add([text("".join(self._pieces)) or ""])
            self._boundary = self.stream.parser.CurrentByteIndex + len(_END)
        elif name == "rPh":
            self._phonetic -= 1


def _plain(items: bytes) -> list[str] | None:
    """The texts of complete items that are all plain; None: they are not."""
    items = items.replace(b'<t xml:space="preserve">', b"<t>")
    if not items.startswith(_FIRST) or not items.endswith(_LAST):
        return None
    found = items[len(_FIRST) : -len(_LAST)].split(_BETWEEN)
    joined = b"\0".join(found)
    if b"&" in joined:
        if joined.count(b"&") != sum(joined.count(entity) for entity, _ in _ENTITIES):
            return None
        # What entities stand for is text, and not markup that was left.
        if b"<" in joined or b">" in joined:
            return None
        for entity, meant in _ENTITIES:
            joined = joined.replace(entity, meant)
        others = joined.translate(None, TEXT_BYTES + b"<>&")
    else:
        others = joined.translate(None, TEXT_BYTES)
    if others.strip(b"\0") or len(others) != len(found) - 1:
        return None
    try:
        texts = joined.decode("utf-8").split("\0")
    except UnicodeDecodeError:
        return None
    if max(map(len, texts)) > limits.CELL_CHARACTERS:
        return None
    return [text(each) or "" for each in texts] if "_x" in "".join(texts) else texts
