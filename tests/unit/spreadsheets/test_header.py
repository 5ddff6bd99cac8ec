"""The header row is found wherever it stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.spreadsheets.column_matching import (
    HEADER_WITHIN,
    SIDEWAYS,
    column_titles,
    find_header,
    reads_like_a_row,
)
from activities.spreadsheets.sheet_types import discover
from workflows.shared.cells import Cell
from workflows.shared.errors import InvalidDocument

FIELDS = discover()["EVENT_PARTICIPANT"].fields
PEOPLE: list[list[Cell]] = [
    ["Anna", "Schmidt", "anna@example.org", 34],
    ["Bert", "Maier", "bert@example.org", 41],
]


def line_of(rows: list[list[Cell]], header_line: int | None = None) -> int:
    return find_header(list(enumerate(rows, 1)), FIELDS, header_line=header_line).line


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([["First name", "Last name", "Email", "Age"], *PEOPLE], 1),
        ([["Registrations"], ["2026-06-01", 12], ["Vorname", "Name", "E-Mail", "Alter"]], 3),
        ([["Team", "City Marathon"], ["Prénom", "Nom", "Courriel", "Âge"], *PEOPLE], 2),
        ([["Prénom", "Nom", "Courriel", "Âge"], *PEOPLE], 1),
        ([["Prénom", "Nom", 2024, "Courriel", "Âge", "Ville"], *PEOPLE], 1),
        ([["Printed", None, None, "06/2026"], ["First name", None, None, "Age"], *PEOPLE], 2),
        ([["Email"], ["anna@example.org"], ["bert@example.org"]], 1),
        ([["List of"], ["Email"], ["anna@example.org"]], 2),
        (PEOPLE, 1),
        ([[1, 2, 3], [4, 5, 6]], 1),
        ([["First name", "Last name"], ["First name", "Last name"]], 1),
    ],
)
def test_where_the_header_is(rows: list[list[Cell]], line: int) -> None:
    assert line_of(rows) == line


def test_a_line_set_by_a_person_overrides_the_search() -> None:
    rows: list[list[Cell]] = [["First name", "Last name"], ["a", "b"], ["c", "d"]]
    assert line_of(rows, header_line=2) == 2
    with pytest.raises(InvalidDocument, match="line 9 holds nothing; choose the line of"):
        line_of(rows, header_line=9)


@pytest.mark.parametrize("header_line", [None, 1, 2, 3])
def test_the_rows_of_a_header_are_found_from_any_of_them(header_line: int | None) -> None:
    rows: list[list[Cell]] = [
        ["First", "Last", "Email", None],
        ["name", "name", None, "Gender"],
        [1, 2, 3, 4],
        *PEOPLE,
    ]
    found = find_header(list(enumerate(rows, 1)), FIELDS, header_line=header_line)
    assert (found.first, found.line) == (1, 3)
    assert found.cells == ["First name", "Last name", "Email", "Gender"]


def test_an_empty_sheet_has_none() -> None:
    with pytest.raises(InvalidDocument, match="the sheet holds no rows; choose another"):
        line_of([])


def test_it_is_looked_for_at_the_top_only() -> None:
    above: list[list[Cell]] = [[f"Note {i}", "x"] for i in range(HEADER_WITHIN)]
    assert line_of([*above[1:], ["First name", "Last name"]]) == HEADER_WITHIN
    assert line_of([*above, ["First name", "Last name"]]) == 1


def test_ghost_columns_are_left_out_and_nameless_ones_called_by_their_letter() -> None:
    header: list[Cell] = ["First\n name", None, "  ", "Email", None]
    rows: list[list[Cell]] = [["a", None, "", "x"], ["b", " ", None, None, None, 0], []]
    assert column_titles(header, rows) == [(0, "First name"), (3, "Email"), (5, "Column F")]
    assert column_titles([], []) == []


CELLS = st.one_of(
    *(st.none(), st.text(), st.booleans(), st.integers(), st.floats(), st.dates()),
    st.sampled_from(["First name", "Email", "Name", "Cat."]),
)


@settings(deadline=None)
@given(st.lists(st.lists(CELLS, max_size=5), min_size=1, max_size=8))
def test_any_cells_have_a_header_and_titles(rows: list[list[Cell]]) -> None:
    try:
        header = find_header(list(enumerate(rows, 1)), FIELDS)
    except InvalidDocument as error:
        assert str(error) == SIDEWAYS
        return
    titles = column_titles(header.cells, rows)
    assert all(title and len(title) <= 200 for _, title in titles)
    assert [index for index, _ in titles] == sorted({index for index, _ in titles})


@pytest.mark.parametrize(
    ("headers", "is_row"),
    [
        (["Ada", "Lovelace", "ada@example.org"], True),
        (["Ada", "10.12.1815"], True),
        (["Ada", " 3:45:10,5 "], True),
        (["First name", "2024", "2024/25", "1/2 marathon", "km 21.1", "10:00 start"], False),
        ([], False),
    ],
)
def test_a_row_that_is_taken_for_headers_is_noticed(headers: list[str], is_row: bool) -> None:
    assert reads_like_a_row(headers) is is_row


SIDEWAYS_ROWS: list[list[Cell]] = [
    ["First name", "Ada", "Alan"],
    ["Last name", "Lovelace", "Turing"],
    ["E-mail", "ada@example.org", "alan@example.org"],
]


@pytest.mark.parametrize("above", [[], [["Runners of the club"], []]])
@pytest.mark.parametrize("beside", [[], [None]])
def test_headers_in_a_column_are_refused(above: list[list[Cell]], beside: list[Cell]) -> None:
    rows = [*above, *([*beside, *row] for row in SIDEWAYS_ROWS)]
    with pytest.raises(InvalidDocument, match=r"lie on its side.*Transpose"):
        line_of(rows)
    assert line_of(rows, len(rows)) == len(rows)


def test_a_list_of_fields_is_not_on_its_side() -> None:
    assert line_of([["First name"], ["Last name"], ["Ada", "Lovelace"]]) == 3
