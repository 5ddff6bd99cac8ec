"""Columns and rows of cells become values or problems; nothing raises, nothing is guessed."""

import math
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.imports.tables import own_tables
from activities.shared.scratch import SeenKeys
from tests.support.imports.tables import validator_of
from workflows.imports.findings import VALUE_CHARACTERS
from workflows.imports.header import match_header
from workflows.imports.messages import DocumentType
from workflows.imports.types import TableSpec
from workflows.imports.validation import ValidatedRows
from workflows.shared.cells import CELL_CHARACTERS, FORBIDDEN, Cell
from workflows.shared.conversion import Flaw, convert_column, settle_notations, transpose
from workflows.shared.fields import DECIMAL_DIGITS, ColumnKind, FieldSpec
from workflows.shared.notations import Notation

CREW_MEMBER = own_tables()[DocumentType.CREW_MEMBER]
EQUIPMENT = own_tables()[DocumentType.EQUIPMENT]
MTO = own_tables()[DocumentType.MTO]

CODE = FieldSpec("code", ColumnKind.CODE, max_length=10)
TEXT = FieldSpec("description", ColumnKind.TEXT, max_length=20)
NUMBER = FieldSpec("rate", ColumnKind.DECIMAL, minimum=0)
WHOLE = FieldSpec("lead_time_days", ColumnKind.INTEGER, minimum=0)
DAY = FieldSpec("valid_from", ColumnKind.DATE)
OWNED = own_tables()["equipment"].by_name["ownership"]  # type: ignore[index]


def converted(field: FieldSpec, *cells: Cell, notation: Notation | None = None) -> list[Any]:
    values, refused = convert_column(field, cells, notation)
    assert refused == any(isinstance(value, Flaw) for value in values)
    return [value.reason if isinstance(value, Flaw) else value for value in values]


def test_codes_are_kept_as_they_stand() -> None:
    assert converted(CODE, "007", " A-1 ", "1200.0", "") == ["007", "A-1", "1200.0", None]


def test_number_cells_are_codes_without_a_fraction_that_says_nothing() -> None:
    assert converted(CODE, 1200, 1200.0, 12.5, "x") == ["1200", "1200", "12.5", "x"]


def test_cells_that_a_spreadsheet_changed_are_not_taken_for_codes() -> None:
    assert converted(CODE, True, 1, date(2025, 2, 1)) == [
        "is a truth value, not a code; format the cell as text",
        "1",
        "is a date, not a code; format the cell as text",
    ]
    rounded = "is too long a number for a spreadsheet; format the cell as text"
    assert converted(CODE, 1.234567890123457e17, 1e-7, 10**40, 10**9) == [
        rounded,
        rounded,
        rounded,
        "1000000000",
    ]


@pytest.mark.parametrize("mark", ['"', "''", '-"-', "dto.", "Dito", "DITTO", "s. o.", "siehe oben"])
@pytest.mark.parametrize("others", [('2"',), ('2"', 7)])
def test_a_mark_for_the_row_above_is_no_code(mark: str, others: tuple[Cell, ...]) -> None:
    found = converted(CODE, "A-1", mark, *others)
    assert found[:3] == ["A-1", "stands for the code of the row above; write that code", '2"']
    assert converted(TEXT, mark) == [mark]


@pytest.mark.parametrize("others", [("A-1",), ("A-1", 7)])
def test_what_a_formula_failed_to_find_is_no_code(others: tuple[Cell, ...]) -> None:
    found = converted(CODE, "#N/A", "#1", *others)
    assert found[0] == "is an error, not a code; correct its formula"
    assert found[1] == "#1"
    assert converted(TEXT, "#N/A") == ["is an error, not a value; correct its formula"]


def test_texts_keep_their_line_breaks_and_codes_do_not() -> None:
    assert converted(TEXT, "two\nlines") == ["two\nlines"]
    assert converted(CODE, "two\nlines") == ["holds a control character; is the encoding right?"]


@pytest.mark.parametrize("mark", ["\x00", "\x1f", "\x7f", "\x96", "\ud800", "\uffff"])
def test_what_no_database_holds_is_refused(mark: str) -> None:
    assert converted(TEXT, "fine", f"a{mark}b")[1].startswith("holds a control character")


def test_lengths_are_checked() -> None:
    assert converted(CODE, "x" * 10, "x" * 11) == [
        "x" * 10,
        "has 11 characters, at most 10 are allowed",
    ]


