"""Tables of every format, honest and hostile, through the one door `open_table`."""

import io
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import pytest
import xlsxwriter

from adapters.files import legacy, limits
from adapters.files.documents import FileDocuments
from adapters.files.table import Row
from adapters.files.tables import open_table
from adapters.ports import UnreadableDocument
from tests.support.compound_files import compound_file, xls
from tests.support.open_documents import ods
from tests.support.workbooks import sheet_xml, strings_xml, styles_xml, write_workbook

CELL = '<row r="1"><c r="A1"><v>1</v></c></row>'


def read(path: Path, sheet: str | None = None) -> tuple[str, str | None, list[Row]]:
    with open_table(path, sheet=sheet) as table:
        return table.format, table.sheet, list(table.rows())


@contextmanager
def bounded(seconds: float = 5, megabytes: float = 20) -> Iterator[None]:
    """What happens within takes little time and little Python memory."""
    tracemalloc.start()
    began = time.perf_counter()
    try:
        yield
        assert time.perf_counter() - began < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * (1 << 20)
    finally:
        tracemalloc.stop()


ROWS = [["code", "qty"], ["A", 12], [], ["B", 1.5]]


def write(path: Path, format: str) -> Path:
    if format == "xlsx":
        with xlsxwriter.Workbook(str(path)) as workbook:
            sheet = workbook.add_worksheet("Data")
            for line, row in enumerate(ROWS):
                sheet.write_row(line, 0, row)
    elif format == "csv":
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in ROWS))
    else:
        path.write_bytes(ods("Data", ROWS) if format == "ods" else xls(ROWS))
    return path


@pytest.mark.parametrize("extension", [".csv", ".pdf", ""])
@pytest.mark.parametrize("format", ["xlsx", "csv", "xls", "ods"])
def test_the_content_decides_and_not_the_extension(
    tmp_path: Path, format: str, extension: str
) -> None:
    found, sheet, rows = read(write(tmp_path / f"data{extension}", format))
    assert (found, sheet) == (format, None if format == "csv" else "Data")
    values: list[object] = ["12", "1.5"] if format == "csv" else [12, 1.5]
    assert rows == [(1, ["code", "qty"]), (2, ["A", values[0]]), (4, ["B", values[1]])]
    assert type(rows[1][1][1]) is type(values[0])


@pytest.mark.parametrize("format", ["xlsx", "xls", "ods"])
def test_a_sheet_is_found_by_its_name(tmp_path: Path, format: str) -> None:
    path = write(tmp_path / "data", format)
    assert read(path, "data ")[1] == "Data"
    with pytest.raises(UnreadableDocument, match=r"no sheet 'Other'; it has .*'Data'"):
        read(path, "Other")


def test_sheets_are_listed_in_their_order(tmp_path: Path) -> None:
    workbook = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(workbook)) as book:
        for name in ("Zeiten", "Data", "Ärger <1>"):
            book.add_worksheet(name)
        book.add_chartsheet("Chart")
    assert FileDocuments().sheets(workbook) == ["Zeiten", "Data", "Ärger <1>"]


@pytest.mark.parametrize(
    ("format", "sheets"), [("csv", []), ("xls", ["Data"]), ("ods", ["Empty", "Data"])]
)
def test_sheets_of_other_formats(tmp_path: Path, format: str, sheets: list[str]) -> None:
    assert list(FileDocuments().sheets(write(tmp_path / "data", format))) == sheets


