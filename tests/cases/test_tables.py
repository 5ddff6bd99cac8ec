"""Small tables as people send them: `tables.toml` has what becomes of each."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.imports.documents import read
from workflows.imports.types import TABLES
from workflows.shared.errors import InvalidDocument

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "tables.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_a_table_becomes_these_rows(case: dict[str, Any]) -> None:
    file, type = HERE / "tables" / case["file"], case["type"]
    if "refused" in case:
        with pytest.raises(InvalidDocument, match=case["refused"]):
            read(file, type)
        return
    found = read(file, type, map=case.get("map", {}))
    spec = next(spec for kind, spec in TABLES.items() if kind.value == type)
    assert found.column(spec.key[0]) == case["keys"]
    for name, values in case.get("fields", {}).items():
        assert found.column(name) == list(map(Decimal, values))
    assert {line for line, _, _ in found.rejected} == {*case.get("rejected", ())}
    assert case.get("note", "") in found.note


def test_every_file_has_an_outcome() -> None:
    files = {path.name for path in (HERE / "tables").iterdir()}
    assert files == {case["file"] for case in CASES}