def test_numbers_of_every_origin() -> None:
    assert converted(NUMBER, "1.5", 2, 0.1, None, " ", notation=Notation.POINT) == [
        Decimal("1.5"),
        Decimal(2),
        Decimal("0.1"),
        None,
        None,
    ]


def test_cells_that_are_not_numbers_are_refused_with_the_reason() -> None:
    infinite = "is not a finite number"
    assert converted(NUMBER, math.nan, math.inf, 10**5000, -1, True, date(2025, 1, 1)) == [
        infinite,
        infinite,
        infinite,
        "is negative",
        "is not a number",
        "is not a number",
    ]
    assert converted(NUMBER, 10.0**DECIMAL_DIGITS)[0].startswith("has more than 14 digits")


def test_whole_numbers() -> None:
    assert converted(WHOLE, "14", 14.0, "14.5", 2**31, math.nan) == [
        14,
        14,
        "is not a whole number",
        "is more than 2147483647; correct it, or have its type declare a 'maximum' that allows it",
        "is not a finite number",
    ]


def test_dates_of_every_origin() -> None:
    day, midnight, morning = date(2025, 3, 4), datetime(2025, 3, 4), datetime(2025, 3, 4, 8)
    assert converted(DAY, day, midnight, "2025-03-04", "4.3.2025", morning) == [
        *[day] * 4,
        "has a time of day; a date is expected",
    ]
    assert converted(DAY, 45292)[0].startswith("is not a date; format the cell")


def test_choices_by_synonym() -> None:
    assert converted(OWNED, "OWNED", "Miete", "lent", None) == [
        "owned",
        "rented",
        "is not one of owned, rented",
        None,
    ]


def test_a_column_without_evidence_follows_the_document() -> None:
    columns = {
        "rate": (NUMBER, ["1,234", "2,000"]),
        "price": (FieldSpec("price", ColumnKind.DECIMAL), ["1,5"]),
        "mixed": (FieldSpec("mixed", ColumnKind.DECIMAL), ["1,5", "1.5"]),
        "valid_from": (DAY, ["03/04/2025"]),
    }
    notations = settle_notations({name: columns[name] for name in ("rate", "price")})
    assert notations == {"rate": Notation.COMMA, "price": Notation.COMMA}
    assert settle_notations(columns) == dict.fromkeys(columns, None) | {"price": Notation.COMMA}


def test_rows_of_any_length_have_the_same_columns() -> None:
    assert transpose([["a"], [], ["b", "c", "d", "e"]], 3) == [
        ("a", None, "b"),
        (None, None, "c"),
        (None, None, "d"),
    ]
    assert transpose([], 2) == [(), ()]


def validate(
    spec: TableSpec, header: list[Cell], *rows: list[Cell], size: int = 1000
) -> ValidatedRows:
    numbered = list(enumerate(rows, start=2))
    scope = {"project_id": "P1", "service_id": "S1"}
    with closing(SeenKeys(Path())) as seen:
        validator = validator_of(spec, scope, match_header(1, header, spec), numbered, seen)
        parts = [
            validator.validate(numbered[at : at + size]) for at in range(0, len(numbered), size)
        ]
    return ValidatedRows(
        validator.columns,
        [row for part in parts for row in part.rows],
        [line for part in parts for line in part.lines],
        [cells for part in parts for cells in part.cells],
        [row for part in parts for row in part.rejected],
    )


def reasons(validated: ValidatedRows) -> dict[int, list[tuple[str | None, str | None, str]]]:
    return {
        row.line: [(p.column, p.value, p.reason) for p in row.problems]
        for row in validated.rejected
    }


def test_problems_name_line_column_value_and_reason() -> None:
    found = validate(
        EQUIPMENT,
        ["Asset No.", "Rate", "Besitz"],
        ["E-1", "12.5", "owned"],
        [None, "abc", "lent"],
        ["E-3", "x" * 500, None],
    )
    assert found.rows == [("P1", "E-1", "owned", Decimal("12.5"))]
    assert found.lines == [2]
    assert reasons(found)[3] == [
        ("Asset No.", None, "is missing"),
        ("Besitz", "lent", "is not one of owned, rented"),
        ("Rate", "abc", "is not a number"),
    ]
    (long,) = reasons(found)[4]
    assert long[1] is not None and len(long[1]) == VALUE_CHARACTERS


