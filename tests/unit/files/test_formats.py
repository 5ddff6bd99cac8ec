"""Formats are told apart by structure, however a file is called and whatever it quotes."""

import io
import struct
import zipfile
from pathlib import Path

import pytest

from adapters.files.compound import COMPOUND_HEAD
from adapters.files.formats import Format, format_of, is_container
from adapters.ports.errors import UnreadableDocument
from stack.compound_file import compound_file
from tests.support.files.compound_files import xls

_END = 0xFFFFFFFE


def package(**parts: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def format_in(folder: Path, content: bytes) -> Format:
    path = folder / "file"
    path.write_bytes(content)
    return format_of(path)


TYPES = "[Content_Types].xml"
MANIFEST = "META-INF/manifest.xml"
ODS = "application/vnd.oasis.opendocument.spreadsheet"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"%PDF-1.7", Format.PDF),
        (b"", Format.PLAIN),
        (b"a;b\n%PDF-1.7;PK\x03\x04\n", Format.PLAIN),
        (package(**{"a.txt": "xl/workbook.xml"}), Format.ZIP),
        (package(**{TYPES: "", "xl/workbook.xml": ""}), Format.XLSX),
        (package(**{TYPES: "", "xl/workbook.bin": ""}), Format.XLSB),
        (package(**{TYPES: "", "ppt/presentation.xml": ""}), Format.PPTX),
        (package(**{TYPES: "", "word/document2.xml": ""}), Format.DOCX),
        (package(**{TYPES: "", "word/document.xml": "", "word/xl/a": ""}), Format.DOCX),
        (package(**{TYPES: "", "other.xml": ""}), Format.OFFICE_PACKAGE),
        (package(mimetype=ODS), Format.ODS),
        (package(mimetype="application/vnd.oasis.opendocument.text"), Format.ODT),
        (package(mimetype="application/vnd.oasis.opendocument.text-template"), Format.ODT),
        (package(mimetype="application/vnd.oasis.opendocument.presentation"), Format.ODP),
        (package(mimetype="application/vnd.oasis.opendocument.graphics"), Format.OPEN_DOCUMENT),
        (
            package(**{"mimetype": ODS, "META-INF/manifest.xml": "encryption-data"}),
            Format.LOCKED_ODS,
        ),
        (
            package(
                **{
                    "mimetype": "application/vnd.oasis.opendocument.text",
                    "META-INF/manifest.xml": "encryption-data",
                }
            ),
            Format.LOCKED_OPEN_DOCUMENT,
        ),
        (xls([["a"]]), Format.XLS),
        (compound_file({"PowerPoint Document": b""}), Format.PPT),
        (b"\x78\x9f\x3e\x22", Format.TNEF),
        (compound_file({"BOOK": b""}), Format.XLS),
        (compound_file({"__properties_version1.0": b""}), Format.MSG),
        (compound_file({"EncryptedPackage": b""}), Format.LOCKED_OFFICE),
        (compound_file({"Other": b""}), Format.COMPOUND),
        (COMPOUND_HEAD + b"\0" * 600, Format.DAMAGED_COMPOUND),
        (COMPOUND_HEAD, Format.DAMAGED_COMPOUND),
    ],
)
def test_formats_are_distinguished(tmp_path: Path, content: bytes, expected: Format) -> None:
    assert format_in(tmp_path, content) is expected


def test_a_name_in_the_text_of_a_document_does_not_decide(tmp_path: Path) -> None:
    text = "Workbook EncryptedPackage".encode("utf-16-le") * 400
    assert format_in(tmp_path, compound_file({"WordDocument": text})) is Format.DOC


def test_an_embedded_document_does_not_decide(tmp_path: Path) -> None:
    embedded = {"WordDocument": b"", "EncryptedPackage": b""}
    content = compound_file({"Workbook": b"x", "MBD0001": embedded})
    assert format_in(tmp_path, content) is Format.XLS


def test_a_directory_that_loops_ends(tmp_path: Path) -> None:
    content = bytearray(compound_file({"Workbook": b"x" * 5_000}))
    (directory,) = struct.unpack_from("<L", content, 48)
    (table,) = struct.unpack_from("<L", content, 76)
    struct.pack_into("<L", content, (table + 1) * 512 + directory * 4, directory)
    assert format_in(tmp_path, bytes(content)) is Format.DAMAGED_COMPOUND


def test_a_directory_far_behind_is_found(tmp_path: Path) -> None:
    """Its chain is in a part of the allocation table that the header has no room to name."""
    small = compound_file({"Workbook": b"x"})
    (directory,) = struct.unpack_from("<L", small, 48)
    entries = small[(directory + 1) * 512 : (directory + 2) * 512]
    far = 14_000
    header = bytearray(small[:512])
    struct.pack_into("<L", header, 48, far)
    struct.pack_into("<LL", header, 68, 0, 1)
    struct.pack_into("<109L", header, 76, *[_END] * 109)
    table = bytearray(b"\xff" * 512)
    struct.pack_into("<L", table, (far - 109 * 128) * 4, _END)
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(header)
        file.write(struct.pack("<128L", 1, *[_END] * 127))
        file.write(table)
        file.seek((far + 1) * 512)
        file.write(entries)
    assert format_of(path) is Format.XLS


def test_a_damaged_package_is_called_what_it_is_used_as(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    with pytest.raises(UnreadableDocument, match="the document is damaged"):
        format_of(path, "document")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (package(a="b"), True),
        (package(), True),
        (xls([["a"]]), True),
        (b"PK,Name\n1,Ann\n", False),
        (COMPOUND_HEAD[:4] + b" and so on", False),
        (b"", False),
    ],
)
def test_containers_are_packages_and_compound_files(head: bytes, expected: bool) -> None:
    assert is_container(head) is expected
