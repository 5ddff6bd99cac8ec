"""Rows that are packed into lines of text are those that are handed on value by value."""

import csv
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.database.models.base import ABOVE_ALL
from tests.support.imports.documents import Document, read, workbook
from workflows.imports import validation
from workflows.shared.packed_rows import PackedRows

TITLES = ("Code", "Description", "Price", "Lead time (days)")
CODES = (
    *("M-1", "M-2", "00123", "123", "\\N", "\\.", "a\\b", '"', "e\u0301", "\u00e9", "1E+05"),
    *("a\tb", "a\u200bb", "\u00a0M-1", "Total", "-", "\U0001f600", "x" * 101, "\x1f"),
)
TEXTS = (
    *("", "pipe", "\\N", "\\t", "a\tb", "a\nb", "a\r\nb", "  padded  ", "#N/A", "=1+1", "NULL"),
    *("'quoted'", "\u2028", "\x7f", "\x1e", "y" * 2_001, "\ufffd", "_x0041_", "&lt;"),
)
NUMBERS = (
    *("", "1", "0", "-0", "2.50", "0.0000005", "-0.0000004", "99999999999999.9999995", "1e400"),
    *("99999999999999.999999", "1E+3", "1,234", "1.234,5", "(5)", "nan", "\u0663", "1_000", "10%"),
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(CODES) | st.integers(0, 50).map("K-{}".format),
        st.sampled_from(TEXTS),
        st.sampled_from(NUMBERS),
        st.sampled_from(("", "7", "1.5", "2147483648")),
    ),
    min_size=1,
    max_size=12,
)


def by_code(document: Document) -> tuple[dict[str, Any], Any, str]:
    """Rows by their key, as the order of packed ones is another; and all that is said."""
    return {row["code"]: row for row in document.rows}, document.rejected, document.note


@given(ROWS)
def test_rows_are_the_same_packed_or_not(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("packed")
    text = folder / "file.csv"
    with text.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((TITLES, *rows))
    cells = [[_of_sheet(cell) for cell in row] for row in rows]
    sheet = workbook(folder / "file.xlsx", {"Sheet": [TITLES, *cells]})
    for path in (text, sheet):
        plain = read(path, "material")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(validation, "FEWEST_ROWS", 1)
            packed = read(path, "material")
        assert by_code(packed) == by_code(plain)
        numbers = [value for row in packed.rows for value in row.values()]
        assert all(abs(n) < ABOVE_ALL for n in numbers if isinstance(n, Decimal))


def _of_sheet(cell: str) -> str | None:
    """What a worksheet can hold of a cell of a text."""
    return "".join(mark for mark in cell if mark >= " " or mark in "\t\n") or None


def test_plain_rows_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = validation.RowPacker.pack

    def pack(packer: Any, values: Any, lines: Any) -> Any:
        made.append(original(packer, values, lines))
        return made[-1]

    monkeypatch.setattr(validation, "FEWEST_ROWS", 1)
    monkeypatch.setattr(validation.RowPacker, "pack", pack)
    rows = [["M-1", "pipe", 1.5, 7], ["M-2", None, 2, None]]
    read(workbook(tmp_path / "file.xlsx", {"Sheet": [TITLES, *rows]}), "material")
    assert [type(each) for each in made] == [PackedRows]
