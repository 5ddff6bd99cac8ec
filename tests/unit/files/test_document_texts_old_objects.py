"""Files that are embedded in Word documents and workbooks of 1997 to 2003."""

import io
import struct
from collections.abc import Mapping

import pytest
from olefile import OleFileIO

from stack.compound_file import Content, compound_file
from tests.support.files import office
from tests.support.files.compound_files import text, xls_of
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAN = b"%PDF-1.4 plan" * 1_000
"""Longer than what is kept in small sectors."""
NOT_TAKEN = "not taken out: send them as documents"


def _native(content: bytes) -> bytes:
    return struct.pack("<L", len(content)) + content


def _document(objects: Mapping[str, Content]) -> bytes:
    return _with(office.old_word("Size\r"), {"ObjectPool": objects})


def _workbook(objects: Mapping[str, Content]) -> bytes:
    return _with(xls_of([text(0, 0, "Size")]), objects)


def _with(file: bytes, more: Content) -> bytes:
    """An old Office file with further storages."""
    with OleFileIO(io.BytesIO(file)) as opened:
        streams = {path[0]: opened.openstream(path).read() for path in opened.listdir()}
    return compound_file({**streams, **more})


OBJECTS: Mapping[str, Content] = {
    "MBD001": {
        "\x01Ole": b"x",
        "\x01Ole10Native": _native(office.packed_object("a.txt", b"costs")),
    },
    "MBD002": {"CONTENTS": PLAN},
    "MBD003": {"Package": b"a workbook"},
}
TAKEN = [("a.txt", b"costs"), ("oleObject2.bin", PLAN), ("oleObject3.bin", b"a workbook")]


@pytest.mark.parametrize("wrapped", [_document, _workbook])
async def test_files_in_old_office_files_are_taken_out(read: Reading, wrapped: object) -> None:
    assert callable(wrapped)
    found = await read(wrapped(OBJECTS))
    assert "Size" in found.text
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == TAKEN
    assert found.notes == []


@pytest.mark.parametrize("wrapped", [_document, _workbook])
async def test_objects_that_are_no_file_of_their_own_are_counted(
    read: Reading, wrapped: object
) -> None:
    assert callable(wrapped)
    inner = {"Workbook": b"cells", "\x01CompObj": b"x"}
    found = await read(wrapped({"MBD001": inner, "MBD002": inner, "MBD003": OBJECTS["MBD003"]}))
    assert [file.filename for file in found.files] == ["oleObject3.bin"]
    assert found.notes == [f"2 objects of other programs that are embedded in it are {NOT_TAKEN}"]


async def test_the_cells_of_a_workbook_are_its_own_where_another_one_is_embedded(
    read: Reading,
) -> None:
    with OleFileIO(io.BytesIO(xls_of([text(0, 0, "Foreign")]))) as opened:
        inner = opened.openstream("Workbook").read()
    found = await read(_workbook({"MBD1": {"Workbook": inner}}))
    assert "Size" in found.text
    assert "Foreign" not in found.text


async def test_an_object_that_is_cut_off_is_named_and_the_others_are_taken_out(
    read: Reading,
) -> None:
    whole = _document({"_1": {"CONTENTS": PLAN}, "_2": {"Package": b"a workbook"}})
    size = struct.pack("<L", len(PLAN))
    # The stream is said to be longer than what the file holds of it.
    entry = whole.index("CONTENTS".encode("utf-16-le"))
    at = whole.index(size, entry)
    damaged = whole[:at] + struct.pack("<L", len(PLAN) + 5_000) + whole[at + 4 :]
    found = await read(damaged)
    assert [file.path.read_bytes() for file in found.files] == [b"a workbook"]
    assert found.notes == [f"1 files that are embedded in it are damaged, and {NOT_TAKEN}"]
