"""What a run shows in the Web UI while it waits."""

import json
import re
from datetime import UTC, datetime

import pytest

from workflows.spreadsheets.decisions import details
from workflows.spreadsheets.mappings import CellSummary, OpenValue, SpreadsheetState

VALUE = OpenValue(id=7, field="ID_COUNTRY", value="Ruritania", rows=3)


@pytest.mark.parametrize(
    ("state", "queries"),
    [
        (SpreadsheetState.COLUMN_MAPPING, ["column_mappings"]),
        (SpreadsheetState.CELL_MAPPING, ["cell_mappings", "candidates"]),
    ],
)
def test_commands_change_nothing_before_a_person_has_chosen(
    state: SpreadsheetState, queries: list[str]
) -> None:
    cells = CellSummary(total=1, open=1, first_open=(VALUE,))
    shown = details("spreadsheet/x", state, datetime.now(UTC), "ann", (), cells)
    assert re.findall(r"workflow query .* --name (\w+)", shown) == queries
    inputs = re.findall(r"workflow update execute .* --input '(.*?)'", shown)
    assert len(inputs) == 3
    for each in inputs:
        with pytest.raises(json.JSONDecodeError):
            json.loads(each)
        filled = re.sub(r'<"\w+">', '"LAST_NAME"', each)
        assert json.loads(re.sub(r"<\w+>", "1", filled))
