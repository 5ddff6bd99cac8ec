"""Words in the XML parts of Office packages that a reader of them left out."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Final

from adapters.files import limits
from adapters.files.package import Package
from adapters.files.texts.findings import Findings
from adapters.files.xml import XmlStream
from adapters.ports import UnreadableDocument

_PARTS: Final = re.compile(
    r"ppt/(slides|notesslides|comments|diagrams|charts|slidemasters|handoutmasters)/[^/]+\.xml"
    r"|xl/(comments[^/]*|(comments|threadedcomments|drawings|diagrams|charts)/[^/]+)\.xml"
    r"|(.+/)?(content|styles)\.xml"
)
"""Parts that hold words beside the cells of worksheets, which are read completely."""
_HOLD_TEXT: Final = frozenset({"t", "text", "p", "h", "v", "desc"})
"""Elements whose characters are text; of other elements they are, for one, names of effects."""
_PARTED: Final = frozenset(
    {"p", "h", "tab", "s", "br", "line-break", "text", "comment", "cm", "v", "note", "annotation"}
    | {"note-citation", "creator", "date", "desc"}
)
_BESIDE_CELLS: Final = frozenset(
    {"annotation", "header", "footer", "header-left", "footer-left", "header-first", "footer-first"}
    | {"shapes", "frame", "custom-shape", "rect", "ellipse", "line", "polyline", "polygon", "path"}
    | {"regular-polygon", "circle", "connector", "caption", "measure"}
)
_CELL: Final = "table-cell"
_CELL_TYPE: Final = "office:value-type"
"""A cell without it is none to who reads cells, whatever its text."""
_NAMED, _IN_ITS_PLACE = "cNvPr", "descr"
"""A picture or shape, and what stands in its place."""
_PLACEHOLDER: Final = "ph"
"""A shape that says where the texts of slides go; its own text is shown nowhere."""
_SHAPE: Final = "sp"
_SHEETS: Final = re.compile(r"xl/(worksheets|chartsheets|dialogsheets)/[^/]+\.xml")
_PAGE_TEXT: Final = re.compile(
    rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)(?:\s[^>]*)?>([^<]*)</", re.ASCII
)
_PAGE_CODES: Final = re.compile(r"&(\"[^\"]*\"|K(?:[0-9A-F]{6}|\d\d[+-]\d{3})|\d{1,3}|[A-Z&])")
"""Fonts, sizes, places and fields in headers and footers; `&&` is an ampersand."""
_SHEET_END: Final = 16
"""Blocks at the end of a sheet, behind its cells, in which its header is looked for."""


def words_left_out(
    package: Package, text: str, into: Findings, *, has_cells: bool = False
) -> Iterator[str]:
    """Paragraphs of a package that are not in the text that was read of it.

    Args:
        package: The file.
        text: What was read already.
        into: Takes notes about parts that cannot be read.
        has_cells: Its paragraphs are cells of a spreadsheet, which show values in another form:
            only what stands beside them is looked at.
    """
    yield from missing_from(text, _all_pieces(package, into, has_cells=has_cells))


def missing_from(text: str, pieces: Iterable[str]) -> Iterator[str]:
    """Pieces that are not in a text, each once, whatever blanks they have."""
    known = _squeezed(text)
    last = 0
    seen: set[str] = set()
    for piece in pieces:
        squeezed = _squeezed(piece)
        # Most follow one another in the text as well.
        place = known.find(squeezed, last)
        if place < 0:
            place = known.find(squeezed)
        if place >= 0:
            last = place
        elif squeezed not in seen:
            seen.add(squeezed)
            yield piece.strip()


def without_codes(header: str) -> str:
    """Words of a header or footer of a worksheet."""
    return _PAGE_CODES.sub(lambda code: "&" if code[1] == "&" else " ", header).strip()


def _all_pieces(package: Package, into: Findings, *, has_cells: bool) -> Iterator[str]:
    for name in sorted(package.names()):
        is_sheet = _SHEETS.fullmatch(name.lower()) is not None
        if not is_sheet and not _PARTS.fullmatch(name.lower()):
            continue
        if is_sheet:
            pieces = _page_texts(package, name, into)
        else:
            # What lies in a folder is an object within the document, such as a chart.
            is_of_cells = has_cells and "/" not in name
            pieces = _pieces(package, name, into, _BESIDE_CELLS if is_of_cells else None)
        for piece in pieces:
            if into.is_late:
                into.note("comments and headers were not read to their end: time was over")
                return
            yield piece


def _page_texts(package: Package, name: str, into: Findings) -> list[str]:
    """Headers and footers of a worksheet, which stand behind its cells."""
    try:
        end = b"".join(deque(package.stream(name, limits.OFFICE_BYTES), maxlen=_SHEET_END))
    except UnreadableDocument as error:
        into.note(f"{name} was not read to its end: {error}")
        return []
    return [
        without_codes(unescape(text.decode("utf-8", "replace"))) for text in _PAGE_TEXT.findall(end)
    ]


def _pieces(
    package: Package, name: str, into: Findings, within: frozenset[str] | None
) -> list[str]:
    pieces = _Pieces(within, is_master="masters/" in name.lower())
    stream = XmlStream(pieces.start, pieces.end, pieces.text, what="document")
    try:
        for block in package.stream(name, limits.SMALL_PART_BYTES):
            stream.feed(block)
        stream.feed(b"", final=True)
    except UnreadableDocument as error:
        into.note(f"{name} was not read to its end: {error}")
    return pieces.found


class _Pieces:
    """Collects the text of a part, in pieces without a break inside.

    Args:
        within: Elements of which one has to be open; None: none has to.
        is_master: Of slides: its placeholders show where texts go, and hold none.
    """

    def __init__(self, within: frozenset[str] | None, *, is_master: bool) -> None:
        self.found: list[str] = []
        self._within = within
        self._outer = 0
        self._open = 0
        self._is_master = is_master
        self._in_placeholder = False
        self._cells: list[bool] = []
        """Of the cells that are open, whether they are looked at."""
        self._piece: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._part(name)
        self._open += name in _HOLD_TEXT
        self._outer += self._within is not None and name in self._within
        if name == _CELL:
            self._cells.append(self._within is not None and _CELL_TYPE not in attributes)
            self._outer += self._cells[-1]
        elif name == _NAMED and self._within is None:
            self.found.append(attributes.get(_IN_ITS_PLACE, ""))
        elif name == _SHAPE:
            self._in_placeholder = False
        elif name == _PLACEHOLDER:
            self._in_placeholder = self._is_master

    def end(self, name: str) -> None:
        self._part(name)
        self._open -= name in _HOLD_TEXT
        self._outer -= self._within is not None and name in self._within
        if name == _CELL and self._cells:
            self._outer -= self._cells.pop()

    def text(self, piece: str) -> None:
        if self._in_placeholder:
            return
        if self._open and (self._outer or self._within is None):
            self._piece.append(piece)

    def _part(self, name: str) -> None:
        if name in _PARTED:
            if words := "".join(self._piece).strip():
                self.found.append(words)
            self._piece.clear()


def _squeezed(text: str) -> str:
    return "".join(text.split())
