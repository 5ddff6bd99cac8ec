"""The report of rejected rows, read back by our own reader."""

import zipfile
from datetime import date, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from adapters.files import limits
from adapters.files.tables import workbooks
from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import WHAT_IS_WRONG, XlsxReportWriter
from workflows.shared.cells import Cell, RejectedRow
from workflows.shared.contracts import Problem


def rejected(line: int, *cells: Cell) -> RejectedRow:
    problems = (
        Problem(line=line, column="qty", value="x", reason="is not a number"),
        Problem(line=line, reason="the code appears twice"),
    )
    return RejectedRow(line, cells, problems)


def read(path: Path, sheet: str | None = None) -> list[list[Cell]]:
    with open_table(path, sheet=sheet) as table:
        return [cells for _, cells in table.rows()]


VALUES: list[Cell] = [
    '=HYPERLINK("http://x","y")',
    *("+1", "-1", "@SUM(A1)", "00012", "1e5", "http://example.com", "mailto:a@b", "{=A1}", "TRUE"),
    *("#N/A", " spaces ", "line\nbreak", "_x0041_", "Ärmel 😀 <&>\"'", "]]>", "_", "x" * 32_767),
    *(None, 0, -7, 10**14, 0.1, 1.5e-7, True, False, 10**17 + 1),
    *(date(2024, 2, 29), datetime(2024, 2, 29, 13, 45, 12), datetime(2024, 2, 29)),
    *(date(1899, 12, 31), datetime(1900, 1, 5, 12)),
    "last",
]


def test_rows_are_read_back_unchanged(tmp_path: Path) -> None:
    header = [f"column {n}" for n in range(len(VALUES))]
    path = tmp_path / "report.xlsx"
    XlsxReportWriter().write(path, header, iter([rejected(7, *VALUES), rejected(9, "only one")]))

    expected = list(VALUES)
    expected[VALUES.index(10**17 + 1)] = "100000000000000001"
    expected[VALUES.index(date(1899, 12, 31))] = "1899-12-31"
    expected[VALUES.index(datetime(1900, 1, 5, 12))] = "1900-01-05 12:00:00"
    wrong = "qty: is not a number; the code appears twice"
    rows = read(path)
    assert rows[0] == [WHAT_IS_WRONG, *header]
    assert rows[1] == [wrong, *expected]
    assert [type(cell) for cell in rows[1][1:]] == [type(cell) for cell in expected]
    assert rows[2] == [wrong, "only one"]


def test_nothing_in_a_report_is_a_formula_or_a_link(tmp_path: Path) -> None:
    path = tmp_path / "report.xlsx"
    XlsxReportWriter().write(path, ["=1+1", "http://x"], iter([rejected(2, *VALUES)]))
    with zipfile.ZipFile(path) as archive:
        xml = archive.read("xl/worksheets/sheet1.xml")
        assert not any("worksheets/_rels" in name for name in archive.namelist())
    assert b"<f>" not in xml
    assert b"hyperlink" not in xml


def test_a_text_that_no_spreadsheet_holds_is_cut_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "report.xlsx"
    XlsxReportWriter().write(path, ["a"], iter([rejected(2, "x" * 40_000)]))
    text = read(path)[1][1]
    assert isinstance(text, str)
    assert len(text) == 32_767
    assert text.endswith("[cut: too long for a spreadsheet]")


def test_a_full_sheet_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ROWS", 3)
    path = tmp_path / "report.xlsx"
    XlsxReportWriter().write(path, ["a"], (rejected(n, n) for n in range(5)))
    sheets = [[row[1] for row in read(path, f"Sheet{n}")] for n in (1, 2, 3)]
    assert sheets == [["a", 0, 1], ["a", 2, 3], ["a", 4]]


def test_a_report_without_rows_has_its_header(tmp_path: Path) -> None:
    path = tmp_path / "report.xlsx"
    XlsxReportWriter().write(path, ["a"], iter([]))
    assert read(path) == [[WHAT_IS_WRONG, "a"]]
    assert [found.name for found in tmp_path.iterdir()] == ["report.xlsx"]


def comments(path: Path) -> dict[str, str]:
    """Text by cell."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        parts = [name for name in archive.namelist() if name.startswith("xl/comments")]
        trees = [ElementTree.fromstring(archive.read(name)) for name in parts]
    return {
        comment.attrib["ref"]: "".join(text.text or "" for text in comment.iter(f"{space}t"))
        for tree in trees
        for comment in tree.iter(f"{space}comment")
    }


def problem(column: str | None, reason: str) -> Problem:
    return Problem(line=2, column=column, reason=reason)


def test_a_problem_is_a_comment_on_its_cell(tmp_path: Path) -> None:
    path = tmp_path / "report.xlsx"
    problems = (
        problem("qty", "is not a number"),
        problem("qty", '=HYPERLINK("http://x") & <b>\x01 is not a unit'),
        problem("colour", "is not known"),
        problem(None, "appears twice"),
    )
    XlsxReportWriter().write(
        path, ["code", "qty", "qty"], iter([RejectedRow(2, ["A"], problems)]), comments=True
    )
    shown = comments(path)
    assert list(shown) == ["C2"]
    assert shown["C2"].startswith('is not a number; =HYPERLINK("http://x") & <b>')
    assert read(path)[1][1:] == ["A"]
    XlsxReportWriter().write(path, ["qty"], iter([RejectedRow(2, ["A"], problems)]))
    assert comments(path) == {}


def test_comments_are_bounded_and_rows_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbooks, "COMMENTS", 3)
    path = tmp_path / "report.xlsx"
    rows = (RejectedRow(n, [n], [problem("qty", "x" * 500)]) for n in range(9))
    XlsxReportWriter().write(path, ["qty"], rows, comments=True)
    assert list(comments(path)) == ["B2", "B3", "B4"]
    assert len(read(path)) == 10
