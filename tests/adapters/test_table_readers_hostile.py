"""Tables that are made to do harm are refused, and cost little."""

import io
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.files import limits
from adapters.files.tables import legacy
from adapters.files.tables.source import open_table
from adapters.ports.errors import UnreadableDocument
from tests.support.files.open_documents import ods
from tests.support.files.tables import CELL, read_table, write_table
from tests.support.files.workbooks import sheet_xml, strings_xml, write_workbook


@contextmanager
def bounded(seconds: float = 5, megabytes: float = 20) -> Iterator[None]:
    """What happens within takes little time of the processor and little Python memory."""
    tracemalloc.start()
    began = time.process_time()
    try:
        yield
        assert time.process_time() - began < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * (1 << 20)
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = {"xl/media/image1.png": b"\0" * (200 << 20)}
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=bomb)
    del bomb
    with bounded(megabytes=1), pytest.raises(UnreadableDocument, match="bomb"):
        read_table(path)


def test_a_directory_that_lies_about_sizes_gains_nothing(tmp_path: Path) -> None:
    rows = sheet_xml("".join(f'<row r="{n}"/>' for n in range(1, 900_000)))
    path = write_workbook(tmp_path / "t", {"S": rows})
    content = bytearray(path.read_bytes())
    name = b"xl/worksheets/sheet1.xml"
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(name))
    struct.pack_into("<L", content, at + 24, 5000)
    path.write_bytes(content)
    with bounded(), pytest.raises(UnreadableDocument, match="damaged"):
        read_table(path)


def test_a_part_beyond_its_limit_is_refused_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(1, 50_000))
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows)})
    monkeypatch.setattr(limits, "SHEET_BYTES", 1 << 20)
    with pytest.raises(UnreadableDocument, match="more than 1,048,576 bytes"):
        read_table(path)


def test_a_huge_directory_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(60_000):
            archive.writestr(f"{n:060}", b"")
    with (
        bounded(megabytes=1),
        pytest.raises(UnreadableDocument, match="directory"),
    ):
        read_table(path)


def test_too_many_parts(tmp_path: Path) -> None:
    parts = {f"p{n}": b"" for n in range(limits.PACKAGE_PARTS)}
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=parts)
    with pytest.raises(UnreadableDocument, match="parts"):
        read_table(path)


@pytest.mark.parametrize("column", ["A", "XFD"])
def test_the_last_cell_of_a_sheet_costs_nothing(tmp_path: Path, column: str) -> None:
    rows = f'{CELL}<row r="1048576"><c r="{column}1048576"><v>2</v></c></row>'
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows)})
    with bounded(megabytes=3):
        if column == "A":
            assert read_table(path)[2] == [(1, [1]), (1048576, [2])]
        else:
            with pytest.raises(UnreadableDocument, match="column 16,384"):
                read_table(path)


def test_blank_cells_out_to_the_last_column_are_no_columns(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1" s="1"/></row>'
    assert read_table(write_workbook(tmp_path / "t", {"S": sheet_xml(rows)}))[2] == [(1, [1])]


@pytest.mark.parametrize("row", ['<row r="{}"/>', '<row r="{0}"><c r="A{0}" s="0"/></row>'])
def test_a_million_empty_rows(tmp_path: Path, row: str) -> None:
    rows = "".join(row.format(n) for n in range(1, 1_000_000))
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows), "T": sheet_xml(CELL)})
    del rows
    began = time.process_time()
    assert read_table(path)[1:] == ("T", [(1, [1])])
    assert time.process_time() - began < 30


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "_rels/.rels"])
@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">',
    ],
)
def test_entities_are_refused(tmp_path: Path, part: str, doctype: str) -> None:
    extra = {part: f'<?xml version="1.0"?>{doctype}<x>&b;</x>'.encode()}
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=extra)
    with pytest.raises(UnreadableDocument, match="document type"):
        read_table(path)


def test_entities_in_shared_strings_are_refused(tmp_path: Path) -> None:
    strings = strings_xml("<t>&b;</t>").replace("<sst", '<!DOCTYPE x [<!ENTITY b "boom">]><sst')
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, strings=strings)
    with pytest.raises(UnreadableDocument, match="document type"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["shift_jis", "klingon", "utf-7"])
