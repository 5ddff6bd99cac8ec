"""Corrections of a review, applied to rows in their order."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.shared.cells import Cell
from workflows.shared.errors import RuleViolation
from workflows.spreadsheets.edits import Comparison, Edits
from workflows.spreadsheets.mappings import COLUMNS, ColumnMapping, MappingStatus
from workflows.spreadsheets.reviews import (
    CellValue,
    Constant,
    Exclude,
    Join,
    Move,
    Notation,
    NotationName,
    Operation,
    Replace,
    ReviewOperation,
    SetCells,
    Split,
    UndoOperation,
    active_operations,
    changed_columns,
    changed_rows,
    described,
)

AT = datetime(2026, 3, 4, 12, tzinfo=UTC)
COLUMN = tuple(
    ColumnMapping(
        id=i + 1, index=i, header=header, target=field, status=MappingStatus.MANUAL_MATCHED
    )
    for i, (header, field) in enumerate((("Name", "LAST_NAME"), ("Mail", "EMAIL"), ("Born", None)))
)


def listed(*operations: Operation) -> list[ReviewOperation]:
    return [
        ReviewOperation(id=i, version=i, operation=each, by=f"person {i}", at=AT)
        for i, each in enumerate(operations, start=1)
    ]


def edited(*operations: Operation, row: tuple[Cell, ...]) -> list[Cell]:
    return list(Edits(COLUMN, listed(*operations)).cells(2, row))


@pytest.mark.parametrize(
    ("operation", "row", "expected"),
    [
        (SetCells(cells=(CellValue(row=2, column=2, value="x"),)), ("A",), ["A", "x", None]),
        (SetCells(cells=(CellValue(row=2, column=1),)), ("A",), [None, None, None]),
        (Replace(column=2, find="(AT)", put="@"), ("A", "a(at)b"), ["A", "a@b", None]),
        (Replace(column=2, find="A", put="b", case=True), ("A", "aA"), ["A", "ab", None]),
        (Replace(column=2, find="a", put="b", whole=True), ("A", "aa"), ["A", "aa", None]),
        (Replace(column=2, find="a", whole=True), ("A", " A "), ["A", None, None]),
        (Replace(column=3, find="12", put="3"), ("A", "", 112), ["A", "", "13"]),
        (Replace(column=2, find="x", put="\\1"), ("A", "x"), ["A", "\\1", None]),
        (Constant(column=2, value="z"), ("A", "a"), ["A", "z", None]),
        (Constant(column=2, value="z", blanks=True), ("A", " "), ["A", "z", None]),
        (Constant(column=2, value="z", blanks=True), ("A", "a"), ["A", "a", None]),
        (Constant(field="CITY", value="Graz"), ("A", "a", 1), ["A", "a", 1, "Graz"]),
        (
            Split(column=1, fields=("FIRST_NAME", "LAST_NAME")),
            ("Ada  King Lovelace", None, None, "beyond"),
            ["Ada  King Lovelace", None, None, "Ada", "King Lovelace"],
        ),
        (
            Split(column=1, last=True, fields=("FIRST_NAME", "LAST_NAME")),
            ("Ada King Lovelace",),
            ["Ada King Lovelace", None, None, "Ada King", "Lovelace"],
        ),
        (
            Split(column=1, separator=",", fields=("LAST_NAME", "FIRST_NAME")),
            ("Lovelace",),
            ["Lovelace", None, None, "Lovelace", None],
        ),
        (Join(columns=(1, 2), field="NOTES"), ("A", " "), ["A", " ", None, "A"]),
        (Join(columns=(2, 1), separator="-", field="NOTES"), ("A", "b"), ["A", "b", None, "b-A"]),
        (
            Notation(column=3, notation=NotationName.MONTH_FIRST),
            ("A", "b", "3/4/2026"),
            ["A", "b", date(2026, 3, 4)],
        ),
        (
            Notation(column=3, notation=NotationName.DAY_FIRST),
            ("A", "b", "3/4/2026"),
            ["A", "b", date(2026, 4, 3)],
        ),
        (
            Notation(column=3, notation=NotationName.DAY_FIRST),
            ("A", "b", "soon"),
            ["A", "b", "soon"],
        ),
        (
            Notation(column=3, notation=NotationName.DECIMAL_COMMA),
            ("A", "b", "1.234,5"),
            ["A", "b", 1234.5],
        ),
        (
            Notation(column=3, notation=NotationName.HOURS_MINUTES),
            ("A", "b", "3:45"),
            ["A", "b", "3:45:00"],
        ),
        (
            Notation(column=3, notation=NotationName.MINUTES_SECONDS),
            ("A", "b", "3:45"),
            ["A", "b", "0:3:45"],
        ),
    ],
)
def test_an_operation_changes_cells(
    operation: Operation, row: tuple[Cell, ...], expected: list[Cell]
) -> None:
    assert edited(operation, row=row) == expected


def test_operations_follow_each_other_and_those_taken_back_are_left_out() -> None:
    fill = Constant(column=2, value="a")
    more = Replace(column=2, find="a", put="b")
    assert edited(fill, more, row=("A",))[1] == "b"
    assert edited(fill, more, UndoOperation(version=1), row=("A",))[1] is None
    undone = (fill, more, UndoOperation(version=1), UndoOperation(version=3))
    assert edited(*undone, row=("A",))[1] == "b"
    assert [each.version for each in active_operations(listed(*undone))] == [1, 2]


def test_a_new_column_takes_the_field_until_it_is_taken_back() -> None:
    split = Split(column=1, fields=("FIRST_NAME", "LAST_NAME"))
    edits = Edits(COLUMN, listed(split))
    assert [each.target for each in edits.columns] == [
        *(None, "EMAIL", None),
        *("FIRST_NAME", "LAST_NAME"),
    ]
    assert [each.header for each in edits.columns[3:]] == ["Name (1)", "Name (2)"]
    back = Edits(COLUMN, listed(split, UndoOperation(version=1)))
    assert back.columns == COLUMN
    move = Move(column=3, field="LAST_NAME")
    moved = Edits(COLUMN, listed(move))
    assert [each.target for each in moved.columns] == [None, "EMAIL", "LAST_NAME"]
    assert Edits(COLUMN, listed(move, UndoOperation(version=1))).columns == COLUMN
    # A column keeps its id when an earlier one is gone.
    later = Edits(
        COLUMN, listed(split, Constant(field="CITY", value="x"), UndoOperation(version=1))
    )
    assert [each.id for each in later.columns] == [1, 2, 3, 6]


def test_corrections_say_who_changed_which_cell() -> None:
    edits = Edits(
        COLUMN,
        listed(
            Replace(column=2, find="(at)", put="@"),
            SetCells(cells=(CellValue(row=2, column=2, value="b@c"),)),
            Split(column=1, fields=("FIRST_NAME", "LAST_NAME")),
        ),
    )
    [found] = edits.corrections(2, ("A B", "a(at)b"))
    assert (found.column, found.before, found.after, found.by) == (2, "a(at)b", "b@c", "person 2")
    assert [each.by for each in edits.corrections(3, ("A B", "a(at)b"))] == ["person 1"]
    assert edits.corrections(4, ("A B", "right")) == []


def test_rows_are_left_out_and_taken_in_again() -> None:
    edits = Edits(COLUMN, listed(Exclude(rows=(2, 3)), Exclude(rows=(3,), back=True)))
    assert edits.excluded == {2: "person 1"}


def test_what_names_no_column_is_refused() -> None:
    with pytest.raises(RuleViolation, match="no column 9"):
        Edits(COLUMN, listed(Replace(column=9, find="x")))
    with pytest.raises(RuleViolation, match="same field"):
        Edits(COLUMN, listed(Split(column=1, fields=("CITY", "CITY"))))
    wide = ColumnMapping(id=COLUMNS, index=COLUMNS - 1, header="last")
    with pytest.raises(RuleViolation, match="at most"):
        Edits([wide], listed(Constant(field="CITY", value="x")))


def test_what_an_operation_can_change_is_known_before() -> None:
    split = Split(column=1, fields=("FIRST_NAME", "LAST_NAME"))
    fill = Constant(column=1, value="Ada Lovelace")
    operations = listed(fill, split)
    made = Edits(COLUMN, operations).made
    assert changed_columns(UndoOperation(version=1), operations, made) == {1, 4, 5}
    assert changed_columns(split, operations, made) == set()
    assert changed_columns(Exclude(rows=(2,)), operations, made) is None
    assert changed_rows(SetCells(cells=(CellValue(row=7, column=1),)), operations) == {7}
    assert changed_rows(fill, operations) is None


def test_the_words_of_an_operation_hold_no_cell() -> None:
    headers = {1: "Name", 2: "Mail"}
    secret = SetCells(cells=(CellValue(row=7, column=2, value="secret"),))
    assert described(secret, headers) == ("row 7, Mail", "corrected")
    assert described(Replace(column=2, find="secret"), headers) == ("Mail", "text replaced")


@given(
    st.lists(st.none() | st.text(max_size=8) | st.integers() | st.booleans(), max_size=4),
    st.text(min_size=1, max_size=3),
    st.text(max_size=3),
)
def test_an_operation_and_its_undo_leave_a_row_as_it_was(
    row: list[Cell], find: str, put: str
) -> None:
    operations = listed(Replace(column=1, find=find, put=put), UndoOperation(version=1))
    assert Edits(COLUMN, operations).cells(2, row) == row


_TEXTS = st.sampled_from(("", " ", "a", "A b", "3/4/2026", "1,5", "a(at)b"))
_COLUMN_IDS = st.integers(1, 3)
_OPERATIONS = st.one_of(
    st.builds(Replace, column=_COLUMN_IDS, find=st.sampled_from(("a", "A b", "(at)")), put=_TEXTS),
    st.builds(Constant, column=_COLUMN_IDS, value=_TEXTS, blanks=st.booleans()),
    st.builds(Constant, field=st.sampled_from(("CITY", "NOTES")), value=_TEXTS),
    st.just(Split(column=1, fields=("FIRST_NAME", "LAST_NAME"))),
    st.just(Join(columns=(1, 2), field="NOTES")),
    st.builds(Move, column=_COLUMN_IDS, field=st.sampled_from(("EMAIL", "CITY"))),
    st.builds(Notation, column=_COLUMN_IDS, notation=st.sampled_from(NotationName)),
    st.builds(
        lambda row, column, value: SetCells(
            cells=(CellValue(row=row, column=column, value=value),)
        ),
        *(st.integers(1, 3), _COLUMN_IDS, _TEXTS),
    ),
    st.builds(UndoOperation, version=st.integers(1, 6)),
)


@given(
    st.lists(_OPERATIONS, max_size=6),
    _OPERATIONS,
    st.lists(st.one_of(st.none(), _TEXTS, st.integers(0, 12)), max_size=len(COLUMN)),
    st.integers(1, 3),
)
def test_rows_are_compared_as_if_each_list_was_applied_alone(
    operations: list[Operation], last: Operation, cells: list[Cell], row: int
) -> None:
    before = Edits(COLUMN, listed(*operations))
    after = Edits(COLUMN, listed(*operations, last))
    compared = Comparison(before, after).cells(row, cells)
    for found, edits in zip(compared, (before, after), strict=True):
        width = max(len(found), len(edits.padded(())))
        alone = [*edits.cells(row, cells)]
        assert _wide(found, width) == _wide(alone, width)


def _wide(cells: Sequence[Cell], width: int) -> list[tuple[type, Cell]]:
    """Cells up to a width; 1 and True differ, a place that is not there is blank."""
    some = [*cells[:width], *[None] * (width - len(cells))]
    return [(type(cell), cell) for cell in some]
