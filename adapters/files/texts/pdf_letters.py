"""Whether the letters of a PDF are those that its fonts say.

A PDF may hold maps from the codes of its fonts to Unicode, which nobody sees: they may be wrong, or
missing. A few pages are read a second time without them, by the encodings of the fonts alone.

Source: ISO 32000-1, 9.6.6 (encodings) and 9.10 (extraction of text); OpenType 1.9, `cmap`.
"""

import ctypes
import io
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfiumError

from adapters.files import limits
from adapters.files.texts.findings import Findings

_PAGES: Final = 5
"""Pages that are compared, from all over the document."""
_UNKNOWN: Final = "\ufffd"
_WORD: Final = re.compile(r"[\w\ufffd]+")
"""Without signs such as dashes, which have several codes each."""
_NO_LETTER: Final = re.compile("[\ue000-\uf8ff\x00\x01\x03-\x08\x0e-\x1f]")
_DICTIONARY: Final = re.compile(rb"\n(\d+) 0 obj\r\n<<(.*?)>>(?=stream\r\n|\r\nendobj)", re.DOTALL)
"""As PDFium writes objects."""
_DESCRIPTOR: Final = re.compile(rb"/FontDescriptor (\d+) 0 R")
_DESCENDANT: Final = re.compile(rb"/DescendantFonts\[ (\d+) 0 R")
_GLYPHS_BY_MAP: Final = b"/CIDToGIDMap "
"""A reference to a stream: codes are none of glyphs then."""
_FLAGS: Final = re.compile(rb"/Flags (\d+)")
_SYMBOLIC: Final = 4
_MAP, _NO_MAP = b"/ToUnicode", b"/NoUnicode"
_FROM_RIGHT: Final = frozenset({"R", "AL", "NSM"})
"""Letters that PDFium sorts, and codes that look like them: they are not compared."""
_SHOWN: Final = 30
_FEW: Final = 10
"""Words that are too few to judge."""
_MANY: Final = 0.1
"""Part of the words that may differ: signs, and capitals that are drawn small, do."""
_TABLES: Final = 12
_TABLE: Final = struct.Struct(">4s4xLL")
_UNICODE: Final = frozenset({(0, 3), (0, 4), (3, 1), (3, 10)})
"""Platforms and encodings of subtables whose codes are Unicode."""
_BY_SEGMENTS, _BY_GROUPS = 4, 12