@pytest.mark.parametrize("content", [b"%PDF-1.7", xls([["a"]])[:2000]])
def test_what_is_no_table_has_no_sheets(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(UnreadableDocument):
        FileDocuments().sheets(path, filename="report.xls")


def test_cells_of_every_type(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        workbook.add_worksheet("Empty")
        hidden = workbook.add_worksheet("Hidden")
        hidden.hide()
        day = workbook.add_format({"num_format": "dd/mm/yyyy"})
        moment = workbook.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        bold = workbook.add_format({"bold": True})
        hidden.write_rich_string(1, 1, "half ", bold, "bold")
        hidden.write_datetime(1, 2, datetime(2024, 2, 29), day)
        hidden.write_datetime(1, 3, datetime(2024, 2, 29, 13, 45), moment)
        hidden.write_boolean(1, 4, True)
        hidden.write_formula(1, 5, "=1+1", None, 2)
        hidden.write_formula(1, 6, "=NA()", None, "#N/A")
        hidden.write_string(1, 7, "=cmd|' /C calc'!A0")
        hidden.write_string(1, 8, "line\r\nbreak \x01 _x0041_")
        hidden.merge_range(2, 0, 3, 2, "merged")
    assert read(path) == (
        "xlsx",
        "Hidden",
        [
            (
                2,
                [
                    *(None, "half bold", date(2024, 2, 29), datetime(2024, 2, 29, 13, 45)),
                    *(True, 2, "#N/A", "=cmd|' /C calc'!A0", "line\r\nbreak _x0001_ _x0041_"),
                ],
            ),
            (3, ["merged"]),
        ],
    )


def test_days_count_from_1904_when_the_workbook_says_so(tmp_path: Path) -> None:
    row = '<row r="1"><c r="A1" s="1"><v>1</v></c><c r="B1"><f>NOW()</f></c></row>'
    path = write_workbook(
        tmp_path / "t",
        {"S": sheet_xml(row)},
        styles=styles_xml("yyyy-mm-dd"),
        date1904=True,
    )
    assert read(path)[2] == [(1, [date(1904, 1, 2), "=NOW()"])]


def test_blank_columns_on_the_left_of_an_ods_stay(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(ods("S", [[], ["", "", "x"], ["", "y"]]))
    assert read(path)[2] == [(2, [None, None, "x"]), (3, [None, "y"])]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"%PDF-1.7\n...", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"PK\x03\x04" + b"\0" * 100, "damaged or cut off"),
        (b"PK\x05\x06" + b"\0" * 18, "zip archive"),
        (b"<html><table>", "XML or HTML"),
        (b"\xef\xbb\xbf <?xml version='1.0'?><Project/>", "XML or HTML"),
        (b"ERMHDR\t8.0\t2024-01-01", "Primavera"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2000, "without a workbook"),
        (compound_file({"EncryptionInfo": b"", "EncryptedPackage": b""}), "password"),
        (compound_file({"WordDocument": b""}), "Word"),
        (compound_file({"Workbook": b"\x09\x08rubbish"}), "damaged|failed"),
        (bytes(range(256)) * 8, "NUL"),
    ],
)
def test_what_is_no_table_is_refused_with_its_name(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(content)
    with pytest.raises(UnreadableDocument, match=reason), open_table(path) as table:
        list(table.rows())


@pytest.mark.parametrize("part", ["word/document.xml", "ppt/presentation.xml", "xl/workbook.bin"])
def test_other_office_files_are_named(tmp_path: Path, part: str) -> None:
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra={part: b""})
    with pytest.raises(UnreadableDocument, match=r"Word|PowerPoint|XLSB"):
        read(path)


@pytest.mark.parametrize("format", ["xlsx", "xls", "ods"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, format: str) -> None:
    whole = write(tmp_path / "whole", format).read_bytes()
    path = tmp_path / "cut"
    # An XLS file is padded to whole sectors: the last cut must reach its workbook.
    for kept in (len(whole) // 8, len(whole) // 3, len(whole) // 2 - 200):
        path.write_bytes(whole[:kept])
        with pytest.raises(UnreadableDocument):
            read(path)


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)})
    content = bytearray(path.read_bytes())
    at = content.index(b"xl/worksheets/sheet1.xml") + 40
    content[at : at + 20] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(UnreadableDocument, match="damaged"):
        read(path)


