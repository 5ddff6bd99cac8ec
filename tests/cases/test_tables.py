"""Tables as people and programs write them: `tables/*.toml` has what becomes of each.

A case is a file, a text or the sheets of a workbook, and what an import reads of it: rows, problems
of rejected rows (line, column, reason), the note, or why the document is refused. A reason that
ends in `...` is compared up to there. `[[case.read]]` reads one document in several ways.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases.corpus import Case, cases, files
from tests.support.imports.documents import Document, read, workbook
from workflows.shared.errors import InvalidDocument

FOLDER: Final = Path(__file__).parent / "tables"
CASES: Final = cases(FOLDER)


def document(case: Case, folder: Path) -> Path:
    """The file that a case names or describes."""
    if "file" in case:
        return FOLDER / case["file"]
    if "content" in case:
        path = folder / "file.csv"
        path.write_text(case["content"], newline="")
        return path
    hides = {"hidden": True}

    def hide(_: Any, sheet: Any) -> None:
        for line in case.get("hidden_rows", ()):
            sheet.set_row(line - 1, None, None, hides)
        if columns := case.get("hidden_columns"):
            sheet.set_column(columns, None, None, hides)

    sheets = {
        name: [[None if cell == "" else cell for cell in row] for row in rows]
        for name, rows in case["sheets"].items()
    }
    return workbook(
        folder / "file.xlsx",
        sheets,
        hidden=case.get("hidden_sheets", ()),
        formats={place(cell): pattern for cell, pattern in case.get("formats", {}).items()},
        merged=[
            (*place(first), *place(last))
            for first, last in (area.split(":") for area in case.get("merged", ()))
        ],
        also=hide,
        first_year=case.get("first_year", 1900),
    )


def place(cell: str) -> tuple[int, int]:
    """Line and column of a cell in the first 26 columns, from 0."""
    return int(cell[1:]) - 1, ord(cell[0]) - ord("A")


def shown(value: Any) -> str:
    """A value as a case writes it."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def problems_of(found: Document, expected: Case) -> list[list[Any]]:
    """What is wrong with rejected rows, each reason as far as the case writes it."""
    likes = [like for *_, like in expected.get("rejected", ())]
    likes += [""] * len(found.rejected)
    return [
        [line, column or "", f"{reason[: len(like) - 3]}..." if like.endswith("...") else reason]
        for (line, column, reason), like in zip(found.rejected, likes, strict=False)
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_table_becomes_these_rows(case: Case, tmp_path: Path) -> None:
    path, type = document(case, tmp_path), case.get("type", "equipment")
    for expected in case.get("read", [case]):
        options = expected.get("options", {})
        if "refused" in expected:
            with pytest.raises(InvalidDocument) as refused:
                read(path, type, **options)
            assert str(refused.value) == expected["refused"]
            continue
        found = read(path, type, **options)
        rows = [{name: shown(value) for name, value in row.items()} for row in found.rows]
        if "count" in expected:
            assert len(rows) == expected["count"]
        else:
            assert rows == expected["rows"]
        assert problems_of(found, expected) == expected.get("rejected", [])
        assert found.note == expected.get("note", "")


def test_every_file_has_an_outcome() -> None:
    assert files(FOLDER) == {case["file"] for case in CASES.values() if "file" in case}