def check_letters(document: PdfDocument, path: Path, into: Findings) -> None:
    """Note letters that a PDF does not say, and those that it says in two ways.

    Args:
        document: Open; none of its pages is.
        path: Its file.
        into: Takes the notes.
    """
    if into.is_late or path.stat().st_size > limits.PDF_COMPARED_BYTES:
        return
    numbers = range(0, len(document), max(-(-len(document) // _PAGES), 1))
    try:
        read = list(_words(document, numbers))
        _note_unknown(read, into)
        if (content := _without_maps(document, numbers)) is not None:
            with PdfDocument(content) as second:
                letters = frozenset("".join(read))
                _note_others(read, list(_words(second, range(len(second)), letters)), into)
    except PdfiumError:
        # That pages are damaged is noted by who reads them.
        return


def _words(
    document: PdfDocument, numbers: Sequence[int], known: frozenset[str] | None = None
) -> Iterator[str]:
    """Words of pages.

    Args:
        document: It.
        numbers: Of the pages.
        known: Letters of the document, if codes without a map are read by the fonts themselves.
    """
    fonts = _Fonts(known or frozenset())
    for number in numbers:
        page = document[number]
        text = page.get_textpage()
        raw = text.raw
        letters: list[str] = []
        for place in range(min(text.count_chars(), limits.PDF_COMPARED_CHARACTERS)):
            letter = chr(pdfium.FPDFText_GetUnicode(raw, place))
            if pdfium.FPDFText_HasUnicodeMapError(raw, place) == 1:
                letter = _UNKNOWN if known is None else fonts.letter(raw, place, ord(letter))
            if known is not None and unicodedata.bidirectional(letter) in _FROM_RIGHT:
                letter = _UNKNOWN
            letters.append(letter)
        words = unicodedata.normalize("NFKC", _NO_LETTER.sub(_UNKNOWN, "".join(letters)))
        text.close()
        page.close()
        yield from _WORD.findall(words)


class _Fonts:
    """Fonts that are embedded, and the letters of their glyphs.

    Args:
        preferred: Letters to take if several have one glyph.
    """

    def __init__(self, preferred: frozenset[str]) -> None:
        self._preferred = preferred
        self._letters: dict[int, Mapping[int, str]] = {}

    def letter(self, text: Any, place: int, glyph: int) -> str:
        """The letter of a glyph, in the font of a place in a text."""
        font = pdfium.FPDFTextObj_GetFont(pdfium.FPDFText_GetTextObject(text, place))
        address = ctypes.addressof(font.contents) if font else 0
        if address not in self._letters:
            self._letters[address] = self._letters_of(_font_file(font)) if font else {}
        return self._letters[address].get(glyph, _UNKNOWN)

    def _letters_of(self, content: bytes) -> Mapping[int, str]:
        letters: dict[int, str] = {}
        for code, glyph in islice(_glyphs_of(content), limits.PDF_COMPARED_GLYPHS):
            if glyph not in letters or chr(code) in self._preferred:
                letters[glyph] = chr(code)
        return letters


def _font_file(font: Any) -> bytes:
    size = ctypes.c_size_t()
    pdfium.FPDFFont_GetFontData(font, None, 0, size)
    content = (ctypes.c_uint8 * size.value)()
    pdfium.FPDFFont_GetFontData(font, content, size.value, size)
    return bytes(content)


def _note_unknown(words: Sequence[str], into: Findings) -> None:
    # A sign that stands alone begins an entry of a list.
    unknown = [word for word in words if _UNKNOWN in word and len(word) > 1]
    if unknown:
        into.note(
            f"{len(unknown):,} of {len(words):,} words that were looked at hold letters of fonts"
            f" that do not say which letters they are, such as {_short(unknown[0])}: print it to"
            " a new PDF and send that"
        )


def _note_others(first: Sequence[str], second: Sequence[str], into: Findings) -> None:
    known = [word for word in second if _UNKNOWN not in word]
    differing = Counter(map(str.casefold, known)) - Counter(map(str.casefold, first))
    count = sum(differing.values())
    if len(known) < _FEW or count <= _MANY * len(known):
        return
    pairs = zip(first, second, strict=False)
    example = next((pair for pair in pairs if pair[1].casefold() in differing), ("", ""))
    into.note(
        f"{count:,} of {len(known):,} words that were compared are others by the fonts of the PDF"
        f" than by its maps to Unicode, such as {_short(example[1])} for {_short(example[0])}:"
        " compare the text with the pages"
    )


def _short(word: str) -> str:
    return repr(word[:_SHOWN])


def _without_maps(document: PdfDocument, numbers: Sequence[int]) -> bytes | None:
    """Some pages, without the maps of fonts whose encodings say letters; None: there are none."""
    written = io.BytesIO()
    with PdfDocument.new() as few:
        few.import_pages(document, list(numbers))
        few.save(written)
    content = written.getvalue()
    found = {int(each[1]): each[2] for each in _DICTIONARY.finditer(content)}
    fonts = {held for held in found.values() if _MAP in held and _says_letters(held, found)}
    if not fonts:
        return None
    return _DICTIONARY.sub(
        lambda each: each[0].replace(_MAP, _NO_MAP) if each[2] in fonts else each[0], content
    )


def _says_letters(font: bytes, objects: Mapping[int, bytes]) -> bool:
    """Whether a font has codes of a known encoding or of glyphs, or names of letters for them."""
    if b"/Encoding" not in font or b"/Type3" in font:
        return False
    if b"/TrueType" not in font:
        return _GLYPHS_BY_MAP not in _referred(_DESCENDANT, font, objects)
    # Viewers do not look at the encoding of a symbolic one.
    flags = _FLAGS.search(_referred(_DESCRIPTOR, font, objects))
    return flags is None or not int(flags[1]) & _SYMBOLIC


def _referred(name: re.Pattern[bytes], font: bytes, objects: Mapping[int, bytes]) -> bytes:
    found = name.search(font)
    return objects.get(int(found[1]), b"") if found else b""


def _glyphs_of(font: bytes) -> Iterator[tuple[int, int]]:
    """Characters and their glyphs; none if the font does not say them, or is damaged there."""
    try:
        (count,) = struct.unpack_from(">H", font, 4)
        for number in range(count):
            name, start, size = _TABLE.unpack_from(font, _TABLES + number * _TABLE.size)
            if name == b"cmap":
                yield from _mapped(font[start : start + size])
    except struct.error:
        return


def _mapped(table: bytes) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from(">H", table, 2)
    for number in range(count):
        platform, encoding, start = struct.unpack_from(">HHL", table, 4 + 8 * number)
        (kind,) = struct.unpack_from(">H", table, start)
        if (platform, encoding) in _UNICODE and kind == _BY_SEGMENTS:
            yield from _segments(table[start:])
        elif (platform, encoding) in _UNICODE and kind == _BY_GROUPS:
            yield from _groups(table[start:])


def _segments(table: bytes) -> Iterator[tuple[int, int]]:
    count = struct.unpack_from(">H", table, 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", table, 14)
    starts = struct.unpack_from(f">{count}H", table, 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}H", table, 16 + 4 * count)
    after = 0
    for number, (start, end, delta) in enumerate(zip(starts, ends, deltas, strict=True)):
        place = 16 + 6 * count + 2 * number
        (offset,) = struct.unpack_from(">H", table, place)
        # They are sorted; a file that repeats them would take hours.
        for code in range(max(start, after), end + 1):
            glyph = code
            if offset:
                (glyph,) = struct.unpack_from(">H", table, place + offset + 2 * (code - start))
            if glyph or not offset:
                yield code, (glyph + delta) & 0xFFFF
        after = max(after, end + 1)


def _groups(table: bytes) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from(">L", table, 12)
    for number in range(count):
        first, last, glyph = struct.unpack_from(">LLL", table, 16 + 12 * number)
        for code in range(first, min(last, 0x10FFFF) + 1):
            yield code, glyph + code - first
