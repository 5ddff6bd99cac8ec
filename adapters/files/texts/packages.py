"""Words and files in Office packages and RTF that a reader of them left out.

What RTF holds that a reader of it leaves out: remarks, hidden text, embedded files.

Source: Rich Text Format Specification 1.9.1; [MS-OLEDS] 2.2.5 (embedded objects).
"""

import io
import posixpath
import re
import struct
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, Final

from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.exceptions import PackageNotFoundError
from docx.opc.oxml import serialize_part_xml  # pyright: ignore[reportUnknownVariableType]
from docx.opc.package import OpcPackage
from docx.opc.part import Part
from docx.opc.parts.coreprops import CorePropertiesPart
from docx.oxml import parse_xml

from adapters.files import limits
from adapters.files.compound import COMPOUND_HEAD, DamagedCompound, read_open_stream
from adapters.files.failures import damage
from adapters.files.package import Package, XmlStream, damaged, open_package
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import NO_OCR
from adapters.ports.errors import UnreadableDocument

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


_FILES: Final = "/embeddings/"
_OPEN_OBJECT: Final = re.compile(r"/object [^/]*")
"""An object of another program in an OpenDocument file."""
_PICTURES: Final = ("/media/", "/pictures/")
NATIVE: Final = "\x01ole10native"
"""The stream that holds what the Object Packager packed, or what another program has written."""
WHOLE_FILES: Final = ("contents", "package")
"""Streams that are the file of the program that made the object."""
_SIGNATURE: Final = 2


def take_out_embedded(package: Package, into: Findings) -> None:
    """Keep the files that are embedded, and note how many pictures there are."""
    pictures = 0
    for name in package.names():
        folded = f"/{name.lower()}"
        if _FILES in folded or _OPEN_OBJECT.fullmatch(folded):
            _keep(package, name, into)
        pictures += any(folder in folded for folder in _PICTURES)
    if pictures:
        into.note(f"pictures inside: {pictures:,}; {NO_OCR}")


def _keep(package: Package, name: str, into: Findings) -> None:
    try:
        content = package.read(name, limits.ATTACHED_BYTES)
        keep_object(name.rpartition("/")[2], content, into)
    except UnreadableDocument as error:
        into.note(f"an embedded file was not taken out: {error}")


def keep_object(name: str, content: bytes, into: Findings) -> None:
    """Keep an embedded file, without the wrapping in which Office holds those of other programs.

    Source: [MS-OLEDS] 2.3.6; the packages of the Object Packager are described nowhere.
    """
    if content.startswith(COMPOUND_HEAD):
        if wrapped := _stream(content, NATIVE):
            keep_native(name, wrapped, into)
            return
        if whole := _stream(content, *WHOLE_FILES):
            into.keep(name, whole)
            return
    _keep_unpacked(name, content, into)


def keep_native(name: str, wrapped: bytes, into: Findings) -> None:
    """Keep what the stream `NATIVE` holds."""
    # The length of all of it comes first.
    _keep_unpacked(name, wrapped[4:], into)


def _keep_unpacked(name: str, content: bytes, into: Findings) -> None:
    packed = _packed(content)
    if packed is None:
        into.keep(name, content)
    else:
        into.keep(*packed)


def _stream(content: bytes, *names: str) -> bytes:
    try:
        return b"".join(read_open_stream(io.BytesIO(content), names))
    except DamagedCompound:
        return b""


def _packed(content: bytes) -> tuple[str, bytes] | None:
    """Name and bytes of a file that the Object Packager packed; None: it is none of these."""
    try:
        (signature,) = struct.unpack_from("<H", content)
        if signature != _SIGNATURE:
            return None
        label, place = _text(content, 2)
        _, place = _text(content, place)
        (length,) = struct.unpack_from("<L", content, place + 4)
        place += 8 + length
        (size,) = struct.unpack_from("<L", content, place)
    except (struct.error, ValueError):
        return None
    packed = content[place + 4 : place + 4 + size]
    return (label, packed) if len(packed) == size else None


def _text(content: bytes, place: int) -> tuple[str, int]:
    end = content.index(b"\0", place)
    return content[place:end].decode("cp1252", "replace"), end + 1


