"""Rows put aside and read back."""

from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.spreadsheets.staging import StagedRows, is_blank, rows_of, staged_line
from workflows.shared.cells import Cell, Uncalculated

CELLS: list[Cell] = [
    *(None, "", " spaced ", "line\nbreak\r\n", "00012", "=1+1", '{"d":"2024-01-01"}', "{", "d"),
    *('"', "\\", "\u2028", "\x00\x1f", "Ärmel 😀", "null", "true", "2024-02-29"),
    *(0, -7, 2**53 + 1, 2**64, 10**39, -(10**300), 1.0, 1e22, -0.0, 0.1 + 0.2, 5e-324),
    *(True, False, 1, 0, float("inf")),
    *(date(2024, 2, 29), date(1, 1, 1), datetime(2024, 2, 29), datetime(9999, 12, 31, 23, 59, 59)),
    *(datetime(2024, 2, 29, 13, 45, 12, 123456), Uncalculated('=A1&"b"'), "last"),
]


def staged(folder: Path, rows: dict[int, list[Cell]]) -> Path:
    path = folder / "rows"
    path.write_bytes(b"".join(staged_line(line, cells) for line, cells in rows.items()))
    return path


def exactly(cells: Any) -> list[tuple[type, str]]:
    """Values with their types and signs: 1, 1.0 and True are three things."""
    return [(type(cell), repr(cell)) for cell in cells]


def test_every_cell_is_read_back_unchanged(tmp_path: Path) -> None:
    with closing(StagedRows(staged(tmp_path, {7: CELLS}))) as rows:
        (row,) = rows.read()
    assert row.line == 7
    assert exactly(row.cells) == exactly(CELLS)


@given(
    st.lists(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.dates()
        | st.datetimes().map(lambda moment: moment.replace(fold=0)),
        min_size=1,
    )
)
def test_any_cell_is_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, cells: list[Cell]
) -> None:
    with closing(StagedRows(staged(tmp_path_factory.mktemp("staged"), {1: cells}))) as rows:
        assert [exactly(row.cells) for row in rows.read()] == [exactly(cells)]


@given(
    st.lists(
        st.lists(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text())
        | st.lists(st.dates() | st.text())
        | st.lists(st.text() | st.text().map(Uncalculated)),
        max_size=4,
    )
)
def test_a_block_is_read_like_its_rows(tables: list[list[Cell]]) -> None:
    block = b"".join(staged_line(line, cells) for line, cells in enumerate(tables, start=2))
    found = [(row.line, exactly(row.cells)) for row in rows_of(block)]
    assert found == [(line, exactly(cells)) for line, cells in enumerate(tables, start=2)]


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_a_letter(tmp_path: Path) -> None:
    with closing(
        StagedRows(staged(tmp_path, {2: ["a\ud800b", "\ud83d\ude00", date(2024, 1, 1)]}))
    ) as rows:
        assert [row.cells for row in rows.read()] == [["a\ufffdb", "😀", date(2024, 1, 1)]]


def test_reading_begins_at_any_row(tmp_path: Path) -> None:
    path = staged(tmp_path, {line: [f"Ä{line}", line] for line in range(2, 9)})
    with closing(StagedRows(path)) as rows:
        everything = list(rows.read())
        assert rows.position == path.stat().st_size
        for place, row in enumerate(everything):
            assert list(rows.read(row.offset)) == everything[place:]
        wanted = [everything[4], everything[1], everything[6]]
        assert list(rows.at(row.offset for row in wanted)) == wanted


def test_position_is_where_the_next_row_begins(tmp_path: Path) -> None:
    with closing(StagedRows(staged(tmp_path, {2: ["a"], 3: ["b"], 9: ["c"]}))) as rows:
        reading = rows.read()
        next(reading)
        behind = rows.position
        assert [row.line for row in rows.read(behind)] == [3, 9]


def test_rows_are_picked_by_their_numbers(tmp_path: Path) -> None:
    path = staged(tmp_path, {2: ["a"], 4: ["b"], 5: ["c"], 9: ["d"]})
    wanted = [(1, "none"), (4, "four"), (6, "none"), (9, "nine"), (12, "none")]
    with closing(StagedRows(path)) as rows:
        picked = [(row.line, row.cells, given) for row, given in rows.pick(wanted)]
        assert picked == [(4, ["b"], "four"), (9, ["d"], "nine")]
        by_offset = {row.line: row for row in rows.read()}
        assert [row for row, _ in rows.pick(wanted)] == [by_offset[4], by_offset[9]]


@pytest.mark.parametrize(
    ("cells", "blank"),
    [
        ([], True),
        ([None, "", " \t\u00a0"], True),
        ([None, 0], False),
        ([False], False),
        (["", "x"], False),
    ],
)
def test_a_row_without_visible_content_is_blank(cells: list[Cell], blank: bool) -> None:
    assert is_blank(cells) is blank
