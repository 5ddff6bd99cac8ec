"""Tables of every format through `open_table`."""

import zipfile
from datetime import date, datetime
from pathlib import Path

import pytest
import xlsxwriter

from adapters.files.documents import FileDocuments
from adapters.files.tables.source import open_table
from adapters.ports.errors import UnreadableDocument
from tests.support.files.compound_files import compound_file, xls
from tests.support.files.open_documents import ods
from tests.support.files.tables import CELL, read_table, write_table
from tests.support.files.workbooks import sheet_xml, styles_xml, write_workbook


@pytest.mark.parametrize("extension", [".csv", ".pdf", ""])
@pytest.mark.parametrize("format", ["xlsx", "csv", "xls", "ods"])
def test_the_content_decides_and_not_the_extension(
    tmp_path: Path, format: str, extension: str
) -> None:
    found, sheet, rows = read_table(write_table(tmp_path / f"data{extension}", format))
    assert (found, sheet) == (format, None if format == "csv" else "Data")
    values: list[object] = ["12", "1.5"] if format == "csv" else [12, 1.5]
    assert rows == [(1, ["code", "qty"]), (2, ["A", values[0]]), (4, ["B", values[1]])]
    assert type(rows[1][1][1]) is type(values[0])


@pytest.mark.parametrize("format", ["xlsx", "xls", "ods"])
def test_a_sheet_is_found_by_its_name(tmp_path: Path, format: str) -> None:
    path = write_table(tmp_path / "data", format)
    assert read_table(path, "data ")[1] == "Data"
    with pytest.raises(UnreadableDocument, match=r"no sheet 'Other'; it has .*'Data'"):
        read_table(path, "Other")


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
    assert list(FileDocuments().sheets(write_table(tmp_path / "data", format))) == sheets


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
    assert read_table(path) == (
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


def test_days_count_from_1904_where_the_workbook_sets_it(tmp_path: Path) -> None:
    row = '<row r="1"><c r="A1" s="1"><v>1</v></c><c r="B1"><f>NOW()</f></c></row>'
    path = write_workbook(
        tmp_path / "t",
        {"S": sheet_xml(row)},
        styles=styles_xml("yyyy-mm-dd"),
        date1904=True,
    )
    assert read_table(path)[2] == [(1, [date(1904, 1, 2), "=NOW()"])]


def test_blank_columns_on_the_left_of_an_ods_stay(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(ods("S", [[], ["", "", "x"], ["", "y"]]))
    assert read_table(path)[2] == [(2, [None, None, "x"]), (3, [None, "y"])]


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
        read_table(path)


@pytest.mark.parametrize("format", ["xlsx", "xls", "ods"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, format: str) -> None:
    whole = write_table(tmp_path / "whole", format).read_bytes()
    path = tmp_path / "cut"
    # An XLS file is padded to whole sectors: the last cut must reach its workbook.
    for kept in (len(whole) // 8, len(whole) // 3, len(whole) // 2 - 200):
        path.write_bytes(whole[:kept])
        with pytest.raises(UnreadableDocument):
            read_table(path)


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t", {"S": sheet_xml(CELL)})
    content = bytearray(path.read_bytes())
    at = content.index(b"xl/worksheets/sheet1.xml") + 40
    content[at : at + 20] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(UnreadableDocument, match="damaged"):
        read_table(path)


def test_a_workbook_without_its_parts_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "t", {})
    with pytest.raises(UnreadableDocument, match="no worksheet"):
        read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(UnreadableDocument, match="lacks its part"):
        read_table(path)