_BESIDES: Final = re.compile(
    r".*/((header|footer|footnotes|endnotes|comments)\d*|(diagrams/data|charts/chart)\d*)\.xml"
)
_BESIDES_TYPES: Final = re.compile(
    r".*[.-](header|footer|footnotes|endnotes|comments|diagramData|chart|chartex)\+xml"
)
"""Parts beside the main one that hold text, by their usual names and by their types."""
_DAMAGE: Final = (
    *(SyntaxError, PackageNotFoundError),
    *(KeyError, ValueError, AttributeError, TypeError),
)
"""What the library raises if parts are no XML (a `SyntaxError` of lxml), missing, or no parts."""
_RELATIONS: Final = re.compile(r"(.*/)?_rels/[^/]*\.rels")
_MAIN: Final = "/officeDocument"
_CUSTOM: Final = "/custom-properties"
_SHOWN_ATTRIBUTES: Final = {"textpath": ("string",), "docPr": ("title", "descr")}
"""Watermarks, and what stands in the place of a picture."""
_CHUNK: Final = "/aFChunk"
_SIGNS: Final = {
    ("Symbol", "B7"): "\u2022",
    ("Wingdings", "6F"): "\u2610",
    ("Wingdings", "78"): "\u2612",
    ("Wingdings", "A8"): "\u25fb",
    ("Wingdings", "E0"): "\u2192",
    ("Wingdings", "FB"): "\u2718",
    ("Wingdings", "FC"): "\u2714",
    ("Wingdings", "FD"): "\u2612",
    ("Wingdings", "FE"): "\u2611",
    ("Wingdings 2", "52"): "\u2611",
    ("Wingdings 2", "A3"): "\u2610",
}
"""Signs of symbol fonts that forms are ticked with, and bullets."""
_BREAKS: Final = {"br": "\n", "cr": "\n", "tab": "\t", "noBreakHyphen": "-"}
"""Within a run of text; the definition of a tab stop is called `tab` as well."""


def read_word(path: Path, into: Findings) -> None:
    """Read all text in the order of the file, headers and notes after it, and core properties.

    Raises:
        UnreadableDocument: It is damaged, or unpacks to more than can be held.
    """
    with open_package(path, "document") as package:
        if package.unpacked > limits.DOCX_BYTES:
            raise UnreadableDocument(
                f"the document unpacks to {package.unpacked:,} bytes; at most"
                f" {limits.DOCX_BYTES:,} are read: make its pictures smaller or split it"
            )
        take_out_embedded(package, into)
        relations = _without_dangling(package, into)
    with damage("document", *_DAMAGE):
        opened = OpcPackage.open(_with_parts(path, relations) if relations else str(path))
        _describe(opened, into)
    _describe_custom(opened, into)
    main = _main(opened)
    _take_out_chunks(main, into)
    for part in (main, *_parts_beside(opened, main)):
        for piece in _texts(_root(part)):
            if into.is_late:
                into.cut_off("not all of its text was read: time was over")
            if into.is_cut_off:
                return
            into.add_text(piece)


def _without_dangling(package: Package, into: Findings) -> dict[str, bytes]:
    """Lists of relations without those to parts that are not there: add-ins leave them behind.

    The library refuses a document for them, which Word opens.
    """
    changed: dict[str, bytes] = {}
    for name in filter(_RELATIONS.fullmatch, package.names()):
        listed = _parsed(package.read(name))
        for relation in list(listed):
            target = relation.get("Target", "")
            folder = posixpath.dirname(posixpath.dirname(name))
            part = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            has_type = relation.get("Type") is not None
            if has_type and (relation.get("TargetMode") == "External" or part in package):
                continue
            if not has_type:
                into.note(f"a reference to {part} has no type; it was skipped")
            elif not target.startswith("#"):
                into.note(f"a part that the document refers to is not in it: {part}")
            listed.remove(relation)
            changed[name] = serialize_part_xml(listed)
    return changed


def _with_parts(path: Path, changed: dict[str, bytes]) -> io.BytesIO:
    written = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(written, "w") as target:
        for info in source.infolist():
            target.writestr(info.filename, changed.get(info.filename) or source.read(info))
    written.seek(0)
    return written


def _main(opened: OpcPackage) -> Part:
    # The relationship has another namespace in the strict variant of the format.
    named = (each for each in opened.rels.values() if each.reltype.endswith(_MAIN))
    found = next((each.target_part for each in named if not each.is_external), None)
    if found is None:
        raise UnreadableDocument(damaged("document"))
    return found


def _take_out_chunks(main: Part, into: Findings) -> None:
    """Keep the pages, mails and texts that Word shows in the place of a paragraph of its own."""
    for relation in main.rels.values():
        if relation.reltype.endswith(_CHUNK) and not relation.is_external:
            into.keep(relation.target_part.partname.filename, relation.target_part.blob)


def _describe(opened: OpcPackage, into: Findings) -> None:
    try:
        # The package makes properties up where there are none.
        part = opened.part_related_by(RT.CORE_PROPERTIES)
    except KeyError:
        return
    if not isinstance(part, CorePropertiesPart):
        return
    core = part.core_properties
    into.title, into.author = core.title, core.author
    into.created_at, into.modified_at = core.created, core.modified
    for name in ("subject", "keywords", "category", "comments", "last_modified_by"):
        into.describe(name.replace("_", " "), getattr(core, name))
    into.describe("revision", str(core.revision) if core.revision else None)


