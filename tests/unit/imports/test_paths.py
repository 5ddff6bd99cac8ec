"""Quick paths over many rows give what the path over single ones gives, row by row."""

import re
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.imports import column_table, document_tables
from activities.imports.column_table import KeptRows
from activities.imports.tables import own_tables
from activities.shared.scratch import SeenKeys
from adapters.files.tables import delimited
from adapters.files.tables.delimited import open_delimited
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.imports.documents import Document, read, text, workbook
from tests.support.imports.tables import validator_of
from workflows.imports.findings import Findings
from workflows.imports.header import match_header, meaning_of
from workflows.imports.messages import DocumentType
from workflows.imports.types import TableSpec
from workflows.imports.validation import Codes, may_differ
from workflows.shared import titles
from workflows.shared.cells import Cell, Uncalculated
from workflows.shared.conversion import Flaw, convert_column
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.left_out import footer_of, is_totals_word, likeness_of, may_hold_words
from workflows.shared.notations import Notation, plain_cells

EQUIPMENT = own_tables()[DocumentType.EQUIPMENT]
MTO = own_tables()[DocumentType.MTO]

FIELDS = [
    FieldSpec("code", ColumnKind.CODE, required=True, max_length=12),
    FieldSpec("text", ColumnKind.TEXT, max_length=12),
    FieldSpec("amount", ColumnKind.DECIMAL, minimum=0),
    FieldSpec("balance", ColumnKind.DECIMAL),
    FieldSpec("days", ColumnKind.INTEGER, minimum=0),
    FieldSpec("number", ColumnKind.INTEGER, minimum=1),
    FieldSpec("day", ColumnKind.DATE),
    FieldSpec("fee", ColumnKind.MONEY, maximum=1_000, currency="EUR"),
    FieldSpec("below", ColumnKind.DECIMAL, minimum=-5, blanks=("007", "1,5")),
    FieldSpec("flag", ColumnKind.BOOLEAN),
    FieldSpec("opens", ColumnKind.TIME),
    FieldSpec("at", ColumnKind.TIMESTAMP, zone="Europe/Berlin"),
    FieldSpec("phone", ColumnKind.PHONE),
    FieldSpec("form", ColumnKind.TEXT, pattern="[A-Z0-9-]*", blanks=("0012",)),
]
NUMBERS = (
    *("1", "007", "0", "0.0", "0.00", "-0", "00.50", "1e5", "1,5", "1,234", "1.234", "1.234.567"),
    *("1,234.5", "1.234,5", "1 234", "1'234.5", "12345678901234", "123456789012345", "0.1234567"),
    *("2147483647", "2147483648", "999999999", "+5", "-3", "(500.00)", "$12,000.00", "10%"),
    *("5 EUR", "1_000", "\u0663", "\u00b2", "1\n2", "5\n", "\ufeff12", "\u00a012", "."),
)
OTHERS = (
    *("-", "n/a", "NULL", "None", "45000", "2025-03-04", "04.03.2025", "03/04/2025", "20250304"),
    *("Total", "Page 1 of 2", " Page 2", "\nPage 3", "*", "- 4 -", "x\nSumme", "\u03a3", "Drawing"),
    *("D-1", "D-1", "D-2", "Code", "x" * 101, "\u212aran", "a\tb", '"', "\u0000"),
    *("yes", "x", "14:30", "14.30 Uhr", "2025-03-04 14:30", "03/04/2025 2 pm", "030 123456"),
)
WORDS = (
    *("Total", "Grand sum", "(Summe)", " Page 2", "- page 3 -", "\nPage 4 of 5", "\u03a3"),
    *("Zwischensumme", "\u00dcbertrag", "Seite 7", "Carried forward", "Sheet 2 of 3", "Total EUR"),
)
TEXTS = st.sampled_from((*NUMBERS, *OTHERS, "", " "))
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
@settings(max_examples=examples(200))
def test_a_column_is_converted_as_its_cells_are(field: FieldSpec, cells: list[Cell]) -> None:
    whole, refused = convert_column(field, cells, Notation.POINT)
    each = [convert_column(field, [cell], Notation.POINT) for cell in cells]
    assert whole == [values[0] for values, _ in each]
    assert refused is any(flawed for _, flawed in each)


