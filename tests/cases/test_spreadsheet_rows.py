"""Rows of spreadsheets, each with its headers: `spreadsheet_rows/*.toml` has what becomes of them.

`written` are rows by table without blank values, `wrong` the problems (line, column, value,
reason), `parked` lines wait for an answer, `skipped` ones hold nothing, and `open` are values that
are not known (field, value, rows, question). `decided` is what a person has answered.
"""

from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.sheet_types import discover
from tests.cases.corpus import Case, cases
from tests.support.spreadsheets.rules import source, validator
from workflows.shared.cells import Cell
from workflows.spreadsheets.mappings import CellMapping

CASES: Final = cases(Path(__file__).parent / "spreadsheet_rows")
TYPES: Final = discover()


def shown(value: Any) -> str:
    """A value as a case writes it."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_become_these(case: Case) -> None:
    headers, *written = case["rows"]
    cells: list[list[Cell]] = [[None if cell == "" else cell for cell in row] for row in written]
    decided = [CellMapping(id=1, **each) for each in case.get("decided", ())]
    rows = source(cells)
    with closing(SeenKeys(Path())) as seen:
        type = TYPES[case.get("type", "EVENT_PARTICIPANT")]
        found = validator(type, headers, rows, seen=seen, decided=decided).validate(rows)
    targets = {
        target.table: [
            {
                name: shown(value)
                for name, value in zip(target.columns, row, strict=True)
                if value is not None and name != "organisation_id"
            }
            for row in target.rows
        ]
        for target in found.targets
        if target.rows
    }
    assert targets == case.get("written", {})
    assert [
        [line, each.column or "", each.value or "", each.reason]
        for line, problems in found.errors
        for each in problems
    ] == case.get("wrong", [])
    assert [row.line for row in found.parked] == case.get("parked", [])
    assert [list(each) for each in found.skipped] == case.get("skipped", [])
    assert [
        [each.field, each.value, each.rows, each.question or ""]
        for each in found.found
        if each.target_id is None
    ] == case.get("open", [])