def test_the_second_of_two_rows_with_one_key_is_rejected_even_when_the_first_is_bad() -> None:
    found = validate(
        EQUIPMENT, ["Code", "Rate"], ["E-1", "bad"], ["E-2", 1], ["E-1", 2], ["E-2", 3], size=2
    )
    assert [row[1] for row in found.rows] == ["E-2"]
    assert reasons(found)[4] == [("Code", "E-1", "same code as line 2")]
    assert reasons(found)[5] == [("Code", "E-2", "same code as line 3")]


MTO_HEADER: list[Cell] = ["Drawing", "Commodity", "Size", "Qty"]


def test_take_off_lines_are_numbered_by_their_key_and_blank_sizes_are_a_size() -> None:
    found = validate(
        MTO,
        MTO_HEADER,
        ["D-1", "P", 2, 1],
        ["D-1", "P", None, 1],
        ["D-1", "P", 2.0, "bad"],
        ["D-1", "P", "2", 5],
        size=2,
    )
    assert [(row[4], row[-1]) for row in found.rows] == [("2", 1), ("", 1), ("2", 3)]
    assert [row.cells for row in found.rejected] == [["D-1", "P", 2.0, "bad", 2]]


def test_a_sequence_column_is_taken_at_its_word() -> None:
    found = validate(
        MTO,
        [*MTO_HEADER, "Seq"],
        ["D-1", "P", 2, 1, 7],
        ["D-1", "P", 2, 1, 7],
        ["D-1", "P", 2, 1, None],
        ["D-1", "P", 2, 1, 0],
    )
    assert [row[5] for row in found.rows] == [7]
    assert [problems[0][2] for problems in reasons(found).values()] == [
        "same drawing, commodity code, size and sequence as line 2",
        "is missing; number the lines of the same key from 1",
        "is less than 1",
    ]


def test_a_take_off_without_sizes_has_blank_ones() -> None:
    found = validate(MTO, ["Drawing", "Commodity", "Qty"], ["D-1", "P", 1])
    assert found.rows == [("P1", "S1", "D-1", "P", Decimal(1), "", 1)]


def test_a_member_does_not_leave_before_coming() -> None:
    found = validate(
        CREW_MEMBER,
        ["Employee", "From", "To"],
        ["7", "2025-03-04", "2025-03-03"],
        ["8", "bad", "x"],
    )
    assert reasons(found)[2] == [("To", "2025-03-03", "is before From 2025-03-04")]
    assert [p[0] for p in reasons(found)[3]] == ["From", "To"]


def test_rows_that_hold_nothing_for_the_table_are_passed_over() -> None:
    found = validate(EQUIPMENT, ["Code", "Rate", "Own notes"], ["E-1"], [" ", None, "page 2"], [])
    assert (found.lines, found.rejected) == ([2], [])


CELLS = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.sampled_from(["1,234", "1.5", "03/04/2025", "D-1", "\x00", "owned"]),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.datetimes(),
)


@settings(deadline=None)
@given(
    st.sampled_from(list(own_tables().values())),
    st.lists(st.lists(CELLS, max_size=15), max_size=12),
    st.integers(1, 5),
)
def test_any_cells_are_taken_or_reported(
    spec: TableSpec, rows: list[list[Cell]], size: int
) -> None:
    header: list[Cell] = [field.name for field in spec.fields]
    found = validate(spec, header, *rows, size=size)
    reported = [row.line for row in found.rejected]
    assert not set(found.lines) & set(reported)
    assert reported == sorted(reported)
    for row in found.rejected:
        assert row.problems
        for cell in row.cells:
            assert not isinstance(cell, str) or not FORBIDDEN.search(cell)
            assert not isinstance(cell, str) or len(cell) <= CELL_CHARACTERS
            assert not isinstance(cell, float) or math.isfinite(cell)
    for row in found.rows:
        for value in row:
            assert not isinstance(value, Flaw | float | bool | datetime)
            assert not isinstance(value, str) or value.encode().decode() == value


@settings(deadline=None)
@given(st.lists(st.lists(CELLS, max_size=4), max_size=12), st.integers(1, 5))
def test_chunks_do_not_show(rows: list[list[Cell]], size: int) -> None:
    whole = validate(MTO, MTO_HEADER, *rows)
    parts = validate(MTO, MTO_HEADER, *rows, size=size)
    assert (whole.rows, whole.lines) == (parts.rows, parts.lines)
    assert reasons(whole) == reasons(parts)
