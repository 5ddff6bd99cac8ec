"""Word documents."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.exceptions import PackageNotFoundError
from docx.opc.oxml import (
    serialize_part_xml,  # pyright: ignore[reportUnknownVariableType]
)
from docx.opc.package import OpcPackage
from docx.opc.part import Part
from docx.opc.parts.coreprops import CorePropertiesPart
from docx.oxml import parse_xml

from adapters.files import limits
from adapters.files.failures import damage
from adapters.files.package import Package, damaged, open_package
from adapters.files.texts.embedded import take_out_embedded
from adapters.files.texts.findings import Findings
from adapters.ports import UnreadableDocument

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
            if relation.get("TargetMode") == "External" or part in package:
                continue
            if not target.startswith("#"):
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