def test_a_workbook_without_its_parts_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t", {})
    with pytest.raises(UnreadableDocument, match="no worksheet"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(UnreadableDocument, match="lacks its part"):
        read(path)


class TestHostile:
    def test_a_zip_bomb_is_not_unpacked(self, tmp_path: Path) -> None:
        bomb = {"xl/media/image1.png": b"\0" * (200 << 20)}
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=bomb)
        del bomb
        with bounded(megabytes=1), pytest.raises(UnreadableDocument, match="bomb"):
            read(path)

    def test_a_directory_that_lies_about_sizes_gains_nothing(self, tmp_path: Path) -> None:
        rows = sheet_xml("".join(f'<row r="{n}"/>' for n in range(1, 900_000)))
        path = write_workbook(tmp_path / "t", {"S": rows})
        content = bytearray(path.read_bytes())
        name = b"xl/worksheets/sheet1.xml"
        at = content.rindex(b"PK\x01\x02", 0, content.rindex(name))
        struct.pack_into("<L", content, at + 24, 5000)
        path.write_bytes(content)
        with bounded(), pytest.raises(UnreadableDocument, match="damaged"):
            read(path)

    def test_a_part_beyond_its_limit_is_refused_on_the_way(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(1, 50_000))
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows)})
        monkeypatch.setattr(limits, "SHEET_BYTES", 1 << 20)
        with pytest.raises(UnreadableDocument, match="more than 1,048,576 bytes"):
            read(path)

    def test_a_huge_directory_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        with zipfile.ZipFile(path, "w") as archive:
            for n in range(60_000):
                archive.writestr(f"{n:060}", b"")
        with (
            bounded(megabytes=1),
            pytest.raises(UnreadableDocument, match="directory"),
        ):
            read(path)

    def test_too_many_parts(self, tmp_path: Path) -> None:
        parts = {f"p{n}": b"" for n in range(limits.PACKAGE_PARTS)}
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=parts)
        with pytest.raises(UnreadableDocument, match="parts"):
            read(path)

    @pytest.mark.parametrize("column", ["A", "XFD"])
    def test_the_last_cell_of_a_sheet_costs_nothing(self, tmp_path: Path, column: str) -> None:
        rows = f'{CELL}<row r="1048576"><c r="{column}1048576"><v>2</v></c></row>'
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows)})
        with bounded(megabytes=3):
            if column == "A":
                assert read(path)[2] == [(1, [1]), (1048576, [2])]
            else:
                with pytest.raises(UnreadableDocument, match="column 16,384"):
                    read(path)

    def test_blank_cells_out_to_the_last_column_are_no_columns(self, tmp_path: Path) -> None:
        rows = '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1" s="1"/></row>'
        assert read(write_workbook(tmp_path / "t", {"S": sheet_xml(rows)}))[2] == [(1, [1])]

    @pytest.mark.parametrize("row", ['<row r="{}"/>', '<row r="{0}"><c r="A{0}" s="0"/></row>'])
    def test_a_million_empty_rows(self, tmp_path: Path, row: str) -> None:
        rows = "".join(row.format(n) for n in range(1, 1_000_000))
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(rows), "T": sheet_xml(CELL)})
        del rows
        began = time.perf_counter()
        assert read(path)[1:] == ("T", [(1, [1])])
        assert time.perf_counter() - began < 30

    @pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "_rels/.rels"])
    @pytest.mark.parametrize(
        "doctype",
        [
            '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>',
            '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">',
        ],
    )
    def test_entities_are_refused(self, tmp_path: Path, part: str, doctype: str) -> None:
        extra = {part: f'<?xml version="1.0"?>{doctype}<x>&b;</x>'.encode()}
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=extra)
        with pytest.raises(UnreadableDocument, match="document type"):
            read(path)

    def test_entities_in_shared_strings_are_refused(self, tmp_path: Path) -> None:
        strings = strings_xml("<t>&b;</t>").replace("<sst", '<!DOCTYPE x [<!ENTITY b "boom">]><sst')
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, strings=strings)
        with pytest.raises(UnreadableDocument, match="document type"):
            read(path)

    @pytest.mark.parametrize("encoding", ["shift_jis", "klingon", "utf-7"])
    def test_xml_in_an_encoding_that_is_not_xml(self, tmp_path: Path, encoding: str) -> None:
        xml = sheet_xml(CELL).replace("UTF-8", encoding)
        with pytest.raises(UnreadableDocument, match="damaged"):
            read(write_workbook(tmp_path / "t", {"S": xml}))

    def test_long_rows_of_an_old_file_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(legacy, "_MOST_FRAME_BYTES", 10_000)
        path = tmp_path / "t"
        path.write_bytes(ods("S", [["a" * 3000] * 10] * 50))
        with pytest.raises(UnreadableDocument, match="10,000 bytes"):
            read(path)

    def test_parts_outside_the_package_are_not_read(self, tmp_path: Path) -> None:
        relations = (
            b'<Relationships><Relationship Id="rId1" Type="x/worksheet"'
            b' Target="../../../../etc/passwd"/></Relationships>'
        )
        extra = {"xl/_rels/workbook.xml.rels": relations}
        path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)}, extra=extra)
        with pytest.raises(UnreadableDocument, match="'etc/passwd'"):
            read(path)

    def test_an_old_file_that_spans_the_whole_sheet_dies_alone(self, tmp_path: Path) -> None:
        """The library behind XLS and ODS allocates every cell between the first and the last."""
        path = tmp_path / "t"
        path.write_bytes(ods("S", [["a"]], repeat_rows=1_048_000, repeat_columns=1_000))
        with pytest.raises(UnreadableDocument, match=r"memory|wide|damaged"):
            read(path)

    def test_an_old_file_that_takes_for_ever_is_given_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "LEGACY_CPU_SECONDS", 1)
        path = tmp_path / "t"
        path.write_bytes(ods("S", [["a" * 100]], repeat_rows=1_000_000, repeat_columns=8))
        with pytest.raises(UnreadableDocument, match=r"more than 1 s|memory"):
            read(path)

    def test_a_large_old_file_is_refused_unread(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "LEGACY_FILE_BYTES", 100)
        with pytest.raises(UnreadableDocument, match="save it as XLSX"):
            read(write(tmp_path / "t", "xls"))


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
from adapters.files.tables import open_table
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
