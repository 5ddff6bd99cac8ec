"""Files that are texts or hold files: plain text, calendars, cards, load files, ZIP archives.

Calendars and business cards: their lines are folded in the middle of words.

Source: RFC 5545 3.1 and 3.3.11, RFC 6350 3.2, vCard 2.1.

Load files of Concordance (DAT): rows of documents with what is known of each.

A field stands between thorns, and may hold line breaks; the control character 20 parts fields, or
another one that a program was told; a registered sign stands for a line break within a field.
"""

import codecs
import quopri
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.encodings import encoding_of, find_encoding, is_nearly_utf_8, page_encoding
from adapters.files.package import open_package
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import html_page
from adapters.ports.errors import UnreadableDocument


def read_plain(path: Path, into: Findings) -> None:
    """Read a text in whatever encoding it is in; bytes that mean nothing in it become U+FFFD.

    Raises:
        UnreadableDocument: It is not text.
    """
    encoding = _encoding(path, into)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        while not into.is_cut_off and (piece := file.read(limits.TEXT_BLOCK_CHARACTERS)):
            into.add_text(piece)


def read_page(path: Path, into: Findings) -> None:
    """Read what a reader of an HTML page would see.

    Raises:
        UnreadableDocument: It is not text.
    """
    encoding = _encoding(path, into)
    with path.open("rb") as file:
        content = file.read(limits.TEXT_BYTES)
        if file.read(1):
            into.cut_off("only the beginning of the page was read")
    if not encoding.startswith("utf") and (declared := page_encoding(content)):
        encoding, _ = encoding_of(content, declared)
    page = html_page(content.decode(encoding, "replace"))
    into.title = page.title
    into.add_text(page.text)


def _encoding(path: Path, into: Findings) -> str:
    encoding = find_encoding(path)
    if encoding is None:
        raise UnreadableDocument("the document holds NUL characters, and is not text")
    if not encoding.startswith("utf"):
        with path.open("rb") as file:
            if is_nearly_utf_8(file.read(limits.TEXT_BYTES)):
                encoding = "utf-8"
                into.note(
                    "some bytes of the text are not UTF-8, as the rest is; they became U+FFFD"
                )
    into.describe("encoding", encoding)
    return encoding


_FOLD: Final = re.compile(rb"\r?\n[ \t]")
_SOFT_BREAK: Final = re.compile(rb"=\r?\n")
_ESCAPED: Final = re.compile(r"\\([\\;,nN])")
_CHARSET: Final = re.compile(r";CHARSET=([\w-]+)", re.IGNORECASE)
_QUOTED: Final = "QUOTED-PRINTABLE"
_TITLES: Final = ("SUMMARY", "FN")
_BINARY: Final = re.compile(r";ENCODING=(B|BASE64)\b", re.IGNORECASE)


def read_entries(path: Path, into: Findings) -> None:
    """Read each line as a whole; files inside are only named."""
    with path.open("rb") as file:
        content = file.read(limits.TEXT_BYTES)
        if file.read(1):
            into.cut_off("only the beginning of the entries was read")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", "replace").encode()
    for line in entry_lines(content, into):
        into.add_text(f"{line}\n")


def entry_lines(content: bytes, into: Findings) -> Iterator[str]:
    """Lines of a calendar or of business cards, each as a whole."""
    lines = _FOLD.sub(b"", content).replace(b"\r\n", b"\n")
    held = 0
    for line in _joined(lines).split(b"\n"):
        name, _, value = line.partition(b":")
        field = name.decode("latin-1")
        if _BINARY.search(field):
            held += 1
            continue
        text = _value(field, value)
        if field.partition(";")[0].upper() in _TITLES and into.title is None:
            into.title = text
        yield f"{field}:{text}" if value else field
    if held:
        into.note(f"pictures and files inside that are not taken out: {held:,}")


def _joined(content: bytes) -> bytes:
    """Lines of vCard 2.1, which go on behind an equals sign."""
    return _SOFT_BREAK.sub(b"", content) if _QUOTED.encode() in content.upper() else content


def _value(field: str, value: bytes) -> str:
    if _QUOTED in field.upper():
        value = quopri.decodestring(value)
    charset = _CHARSET.search(field)
    encoding, _ = encoding_of(value, charset[1] if charset else None)
    text = value.decode(encoding, "replace")
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], text)


_QUOTE, _BETWEEN, _LINE_BREAK = "\u00fe", "\x14", "\u00ae"
_MARKS: Final = bytes(map(ord, (_QUOTE, _BETWEEN, _LINE_BREAK)))
_EIGHT_BITS: Final = "latin-1"
"""Thorns and signs are the same bytes in all load files of eight bits, whatever letters are."""
_ENCODINGS: Final = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", _EIGHT_BITS)
"""In this order: what is valid in one of them begins otherwise in the others."""
_QUOTED_FIELD: Final = re.compile(rf"{_QUOTE}[^{_QUOTE}]*{_QUOTE}(?:([^\w\s])(?={_QUOTE})|\Z)")
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
    places = list(_QUOTED_FIELD.finditer(line))
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
            yield [_field_value(field, letters) for field in (*row, "\n".join(last))]
        row, last = [], []
    if row or any(last):
        yield [_field_value(field, letters) for field in (*row, "\n".join(last))]


def _is_open(pieces: Sequence[str]) -> bool:
    """Whether a field goes on in the next line."""
    begins, ends = pieces[0].startswith(_QUOTE), pieces[-1].endswith(_QUOTE)
    return begins and (not ends or pieces == [_QUOTE])


def _field_value(field: str, letters: str | None) -> str:
    value = field.removeprefix(_QUOTE).removesuffix(_QUOTE).replace(_LINE_BREAK, "\n")
    return value if letters is None else value.encode(_EIGHT_BITS).decode(letters, "replace")


def _shown(names: Sequence[str], row: Sequence[str]) -> str:
    pairs = enumerate(zip_longest(names, row, fillvalue=""), start=1)
    shown = [f"{name or f'field {number}'}: {value}\n" for number, (name, value) in pairs if value]
    return "".join(shown) + "\n"


def read_archive(path: Path, into: Findings) -> None:
    """Take out the files; their names are the text of the archive.

    Raises:
        UnreadableDocument: It is damaged, needs a password, or unpacks to far more than it holds.
    """
    with open_package(path, "archive") as package:
        for name, size, content in package.files():
            into.add_text(f"{name}\n")
            if into.is_late:
                into.note("not all of its files were taken out: time was over")
                break
            try:
                into.keep_pieces(name, content, size)
            except UnreadableDocument as error:
                into.note(f"a file was not taken out: {error}")
        if package.names_encoding:
            into.note(
                "the archive does not say in which encoding the names of its files are:"
                f" read as {package.names_encoding}"
            )
