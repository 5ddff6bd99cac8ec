"""Values as people and programs write them: `values.toml` has what becomes of each file."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.imports.documents import read
from workflows.shared.errors import InvalidDocument

FOLDER: Final = Path(__file__).parent
CASES: Final[Mapping[str, Any]] = tomllib.loads((FOLDER / "values.toml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_values_become_these(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    file = FOLDER / "values" / name
    if content := case.get("content"):
        file = tmp_path / name
        file.write_text(content.lstrip())
    if parks := case.get("parks"):
        with pytest.raises(InvalidDocument, match=parks):
            read(file, case["type"])
        return
    found = read(file, case["type"], **case.get("options", {}))
    for field, values in case["fields"].items():
        assert [_text(value, field) for value in found.column(field)] == values
    for reason in case.get("reasons", ()):
        assert all(reason in said for _, _, said in found.rejected)
    assert case.get("note", "") in found.note
    assert bool(found.rejected) == ("reasons" in case)


def _text(value: Any, field: str) -> str:
    if value is None:
        return "1" if field == "sequence" else ""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
