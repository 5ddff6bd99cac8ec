"""What becomes of columns that lose their field, and get it back."""

from datetime import UTC, datetime

import pytest

from workflows.spreadsheets.decisions import (
    AnswerRefused,
    decide_columns,
    left_out,
    refuse_open_values,
)
from workflows.spreadsheets.mappings import (
    CellSummary,
    ColumnDecision,
    ColumnMapping,
    FieldMetadata,
    MappingsAnswer,
    MappingStatus,
    SpreadsheetState,
)

AT = datetime(2026, 3, 4, tzinfo=UTC)
FIELDS = (FieldMetadata(name="LAST_NAME"), FieldMetadata(name="CITY"))
COLUMNS = (
    ColumnMapping(
        id=1,
        index=0,
        header="Surname",
        target="LAST_NAME",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
    ColumnMapping(id=2, index=1, header="Who"),
)


def decided(
    columns: tuple[ColumnMapping, ...], *decisions: ColumnDecision
) -> tuple[ColumnMapping, ...]:
    return decide_columns(columns, FIELDS, decisions, "ann", AT)[0]


@pytest.mark.parametrize(
    "undone",
    [
        ColumnDecision(id=2, reset=True),
        ColumnDecision(id=2, ignore=True),
        ColumnDecision(id=2, target="CITY"),
    ],
)
def test_a_field_that_was_taken_comes_back_with_the_choice(undone: ColumnDecision) -> None:
    taken = decided(COLUMNS, ColumnDecision(id=2, target="LAST_NAME"))
    assert [column.target for column in taken] == [None, "LAST_NAME"]
    assert left_out(taken) == ("Surname",)
    surname, _ = decided(taken, undone)
    assert (surname.target, surname.status, surname.confidence) == (
        *("LAST_NAME", MappingStatus.AUTO_MATCHED),
        0.95,
    )


def test_a_decision_is_taken_back_to_what_docflow_had_matched() -> None:
    ignored = decided(COLUMNS, ColumnDecision(id=1, ignore=True))
    back, _ = decide_columns(ignored, FIELDS, (ColumnDecision(id=1, reset=True),), "ann", AT)
    assert (back[0].target, back[0].status) == ("LAST_NAME", MappingStatus.AUTO_MATCHED)
    opened = decided(
        decided(COLUMNS, ColumnDecision(id=2, ignore=True)), ColumnDecision(id=2, reset=True)
    )
    assert opened[1].status is MappingStatus.UNMATCHED
    with pytest.raises(AnswerRefused, match="exactly one of targetField"):
        decided(COLUMNS, ColumnDecision(id=1, reset=True, ignore=True))


@pytest.mark.parametrize(
    ("values", "says"),
    [(1, "1 value is not decided yet"), (1_200, "1,200 values are not decided yet")],
)
def test_open_values_are_counted_in_words(values: int, says: str) -> None:
    answer = MappingsAnswer(
        state=SpreadsheetState.CELL_MAPPING, version=1, cells=CellSummary(open=values)
    )
    with pytest.raises(AnswerRefused, match=says):
        refuse_open_values(answer, {})
