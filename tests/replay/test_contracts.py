"""Contracts that stand in histories change by new fields with defaults only.

After such a change, run `python -m tests.replay.test_contracts` to write the lock anew.
"""

import json
from pathlib import Path
from typing import Any

import contracts.imports
import contracts.spreadsheets
from contracts.base import Contract

LOCK = Path(__file__).parent / "contracts.lock.json"


PACKAGES = {"": contracts.imports, "spreadsheets.": contracts.spreadsheets}
"""Prefix in the lock, and the package whose contracts it stands for."""


def _schemas() -> dict[str, Any]:
    found = {
        prefix + name: value
        for prefix, package in PACKAGES.items()
        for name in package.__all__
        if isinstance(value := getattr(package, name), type) and issubclass(value, Contract)
    }
    return {name: _fields(model) for name, model in sorted(found.items())}


def _fields(model: type[Contract]) -> dict[str, Any]:
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return {
        field: {
            "required": field in required,
            "schema": {
                key: value
                for key, value in definition.items()
                if key not in ("description", "title", "default")
            },
        }
        for field, definition in schema.get("properties", {}).items()
    }


def test_no_contract_changes_unseen() -> None:
    assert _schemas() == json.loads(LOCK.read_text()), "see the top of this file"


def test_new_fields_have_defaults() -> None:
    locked = json.loads(LOCK.read_text())
    for name, fields in _schemas().items():
        for field in fields.keys() - locked.get(name, fields).keys():
            assert not fields[field]["required"], f"{name}.{field} needs a default"


if __name__ == "__main__":
    LOCK.write_text(json.dumps(_schemas(), indent=1, sort_keys=True) + "\n")
