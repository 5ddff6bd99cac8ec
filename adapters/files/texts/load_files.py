"""Load files of Concordance (DAT): rows of documents with what is known of each.

A field stands between thorns, and may hold line breaks; the control character 20 parts fields, or
another one that a program was told; a registered sign stands for a line break within a field.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.encodings import encoding_of
from adapters.files.texts.findings import Findings

_QUOTE, _BETWEEN, _LINE_BREAK = "\u00fe", "\x14", "\u00ae"
_MARKS: Final = bytes(map(ord, (_QUOTE, _BETWEEN, _LINE_BREAK)))
_EIGHT_BITS: Final = "latin-1"
"""Thorns and signs are the same bytes in all load files of eight bits, whatever letters are."""
_ENCODINGS: Final = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", _EIGHT_BITS)
"""In this order: what is valid in one of them begins otherwise in the others."""
_QUOTED: Final = re.compile(rf"{_QUOTE}[^{_QUOTE}]*{_QUOTE}(?:([^\w\s])(?={_QUOTE})|\Z)")
_FIRST_LINE: Final = re.compile(r"[\r\n]*([^\r\n]+)")
_HEAD: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class LoadFile:
    """How a load file is written."""

    encoding: str
    between: re.Pattern[str]
    """What parts two fields."""


def load_file_of(head: bytes) -> LoadFile | None:
    """How a load file is written, by its first bytes; None: it is none."""
    for encoding in _ENCODINGS:
        if encoding == "utf-16" and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            continue
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeError:
            continue
        first = _FIRST_LINE.match(text)
        if first and "\0" not in text and (between := _between(first[1])):
            return LoadFile(encoding, between)
    return None


def _between(line: str) -> re.Pattern[str] | None:
    """What parts the fields of a first line; None: it is none of a load file."""
    if _BETWEEN in line:
        return re.compile(_BETWEEN)
    places = list(_QUOTED.finditer(line))
    if "".join(place[0] for place in places) != line or len({each[1] for each in places}) > 2:
        return None
    return re.compile(f"(?<={_QUOTE}){re.escape(places[0][1] or _BETWEEN)}(?={_QUOTE})")


def read_load_file(path: Path, into: Findings) -> None:
    """Read each row as lines of field and value, under the names of the first row."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    found = load_file_of(head) or LoadFile(_EIGHT_BITS, re.compile(_BETWEEN))
    letters = _letters_of(path, found.encoding)
    into.describe("encoding", letters or found.encoding)
    damaged = rows = 0
    with path.open(encoding=found.encoding, errors="replace", newline="") as file:
        table = _rows(file, found.between, letters)
        names = next(table, list[str]())
        for row in table:
            if into.is_late or into.is_cut_off:
                into.cut_off(f"only the first {rows:,} rows were read")
                break
            rows += 1
            damaged += len(row) != len(names)
            into.add_text(_shown(names, row))
    into.describe("rows", str(rows))
    if not rows:
        into.add_text("\n".join(names))
        into.note("it has no rows below the names of its fields")
    if damaged:
        into.note(f"rows with more or fewer fields than the first: {damaged:,} of {rows:,}")


def _letters_of(path: Path, encoding: str) -> str | None:
    """The encoding of letters in a file of eight bits, which says none; None: it is another."""
    if encoding != _EIGHT_BITS:
        return None
    with path.open("rb") as file:
        content = file.read(limits.TEXT_BYTES).translate(None, _MARKS)
    return encoding_of(content, None)[0]


def _rows(
    lines: Iterable[str], between: re.Pattern[str], letters: str | None
) -> Iterator[list[str]]:
    row: list[str] = []
    last: list[str] = []
    for line in lines:
        first, *further = between.split(line.rstrip("\r\n"))
        last.append(first)
        if further:
            row += ["\n".join(last), *further[:-1]]
            last = [further[-1]]
        if _is_open(last):
            continue
        if row or any(last):
            yield [_value(field, letters) for field in (*row, "\n".join(last))]
        row, last = [], []
    if row or any(last):
        yield [_value(field, letters) for field in (*row, "\n".join(last))]


def _is_open(pieces: Sequence[str]) -> bool:
    """Whether a field goes on in the next line."""
    begins, ends = pieces[0].startswith(_QUOTE), pieces[-1].endswith(_QUOTE)
    return begins and (not ends or pieces == [_QUOTE])


def _value(field: str, letters: str | None) -> str:
    value = field.removeprefix(_QUOTE).removesuffix(_QUOTE).replace(_LINE_BREAK, "\n")
    return value if letters is None else value.encode(_EIGHT_BITS).decode(letters, "replace")


def _shown(names: Sequence[str], row: Sequence[str]) -> str:
    pairs = enumerate(zip_longest(names, row, fillvalue=""), start=1)
    shown = [f"{name or f'field {number}'}: {value}\n" for number, (name, value) in pairs if value]
    return "".join(shown) + "\n"
