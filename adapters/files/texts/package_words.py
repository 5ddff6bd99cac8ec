"""Words in the XML parts of Office packages that a reader of them left out."""

import re
from collections.abc import Iterator
from typing import Final

from adapters.files import limits
from adapters.files.package import Package
from adapters.files.texts.findings import Findings
from adapters.files.xml import XmlStream
from adapters.ports import UnreadableDocument

_PARTS: Final = re.compile(
    r"ppt/(slides|notesslides|comments|diagrams|charts)/[^/]+\.xml"
    r"|xl/(comments[^/]*|(threadedcomments|drawings|diagrams|charts)/[^/]+)\.xml"
    r"|(.+/)?(content|styles)\.xml"
)
"""Parts that hold words beside the cells of worksheets, which are read completely."""
_HOLD_TEXT: Final = frozenset({"t", "text", "p", "h", "v"})
"""Elements whose characters are text; of other elements they are, for one, names of effects."""
_PARTED: Final = frozenset(
    {"p", "h", "tab", "s", "br", "line-break", "text", "comment", "cm", "v", "note", "annotation"}
    | {"note-citation", "creator", "date"}
)
_BESIDE_CELLS: Final = frozenset({"annotation", "header", "footer", "header-left", "footer-left"})


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
    known = _squeezed(text)
    last = 0
    seen: set[str] = set()
    for name in sorted(package.names()):
        if not _PARTS.fullmatch(name.lower()):
            continue
        for piece in _pieces(package, name, into, _BESIDE_CELLS if has_cells else None):
            if into.is_late:
                into.note("comments and headers were not read to their end: time was over")
                return
            squeezed = _squeezed(piece)
            # Most follow one another in the text as well.
            place = known.find(squeezed, last)
            if place < 0:
                place = known.find(squeezed)
            if place >= 0:
                last = place
            elif squeezed not in seen:
                seen.add(squeezed)
                yield piece


def _pieces(
    package: Package, name: str, into: Findings, within: frozenset[str] | None
) -> list[str]:
    pieces = _Pieces(within)
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
    """

    def __init__(self, within: frozenset[str] | None) -> None:
        self.found: list[str] = []
        self._within = within
        self._outer = 0
        self._open = 0
        self._piece: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._part(name)
        self._open += name in _HOLD_TEXT
        self._outer += self._within is not None and name in self._within

    def end(self, name: str) -> None:
        self._part(name)
        self._open -= name in _HOLD_TEXT
        self._outer -= self._within is not None and name in self._within

    def text(self, piece: str) -> None:
        if self._open and (self._outer or self._within is None):
            self._piece.append(piece)

    def _part(self, name: str) -> None:
        if name in _PARTED:
            if words := "".join(self._piece).strip():
                self.found.append(words)
            self._piece.clear()


def _squeezed(text: str) -> str:
    return "".join(text.split())
