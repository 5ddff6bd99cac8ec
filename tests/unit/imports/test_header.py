"""The header row is found wherever it stands, and never guessed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.imports.tables import own_tables
from workflows.imports import header as headers
from workflows.imports.header import HEADER_WITHIN, TableHeader, find_header, match_header
from workflows.imports.messages import DocumentType
from workflows.imports.types import TableSpec
from workflows.shared.cells import Cell
from workflows.shared.errors import InvalidDocument

CREW = own_tables()[DocumentType.CREW]
EQUIPMENT = own_tables()[DocumentType.EQUIPMENT]
MTO = own_tables()[DocumentType.MTO]


def numbered(*rows: list[Cell]) -> list[tuple[int, list[Cell]]]:
    return list(enumerate(rows, start=1))


def test_header_below_a_title_block() -> None:
    header = find_header(
        numbered(
            ["Project", "North Sea Terminal"],
            ["Revision", 3, "Area", "A1"],
            ["DWG No.", "Ident", "NPS", "Qty"],
            ["D-1", "P100", '2"', 4],
        ),
        MTO,
    )
    assert header.line == 3
    assert header.positions == {"drawing": 0, "commodity_code": 1, "size": 2, "quantity": 3}


def test_of_several_candidates_the_fullest_wins_and_then_the_first() -> None:
    rows = numbered(["Code"], ["Code", "Name"], ["Code", "Foreman"], ["C1", "Pipe crew"])
    assert find_header(rows, CREW).line == 2


def test_a_table_above_a_fuller_header_is_not_passed_over() -> None:
    second = [["Rented"], ["Code", "Description", "Rate", "Rate unit"], ["E-3", "Pump", 10, "h"]]
    first: list[list[Cell]] = [["Code", "Description", "Rate"], ["E-1", "Crane", 100], [], *second]
    assert find_header(numbered(*first), EQUIPMENT).line == 1
    # Titles of two rows, and rows without a rate.
    two_rows: list[list[Cell]] = [["Equipment"], ["Code", "Description", "Rate"], ["E-1", "Crane"]]
    assert find_header(numbered(*two_rows, *second), EQUIPMENT).line == 2


@pytest.mark.parametrize(
    "form",
    [
        [["Code", "E-17"], ["Status", "Draft"]],
        [["Code", None, "Status"], [None, "Draft", "open"]],
        [["Code", "Meaning"], ["o", "owned"], ["r", "rented"]],
        [["Code", "Description", "checked", "by", "whom"], ["E-1", "Crane", "yes", "ann", "x"]],
        [["Code", "Status"], ["E-1"], ["E-2"]],
    ],
)
def test_a_form_above_the_header_is_no_table(form: list[list[Cell]]) -> None:
    rows = [*form, ["Code", "Description", "Rate"], ["E-1", "Crane", 5]]
    assert find_header(numbered(*rows), EQUIPMENT).line == len(form) + 1


def test_unknown_headers_are_named_and_the_report_column_is_not() -> None:
    header = match_header(7, ["What is wrong", "Code", "Colour", None, "Shoe size"], EQUIPMENT)
    assert header.ignored == ("Colour", "Shoe size")
    assert header.positions == {"code": 1}


def test_similar_headers_are_not_good_enough() -> None:
    rows = numbered(["Drawings", "Commodities", "Quantities"])
    with pytest.raises(
        InvalidDocument, match="required columns drawing, commodity_code, quantity;"
    ):
        find_header(rows, MTO)


def test_missing_columns_are_named_with_the_headers_seen() -> None:
    rows = numbered(["Take-off"], ["Drawing", "Size", "Colour"], ["D-1", 2, "red"])
    with pytest.raises(InvalidDocument) as caught:
        find_header(rows, MTO, "Sheet1")
    message = str(caught.value)
    assert "sheet 'Sheet1' lacks the columns commodity_code, quantity" in message
    assert "line 2 has 'Drawing', 'Size', 'Colour'" in message


def test_of_two_columns_for_one_field_the_more_exact_title_counts() -> None:
    header = find_header(numbered(["Asset No.", "Code", "Nummer"]), EQUIPMENT)
    assert header.positions == {"code": 1}
    assert header.candidates == {"code": [1, 0, 2]}


def test_a_document_without_rows() -> None:
    with pytest.raises(InvalidDocument, match="holds no rows"):
        find_header([], EQUIPMENT)


NOISE = st.text(st.sampled_from(" \t\n\u00a0_-.:*/()"), max_size=3)


@settings(deadline=None)
@given(st.data())
def test_headers_match_through_noise_in_any_order(data: st.DataObject) -> None:
    fields = data.draw(st.permutations(MTO.fields))
    written: list[Cell] = []
    for field in fields:
        alias = data.draw(st.sampled_from((field.name, *field.aliases)))
        cased = data.draw(st.sampled_from((str.upper, str.lower, str.title)))(alias)
        inner = cased.replace(" ", data.draw(NOISE.filter(bool))) if " " in cased else cased
        written.append(data.draw(NOISE) + inner + data.draw(NOISE))
    above = data.draw(st.integers(0, HEADER_WITHIN - 1))
    rows = numbered(*([["Title"]] * above), written)
    header = find_header(rows, MTO)
    assert header.line == above + 1
    assert header.positions == {field.name: i for i, field in enumerate(fields)}


CELLS = st.one_of(
    st.none(), st.text(), st.booleans(), st.integers(), st.floats(), st.dates(), st.datetimes()
)


@settings(deadline=None)
@given(st.lists(st.lists(CELLS, max_size=5), max_size=5))
def test_any_cells_end_in_a_header_or_a_clear_error(rows: list[list[Cell]]) -> None:
    with pytest.raises(InvalidDocument) as caught:
        find_header(numbered(*rows), MTO)
    assert str(caught.value).isprintable()


_TITLES = [title for spec in (CREW, EQUIPMENT, MTO) for title in spec.by_header]
_WORDS = st.sampled_from(
    [
        *_TITLES,
        "Größe",
        "".join(chr(ord(letter) + 0xFEE0) for letter in "DRAWING"),
        "Codeword",
        "no",
        "(EUR)",
        "[mm]",
        "per",
        "EA",
        "12",
        "E-1",
    ]
)
_CELLS = st.one_of(
    st.none(),
    st.integers(1, 9),
    st.lists(_WORDS, min_size=1, max_size=3).map(" ".join),
    st.tuples(_WORDS, st.integers(60, 90)).map(lambda long: f"({'x' * long[1]}) {long[0]}"),
    st.text(max_size=8),
)


@given(
    st.lists(st.lists(_CELLS, max_size=4), max_size=5),
    st.sampled_from([CREW, EQUIPMENT, MTO]),
    st.sampled_from([{}, {"e 1": "code"}, {"e 1": "drawing", "12": "quantity"}]),
)
def test_rows_that_are_passed_over_are_no_headers(
    rows: list[list[Cell]], spec: TableSpec, names: dict[str, str]
) -> None:
    # A message that names a field of another type is refused before.
    own = {title: name for title, name in names.items() if name in spec.by_name}

    def found() -> object:
        try:
            return find_header(numbered(*rows), spec, names=own)
        except InvalidDocument as error:
            return str(error)

    passing_over = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headers, "rows_worth_reading", lambda top, _: range(len(top)))
        assert found() == passing_over


def test_rows_of_data_are_not_read_as_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty of them, cell by cell, cost more than all that a small document takes otherwise."""
    read: list[int] = []

    def noted(line: int, *rest: Any) -> TableHeader:
        read.append(line)
        return match_header(line, *rest)

    monkeypatch.setattr(headers, "match_header", noted)
    data: list[list[Cell]] = [[f"E-{number}", "a crane", f"{number}.5"] for number in range(60)]
    assert find_header(numbered(["Code", "Description", "Rate"], *data), EQUIPMENT).line == 1
    assert set(read) <= {1, 2}
