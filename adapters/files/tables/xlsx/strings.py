"""Shared strings of a workbook, in bounded memory."""

import os
import tempfile
from array import array
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import BinaryIO, Self

from adapters.files import limits
from adapters.files.package import DAMAGED
from adapters.files.tables.xlsx.values import Memo, text
from adapters.files.xml import XmlStream, parse
from adapters.ports import UnreadableDocument


class SharedStrings:
    """Strings by index: packed in memory while they are few, in temporary files beyond that."""

    _IN_MEMORY = 16 * limits.MB

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        """Start empty; `in_memory` is the size in bytes from which on files are used."""
        self._in_memory = in_memory
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
        parse(blocks, _StringsParser(self._add).stream)
        if self._files is not None:
            self._spill()
            for file in self._files:
                file.flush()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < self._count:
            raise UnreadableDocument(f"a cell refers to shared string {index}, which is not there")
        if self._files is None:
            return self._packed[self._ends[index] : self._ends[index + 1]].decode("utf-8")
        strings, ends = self._files
        begin, end = array("Q", os.pread(ends.fileno(), 16, index * 8))
        return os.pread(strings.fileno(), end - begin, begin).decode("utf-8")

    def _by_digits(self, raw: bytes) -> str | None:
        digits = raw.strip()
        if not digits.isdigit() or len(digits) > 9:
            raise UnreadableDocument(f"{DAMAGED} (a cell refers to shared string {raw[:40]!r})")
        return self[int(digits)] or None

    def _add(self, value: str) -> None:
        self._packed += value.encode("utf-8")
        self._count += 1
        self._ends.append(self._spilled_bytes + len(self._packed))
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

    def __init__(self, add: Callable[[str], None]) -> None:
        self.stream = XmlStream(self._start, self._end, self._text)
        self._add = add
        self._pieces: list[str] = []
        self._length = 0
        self._collecting = False
        self._phonetic = 0

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
            self._add(text("".join(self._pieces)) or "")
        elif name == "rPh":
            self._phonetic -= 1
