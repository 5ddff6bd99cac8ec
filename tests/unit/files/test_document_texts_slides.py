"""Files that are embedded in presentations of 1997 to 2003."""

import struct

import pytest

from adapters.files import limits
from stack.compound_file import compound_file
from tests.support.files import office
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

WHOLE = compound_file({"Package": b"a workbook"})
MACROS = compound_file({"VBA": {"dir": b"x"}, "PROJECT": b"x"})
NOT_TAKEN = "were not taken out: send them as documents"


def _packed(name: str, content: bytes) -> bytes:
    """As the Object Packager writes a file."""
    label, place = name.encode() + b"\0", b"C:\\" + name.encode() + b"\0"
    temporary = struct.pack("<L", len(place)) + place
    packed = struct.pack("<H", 2) + label + place + bytes(4) + temporary
    packed += struct.pack("<L", len(content)) + content
    return compound_file({"\x01Ole10Native": struct.pack("<L", len(packed)) + packed})


@pytest.mark.parametrize("compressed", [True, False])
async def test_files_in_old_presentations_are_taken_out(read: Reading, compressed: bool) -> None:
    objects = [
        office.slide_object(content, compressed=compressed)
        for content in (_packed("plan.pdf", b"%PDF-1.4 plan"), WHOLE, WHOLE)
    ]
    found = await read(office.old_presentation("Size", *objects))
    assert "Size" in found.text
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == [
        ("plan.pdf", b"%PDF-1.4 plan"),
        ("oleObject2.bin", b"a workbook"),
    ]
    assert found.notes == []


async def test_macros_of_old_presentations_are_named_and_no_document(read: Reading) -> None:
    found = await read(office.old_presentation("Size", office.slide_object(MACROS)))
    assert (list(found.files), found.notes) == ([], ["its macros are not read"])


@pytest.mark.parametrize(
    "damaged",
    [
        office.slide_object(WHOLE, size=limits.ATTACHED_BYTES + 1),
        office.slide_object(WHOLE, size=len(WHOLE) + 1),
        struct.pack("<HHL", 0x10, 0x1011, 8) + struct.pack("<L", 8) + b"none",
        struct.pack("<HHL", 0, 0x1011, 1 << 20),
    ],
    ids=["too large", "too short", "not compressed", "cut off"],
)
async def test_an_object_that_is_damaged_is_named(read: Reading, damaged: bytes) -> None:
    found = await read(office.old_presentation("Size", damaged))
    assert list(found.files) == []
    assert f"1 files that are embedded in it are damaged, and {NOT_TAKEN}" in found.notes


async def test_an_object_without_its_size_is_named(read: Reading) -> None:
    cut = struct.pack("<HHL", 0x10, 0x1011, 2) + b"ab"
    found = await read(office.old_presentation("Size", cut))
    assert found.notes == [
        f"files that are embedded in it {NOT_TAKEN}: the presentation is damaged there"
    ]