@given(
    st.sampled_from(FIELDS),
    st.lists(st.one_of(TEXTS, CELLS), min_size=1, max_size=8),
    st.sampled_from((None, *Notation)),
)
@settings(max_examples=examples(400))
def test_a_column_is_converted_as_beside_a_cell_that_no_quick_way_takes(
    field: FieldSpec, cells: list[Cell], notation: Notation | None
) -> None:
    plain = plain_cells(field, cells)
    assert list(plain) == [cell for each in cells for cell in plain_cells(field, [each])]
    values, refused = convert_column(field, plain, notation)
    # True equals 1, so that beside it each cell is converted by itself.
    each, _ = convert_column(field, [*plain, True], notation)
    assert list(map(repr, values)) == list(map(repr, each[:-1]))
    assert refused is any(isinstance(value, Flaw) for value in values)


@given(st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=8))
@settings(max_examples=examples(200))
def test_plain_numbers_are_converted_as_beside_a_cell_that_no_quick_way_takes(
    texts: list[str],
) -> None:
    for field in FIELDS:
        for notation in (None, Notation.POINT, Notation.COMMA):
            values, _ = convert_column(field, texts, notation)
            each, _ = convert_column(field, [*texts, True], notation)
            assert list(map(repr, values)) == list(map(repr, each[:-1]))


@given(st.lists(st.one_of(st.sampled_from(WORDS), TEXTS, st.text("aA*-Pp \n\u0130")), max_size=8))
@settings(max_examples=examples(200))
def test_no_word_of_a_column_is_passed_over(texts: list[str]) -> None:
    has_words = any(map(likeness_of, texts))
    assert may_hold_words(texts) or not has_words


@pytest.mark.parametrize("text", WORDS)
def test_every_word_is_found_in_a_column(text: str) -> None:
    assert is_totals_word(text) is not (footer_of(text) is not None)
    assert may_hold_words(["D-1", text, "D-2"])


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS), min_size=1, max_size=12),
    st.booleans(),
)
@settings(max_examples=examples(200))
def test_rows_are_validated_together_as_one_by_one(
    rows: list[tuple[str, ...]], numbered: bool
) -> None:
    header = ["Drawing", "Commodity code", "Size", "Quantity", "Seq" if numbered else "Unit"]
    together, each = (_validated(header, rows, size) for size in (len(rows), 1))
    assert together == each


@given(st.lists(st.tuples(st.text("01a"), st.text("01a")), max_size=6))
@settings(max_examples=examples(100))
def test_leading_zeros_are_found_in_columns_as_in_codes(found: list[Codes]) -> None:
    assert may_differ(zip(*found, strict=True), ()) is any(
        code.startswith("0") for codes in found for code in codes
    )


TITLES = st.lists(
    st.sampled_from(
        (
            *("rate", "Rate", "code", "unit", "weight", "(", ")", "[t]", "(EUR)", "EUR", "per"),
            *("je", "h", "%", "k\u20ac", "/", "", "size", "dn", "quantity", "[", "to", "_", "x"),
        )
    ),
    max_size=5,
).map(" ".join)


@given(TITLES, st.sampled_from((MTO, EQUIPMENT)))
@settings(max_examples=examples(500))
def test_titles_mean_what_they_do_without_their_units(title: str, spec: TableSpec) -> None:
    quick = meaning_of(title, spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(titles, "_OPENING", re.compile(""))
        assert meaning_of(title, spec) == quick


@given(records=RECORDS, end=ENDS, named=st.booleans(), last=st.sampled_from(("", "d,e", '"open')))
@settings(
    max_examples=examples(100),
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


def _validated(header: list[str], rows: list[tuple[str, ...]], size: int) -> list[str]:
    """Rows, problems and what was left out, as texts: `Decimal(0)` is not `Decimal("0.0")`."""
    numbered: list[tuple[int, list[Cell]]] = [(n, list(row)) for n, row in enumerate(rows, start=2)]
    scope = {"project_id": "P1", "service_id": "S1"}
    findings = Findings()
    found: list[str] = []
    with closing(SeenKeys(Path())) as seen:
        matched = match_header(1, list[Cell](header), MTO)
        validator = validator_of(MTO, scope, matched, numbered, seen, findings)
        for start in range(0, len(rows), size):
            part = validator.validate(numbered[start : start + size])
            found += map(repr, zip(part.lines, part.rows, strict=True))
            found += map(repr, part.rejected)
    return [*sorted(found), repr(findings)]


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
    monkeypatch.setattr(column_table, "KEPT_ROWS", 1)
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
    patch.setattr(column_table, "KEPT_ROWS", most)
    patch.setattr(document_tables, "PART_ROWS", 5)
    return read(file)
