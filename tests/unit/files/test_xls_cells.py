"""What XLS and ODS files show and their library drops: codes, errors, results, days of 1904."""

import io
import struct
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from olefile import OleFileIO

from adapters.files.compound import DamagedCompound, read_stream
from adapters.files.tables.marks import Marks, TooManyMarks
from adapters.files.tables.source import open_workbook
from stack.compound_file import compound_file as in_storages
from tests.support.files.compound_files import (
    colinfo,
    compound_file,
    error,
    formula,
    mulrk,
    number,
    rk,
    text,
    xls_of,
)
from tests.support.files.open_documents import ods_of
from tests.support.imports.documents import read
from workflows.shared.cells import Length, Uncalculated

EMPTY, NO_NUMBER = b"\x03", b"\xff\xff"


def rows_of(path: Path, content: bytes, hidden: set[int] | None = None) -> list[Any]:
    path.write_bytes(content)
    with open_workbook(path) as book:
        table = book.table("Data")
        rows = list(table.rows())
        assert hidden is None or table.hidden_columns == hidden
        return rows


def special(kind: int, value: int = 0) -> bytes:
    return bytes([kind, 0, value, 0, 0, 0]) + NO_NUMBER


def test_an_embedded_workbook_that_comes_first_is_not_taken_for_the_workbook(
    tmp_path: Path,
) -> None:
    own, inner = (xls_of([text(0, 0, words)]) for words in ("Own", "Foreign"))
    streams = [OleFileIO(io.BytesIO(each)).openstream("Workbook").read() for each in (own, inner)]
    held = in_storages({"Workbook": streams[0], "MBD1": {"Workbook": streams[1]}})
    assert rows_of(tmp_path / "a.xls", held) == rows_of(tmp_path / "b.xls", own)


def test_cells_of_an_xls_file(tmp_path: Path) -> None:
    cells = [
        colinfo(1, 2, hidden=True),
        colinfo(3, 3, hidden=False),
        number(0, 0, 123, 1),
        rk(0, 1, 42 << 2 | 2, 1),
        mulrk(0, 2, [7 << 2 | 2, 700 << 2 | 3], 2),
        number(0, 4, 1.5, 1),
        error(1, 0, 0x2A),
        formula(1, 1, special(2, 0x07)),
        formula(1, 2, struct.pack("<d", 12), 1),
        formula(1, 3, special(3)),
        text(1, 4, "end"),
        number(2, 0, 45678.5, 3),
        number(3, 0, 1.5, 3),
        error(4, 2, 0x17),
    ]
    formats = ["00000", '"E-"000', "[h]:mm"]
    rows = rows_of(tmp_path / "t", xls_of(cells, formats), {1, 2})
    assert rows == [
        (1, ["00123", "00042", "E-007", "E-007", 1.5]),
        (2, ["#N/A", "#DIV/0!", "00012", None, "end"]),
        (3, [datetime(2025, 1, 21, 12)]),
        (4, [Length("36:00:00")]),
        (5, [None, None, "#REF!"]),
    ]
    assert type(rows[3][1][0]) is Length


@pytest.mark.parametrize("calculated", [True, False])
def test_formulas_that_no_program_has_calculated(tmp_path: Path, calculated: bool) -> None:
    cells = [text(0, 0, "A"), formula(0, 1, special(3)), formula(0, 2, bytes(8))]
    [(_, found)] = rows_of(tmp_path / "t", xls_of(cells, calculated=calculated))
    assert [type(cell) is Uncalculated for cell in found[1:]] == [not calculated] * len(found[1:])


def test_an_xls_file_that_counts_days_from_1904(tmp_path: Path) -> None:
    cells = [text(0, 0, "Badge"), text(0, 1, "From"), text(1, 0, "1"), number(1, 1, 44201)]
    file = tmp_path / "t"
    file.write_bytes(xls_of(cells, date1904=True))
    [row] = read(file, "crew_member").rows
    assert row["valid_from"].isoformat() == "2025-01-06"


def test_a_row_of_an_ods_file_that_holds_errors_only(tmp_path: Path) -> None:
    wrong = (
        '<table:table-cell office:value-type="string" office:string-value=""'
        ' calcext:value-type="error"><text:p>#REF!</text:p></table:table-cell>'
    )
    rows = f'<table:table-row table:number-rows-repeated="1500">{wrong}</table:table-row>'
    columns = (
        '<table:table-column table:number-columns-repeated="2"/>'
        '<table:table-column table:visibility="collapse"/>'
    )
    content = ods_of(f'<table:table table:name="Data">{columns}{rows}</table:table>')
    assert rows_of(tmp_path / "t", content, {2}) == [(n, ["#REF!"]) for n in range(1, 1_501)]


def test_too_many_marks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.tables.marks._MOST", 1)
    marks = Marks()
    marks.add(1, 0, "01")
    with pytest.raises(TooManyMarks, match="save the file as XLSX"):
        marks.add(2, 0, "02")


def small_stream(content: bytes) -> bytes:
    """A compound file whose only stream is short: it lies in sectors of 64 bytes."""
    whole = bytearray(compound_file({"Book": b""}))
    used = -(-len(content) // 64)
    chain = struct.pack("<128L", *range(1, used), 0xFFFFFFFE, *[0xFFFFFFFF] * (128 - used))
    root, entry, first = 1024, 1024 + 128, 1536
    struct.pack_into("<2L", whole, 60, 9, 1)
    struct.pack_into("<2L", whole, root + 116, 2, 4096)
    struct.pack_into("<2L", whole, entry + 116, 0, len(content))
    struct.pack_into("<L", whole, 512 + 9 * 4, 0xFFFFFFFE)
    struct.pack_into("<L", whole, 512 + 8 * 4, 0xFFFFFFFE)
    whole[first : first + len(content)] = content
    whole[first + 7 * 512 : first + 8 * 512] = chain
    return bytes(whole)


def test_streams_of_a_compound_file(tmp_path: Path) -> None:
    file = tmp_path / "t"
    long = bytes(range(256)) * 20
    file.write_bytes(compound_file({"Other": b"x", "Book": long}))
    found = b"".join(read_stream(file, ("workbook", "book")))
    assert found[: len(long)] == long
    file.write_bytes(small_stream(long[:200]))
    assert b"".join(read_stream(file, ("workbook", "book"))) == long[:200]
    with pytest.raises(DamagedCompound, match="missing"):
        list(read_stream(file, ("workbook",)))


def test_a_chain_of_sectors_that_does_not_end_is_refused(tmp_path: Path) -> None:
    whole = bytearray(compound_file({"Book": bytes(5_000)}))
    struct.pack_into("<L", whole, 512 + 5 * 4, 3)
    struct.pack_into("<L", whole, 1024 + 128 + 120, 1 << 30)
    file = tmp_path / "t"
    file.write_bytes(whole)
    with pytest.raises(DamagedCompound, match="does not end"):
        list(read_stream(file, ("book",)))
