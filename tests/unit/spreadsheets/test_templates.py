"""Templates of import types: every column of one that is filled in is recognised."""

from itertools import product

import pytest

from activities.spreadsheets.column_matching import match_columns
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.types.base import SheetType
from workers.shared.gateway.pages.renderer import languages, use_locale
from workers.spreadsheets.http import template_sheets
from workflows.spreadsheets.mappings import MappingStatus

CASES = list(product(languages(), discover().values()))


@pytest.mark.parametrize(("code", "kind"), CASES, ids=[f"{it}-{kind.name}" for it, kind in CASES])
def test_each_column_of_a_template_is_recognised(code: str, kind: SheetType) -> None:
    with use_locale(languages()[code]):
        first, guidance = template_sheets(kind)
    assert first.rows == []
    samples = [field.examples[:1] for field in kind.fields]
    found = match_columns(list(enumerate(first.headers)), kind.fields, {}, samples)
    assert [each.target for each in found] == [field.name for field in kind.fields]
    assert {each.status for each in found} == {MappingStatus.AUTO_MATCHED}
    assert [row[0] for row in guidance.rows[:-1]] == list(first.headers)
