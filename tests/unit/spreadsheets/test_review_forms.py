"""Forms of the review: what they mean."""

import json
from collections.abc import Mapping

import pytest

from workers.shared.gateway.pages.site import Form
from workers.shared.services.errors import Refused
from workers.spreadsheets.pages.review_panel import (
    Corrected,
    RowsPlace,
    corrected,
    in_words,
    operation_of,
    place_of,
)
from workers.spreadsheets.review_files import RowFilter
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
    SetCells,
    Split,
    UndoOperation,
)


@pytest.mark.parametrize(
    ("fields", "operation"),
    [
        (
            {"kind": "REPLACE", "column": "3", "find": "  ", "put": " ", "case": "1"},
            Replace(column=3, find="  ", put=" ", case=True),
        ),
        (
            {"kind": "CONSTANT", "into": "column:3", "value": "AT", "blanks": "1"},
            Constant(column=3, value="AT", blanks=True),
        ),
        (
            {"kind": "CONSTANT", "into": "field:CLUB", "value": "LC"},
            Constant(field="CLUB", value="LC"),
        ),
        (
            {"kind": "SPLIT", "column": "1", "separator": "", "first": "A", "second": "B"},
            Split(column=1, fields=("A", "B")),
        ),
        (
            {"kind": "JOIN", "column": "1", "other": "2", "separator": ", ", "field": "STREET"},
            Join(columns=(1, 2), separator=", ", field="STREET"),
        ),
        (
            {"kind": "MOVE", "column": "4", "field": "CLUB"},
            Move(column=4, field="CLUB"),
        ),
        ({"kind": "CLEAR", "column": "4"}, Constant(column=4, value="")),
        (
            {"kind": "NOTATION", "column": "4", "notation": "DAY_FIRST"},
            Notation(column=4, notation=NotationName.DAY_FIRST),
        ),
        ({"operation": '{"kind": "UNDO", "version": 6}'}, UndoOperation(version=6)),
    ],
)
def test_a_form_describes_a_change(fields: Mapping[str, str], operation: Operation) -> None:
    assert operation_of(Form(fields)) == operation


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "REPLACE", "column": "", "find": "a"},
        {"kind": "REPLACE", "column": "3", "find": ""},
        {"kind": "CONSTANT", "into": "", "value": "x"},
        {"kind": "NOTATION", "column": "3", "notation": "BACKWARDS"},
        {"kind": "SOMETHING"},
        {},
        {"operation": "{"},
    ],
)
def test_an_incomplete_change_is_refused(fields: Mapping[str, str]) -> None:
    with pytest.raises(Refused, match="the change is incomplete"):
        operation_of(Form(fields))


def test_only_what_a_person_changed_is_corrected() -> None:
    seen = {"1": "Ada", "2": "one\nline", "3": "x", "out": False}
    fields = {
        "seen-9": json.dumps(seen),
        "cell-9-1": "Ada",
        "cell-9-2": "oneline",
        "cell-9-3": " y ",
        "out-9": "1",
        "seen-10": json.dumps({"1": "Ben", "out": True}),
        "cell-10-1": "",
    }
    assert corrected(Form(fields)).operations() == [
        SetCells(
            cells=(CellValue(row=9, column=3, value="y"), CellValue(row=10, column=1, value=None))
        ),
        Exclude(rows=(9,)),
        Exclude(rows=(10,), back=True),
    ]


@pytest.mark.parametrize("seen", ["{", "[]"])
def test_a_form_that_is_none_of_ours_is_refused(seen: str) -> None:
    with pytest.raises(Refused, match="load the page again"):
        corrected(Form({"seen-1": seen}))


def test_a_button_names_rows() -> None:
    place = RowsPlace(RowFilter.PROBLEMS, 3, 2)
    assert place_of(place.name) == place
    assert place_of("ALL::0") == RowsPlace()
    assert place_of("NONE::0") is None
    assert place.query == "rows=PROBLEMS&page=2&column=3"


def test_what_is_saved_is_no_longer_kept_and_the_rest_is_named() -> None:
    kept = Corrected({(2, 1): "x"}, (4, 5), (6,))
    operations = kept.operations()
    assert [in_words(each) for each in operations] == [
        "1 cell corrected",
        "2 rows left out",
        "1 row taken in again",
    ]
    assert kept.without(operations[:1]) == Corrected({}, (4, 5), (6,))
    assert kept.without(operations[:2]).operations() == operations[2:]
    assert kept.without(operations) == Corrected()
