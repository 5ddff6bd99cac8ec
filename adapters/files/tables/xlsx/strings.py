"""Shared strings of a workbook, in bounded memory.

Programs write nearly all of them as `<si><t>text</t></si>`. Runs of such items are taken without
the XML parser where every byte of them is known to mean itself; the parser reads all else.
"""

import os
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from types import TracebackType
from typing import BinaryIO, Final, Self

from adapters.files import limits
from adapters.files.package import DAMAGED
from adapters.files.tables.xlsx.values import TEXT_BYTES, Memo, text
from adapters.files.xml import XmlStream
from adapters.ports import UnreadableDocument
from domain.tabular.rows import Cell

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