def _describe_custom(opened: OpcPackage, into: Findings) -> None:
    """Properties that people or programs of a company gave the document."""
    for relation in opened.rels.values():
        if relation.reltype.endswith(_CUSTOM) and not relation.is_external:
            properties = _parsed(relation.target_part.blob)
            for entry in properties:
                into.describe(entry.get("name", ""), " ".join(entry.itertext()))


def _parts_beside(opened: OpcPackage, main: Part) -> Iterator[Part]:
    for part in sorted(opened.iter_parts(), key=lambda part: part.partname):
        if part is main:
            continue
        if _BESIDES.fullmatch(part.partname) or _BESIDES_TYPES.fullmatch(part.content_type):
            yield part


def _root(part: Part) -> Any:
    """The part's XML; templates and documents with macros come as bytes."""
    element = getattr(part, "element", None)
    return _parsed(part.blob) if element is None else element


def _parsed(blob: bytes) -> Any:
    with damage("document", SyntaxError):
        return parse_xml(blob)


def _texts(root: Any) -> Iterator[str]:
    """Text of every `w:t`, and what parts them; tracked deletions are set in brackets."""
    for fallback in list(root.iter("{*}Fallback")):
        # What older programs show in the place of a text box, which is there a second time.
        fallback.getparent().remove(fallback)
    names = ("p", "t", "sym", "delText", "ddList", *_SHOWN_ATTRIBUTES, *_BREAKS)
    for element in root.iter(*(f"{{*}}{name}" for name in names)):
        name = element.tag.rpartition("}")[2]
        if name == "p":
            yield "\n"
        elif name == "t":
            yield element.text or ""
        elif name == "sym":
            yield _sign(element)
        elif name == "delText":
            yield f"[deleted: {element.text or ''}]"
        elif name == "ddList":
            yield _chosen(element)
        elif name in _SHOWN_ATTRIBUTES:
            yield from (
                f"\n{words}\n" for words in map(element.get, _SHOWN_ATTRIBUTES[name]) if words
            )
        elif element.getparent().tag.endswith("}r"):
            yield _BREAKS[name]


def _sign(element: Any) -> str:
    """A sign of a symbol font, such as a box that is ticked; one that is not known is named."""
    found = {name.rpartition("}")[2]: value for name, value in element.items()}
    font, code = found.get("font", ""), found.get("char", "").upper().removeprefix("F0")
    return _SIGNS.get((font, code)) or f"[{font} {code}]"


def _chosen(listed: Any) -> str:
    """What is chosen of a list in a form; the first entry, unless it is said."""
    entries = [_value(entry) for entry in listed.iterchildren("{*}listEntry")]
    number = next((_value(found) for found in listed.iterchildren("{*}result")), "0")
    return entries[int(number)] if number.isdecimal() and int(number) < len(entries) else ""


def _value(element: Any) -> str:
    return next((value for name, value in element.items() if name.endswith("}val")), "")


_REMARK: Final = re.compile(rb"\\\*\s*\\annotation(?![a-z])")
_HIDDEN: Final = re.compile(rb"\\(?:v|webhidden)(?![a-z0-9-])")
_SYMBOL: Final = re.compile(rb"\\(?:([~_])|.)", re.DOTALL)
"""A backslash and the sign behind it, which may be another backslash."""
_SYMBOLS: Final = {b"~": rb"\'20", b"_": rb"\'2d"}
_OF_MAC: Final = re.compile(rb"(\{\\rtf1?\s*)\\mac(?![a-z])(?!.{0,40}\\ansicpg)", re.DOTALL)
_OBJECT: Final = re.compile(rb"\\objdata(?![a-z])([0-9A-Fa-f\s]+)")


def with_all_words(content: bytes) -> bytes:
    """The document with remarks as footnotes, nothing hidden, and signs that the library knows."""
    content = _HIDDEN.sub(b"", _REMARK.sub(rb"\\footnote", content))
    content = _OF_MAC.sub(rb"\1\\mac\\ansicpg10000", content)
    return _SYMBOL.sub(lambda found: _SYMBOLS.get(found[1], found[0]), content)


def take_out_objects(content: bytes, into: Findings) -> None:
    """Keep the files that are embedded."""
    for found in _OBJECT.finditer(content):
        digits = b"".join(found[1].split())
        held = bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        try:
            keep_object("object.bin", _native(held), into)
        except struct.error:
            into.note("an embedded file was not taken out: it is damaged or only linked")


def _native(held: bytes) -> bytes:
    """The bytes of an embedded object: behind its versions and three names."""
    place = 8
    for _ in range(3):
        (length,) = struct.unpack_from("<L", held, place)
        place += 4 + length
    (size,) = struct.unpack_from("<L", held, place)
    return held[place + 4 : place + 4 + size]
