"""Quick paths over many rows give what the path over single ones gives, row by row."""

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.imports import document_tables, kept_rows
from activities.imports.kept_rows import KeptRows
from adapters.files.tables import delimited
from adapters.files.tables.delimited import open_delimited
from adapters.ports import UnreadableDocument
from domain.imports.leading_zeros import Codes, is_zero_led, may_differ
from domain.tabular.conversion import convert_column
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.notations import Notation
from domain.tabular.rows import Cell, Uncalculated
from tests.support.chaos import examples
from tests.support.imports.documents import Document, read, text, workbook

FIELDS = [
    FieldSpec("code", ColumnKind.CODE, required=True, max_length=12),
    FieldSpec("text", ColumnKind.TEXT, max_length=12),
    FieldSpec("amount", ColumnKind.DECIMAL, minimum=0),
]
CELLS = st.one_of(
    st.none(),
    st.sampled_from(
        ("", " ", "0012", "P-1", "3-Jan", "Jan 24", "Janus", "1.5E+10", "#N/A", "####", "Err:502")
    ),
    st.text("aJn0123456789-+#. \t\n\u00e4\u200b", max_size=14),
    st.integers(-10, 10),
)
RECORDS = st.lists(
    st.sampled_from(("a,b", "", ",", "1,,", '"x,y",2', '"two\nlines",3', '"5""",c', "\u00e4,\x1c")),
    max_size=12,
)
ENDS = st.sampled_from(("\n", "\r\n", "\r"))


@given(st.sampled_from(FIELDS), st.lists(CELLS, min_size=1, max_size=8))
@settings(max_examples=examples(200, 2_000))
def test_a_column_is_converted_as_its_cells_are(field: FieldSpec, cells: list[Cell]) -> None:
    whole, refused = convert_column(field, cells, Notation.POINT)
    each = [convert_column(field, [cell], Notation.POINT) for cell in cells]
    assert whole == [values[0] for values, _ in each]
    assert refused is any(flawed for _, flawed in each)


@given(st.lists(st.tuples(st.text("01a"), st.text("01a")), max_size=6))
@settings(max_examples=examples(100, 1_000))
def test_leading_zeros_are_found_in_columns_as_in_codes(found: list[Codes]) -> None:
    assert may_differ(found, ()) is any(map(is_zero_led, found))


@given(records=RECORDS, end=ENDS, named=st.booleans(), last=st.sampled_from(("", "d,e", '"open')))
@settings(
    max_examples=examples(100, 1_000),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_lines_are_read_as_records_of_any_length_are(
    tmp_path: Path, records: list[str], end: str, named: bool, last: str
) -> None:
    file = tmp_path / "rows.csv"
    lines = [*(("sep=,",) if named else ()), "one,two", *records, last]
    file.write_text(end.join(lines), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        # A batch of a few lines, so that a document has several.
        patch.setattr(delimited, "_BATCH", 12)
        quick = _read(file)
        patch.setattr(delimited, "_one_each_line", _none_each_line)
        assert quick == _read(file)


def _none_each_line(lines: list[str], delimiter: str) -> None:
    """Leaves every line to the reader of records of any length."""


def _read(file: Path) -> tuple[list[tuple[int, list[Cell]]], dict[int, int], str | None]:
    rows: list[tuple[int, list[Cell]]] = []
    with open_delimited(file, "utf-8", ",") as table:
        try:
            rows.extend(table.rows())
        except UnreadableDocument as error:
            return rows, dict(table.widths), str(error)
        return rows, dict(table.widths), None


SHEET = [
    ["Code", "Description", "Rate"],
    *([f"E-{number}", "Crane" if number % 3 else None, number * 1.5] for number in range(30)),
    ["E-1", "again", 2],
    ["E-99", "Saw", "cheap"],
    ["Total", None, 652.5],
]
WAYS = {"in memory": 1_000, "in a file": 4}
"""How many rows are kept in memory."""


@pytest.mark.parametrize("sheets", [{"A": SHEET}, {"A": SHEET, "B": SHEET[:9]}], ids=len)
def test_a_workbook_that_is_kept_in_a_file_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sheets: dict[str, list[list[object]]]
) -> None:
    file = workbook(tmp_path / "file.xlsx", sheets, merged=[(2, 1, 3, 1)])
    found = [_kept(file, monkeypatch, most) for most in WAYS.values()]
    assert found[0] == found[1]
    assert len(found[0].rows) > 20
    assert found[0].rejected


def test_a_text_that_is_read_again_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (",".join("" if cell is None else str(cell) for cell in row) for row in SHEET)
    file = text(tmp_path / "file.csv", *lines)
    found = [_kept(file, monkeypatch, most) for most in WAYS.values()]
    assert found[0] == found[1]
    assert len(found[0].rows) > 20
    assert found[0].rejected


def test_rows_in_a_file_are_as_they_were_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "KEPT_ROWS", 1)
    cells: list[Cell] = ["a", None, 1, 2.5, True, datetime(2026, 1, 2), Uncalculated("=A1")]
    with ExitStack() as held:
        kept = KeptRows(tmp_path, held, memory=True, aside=True)
        for line in range(3):
            kept.add([(line, list(cells))])
        for line, found in kept.rows() or ():
            assert (found, list(map(type, found))) == (cells, list(map(type, cells))), line
            found.clear()
        assert list(kept.rows() or ()) == [(line, cells) for line in range(3)]
    assert not list(tmp_path.iterdir())


def _kept(file: Path, patch: pytest.MonkeyPatch, most: int) -> Document:
    patch.setattr(kept_rows, "KEPT_ROWS", most)
    patch.setattr(document_tables, "PART_ROWS", 5)
    return read(file)