def test_xml_in_an_encoding_that_is_not_xml(tmp_path: Path, encoding: str) -> None:
    xml = sheet_xml(CELL).replace("UTF-8", encoding)
    with pytest.raises(UnreadableDocument, match="damaged"):
        read_table(write_workbook(tmp_path / "t", {"S": xml}))


def test_long_rows_of_an_old_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy, "_MOST_FRAME_BYTES", 10_000)
    path = tmp_path / "t"
    path.write_bytes(ods("S", [["a" * 3000] * 10] * 50))
    with pytest.raises(UnreadableDocument, match="10,000 bytes"):
        read_table(path)


def test_parts_outside_the_package_are_not_read(tmp_path: Path) -> None:
    relations = (
        b'<Relationships><Relationship Id="rId1" Type="x/worksheet"'
        b' Target="../../../../etc/passwd"/></Relationships>'
    )
    extra = {"xl/_rels/workbook.xml.rels": relations}
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=extra)
    with pytest.raises(UnreadableDocument, match="'etc/passwd'"):
        read_table(path)


@pytest.mark.parametrize(("rows", "columns"), [(1_048_000, 1_000), (1_000_000, 21)])
def test_repeated_cells_of_an_ods_file_are_counted_before_they_are_made(
    tmp_path: Path, rows: int, columns: int
) -> None:
    """The library allocates every cell between the first and the last."""
    path = tmp_path / "t"
    path.write_bytes(ods("S", [["a"]], repeat_rows=rows, repeat_columns=columns))
    with bounded(), pytest.raises(UnreadableDocument, match="more than 20,000,000 cells"):
        read_table(path)


def test_a_frame_that_is_none_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that has taken over the process that reads it sends what it likes."""
    path = tmp_path / "t"
    path.write_bytes(ods("S", [["a"]]))
    monkeypatch.setattr(legacy, "_CHILD", "tests.support.files.hostile_child")
    with pytest.raises(UnreadableDocument, match="without an answer"):
        read_table(path)


def test_an_old_file_that_takes_for_ever_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEGACY_CPU_SECONDS", 1)
    path = tmp_path / "t"
    path.write_bytes(ods("S", [["a" * 100]], repeat_rows=1_000_000, repeat_columns=8))
    # The library aborts if the limit of memory comes before that of time.
    with pytest.raises(UnreadableDocument, match=r"more than 1 s|memory|SIGABRT"):
        read_table(path)


def test_a_large_old_file_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEGACY_FILE_BYTES", 100)
    with pytest.raises(UnreadableDocument, match="save it as XLSX"):
        read_table(write_table(tmp_path / "t", "xls"))


def test_a_reader_that_stops_early_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def remember(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        children.append(start(*arguments, **options))  # type: ignore[call-overload]
        return children[-1]

    monkeypatch.setattr(legacy.subprocess, "Popen", remember)
    path = tmp_path / "t"
    path.write_bytes(ods("S", [["a"] * 5] * 20_000))
    with open_table(path) as table:
        assert next(table.rows()) == (1, ["a"] * 5)
    assert [child.returncode is not None for child in children] == [True]


MEASURE = """
import resource, sys
from pathlib import Path
from adapters.files.tables.source import open_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open_table(Path(sys.argv[1])) as table:
    count = sum(1 for _ in table.rows())
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    strings = strings_xml(*(f"<t>Some text that occurs once, {n}</t>" for n in range(100_000)))
    rows = io.StringIO()
    for n in range(1, 100_001):
        cells = "".join(f'<c r="{column}{n}"><v>{n}.{n}</v></c>' for column in "BCDEFGHIJ")
        rows.write(f'<row r="{n}"><c r="A{n}" t="s"><v>{n - 1}</v></c>{cells}</row>')
    write_workbook(path, {"S": sheet_xml(rows.getvalue())}, strings=strings)
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, kilobytes = map(int, done.stdout.split())
    assert count == 100_000
    assert kilobytes < 40 << 10
