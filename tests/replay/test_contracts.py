"""Contracts that stand in histories change by new fields with defaults only.

After such a change, run `python -m tests.replay.test_contracts` to write the lock anew.
"""

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType
from typing import Any

import pytest
from pydantic import create_model

import contracts
from contracts.base import Contract
from contracts.batches import BatchOrder
from contracts.imports import ImportOrder
from contracts.spreadsheets import SpreadsheetOrder
from workers import catalogue

LOCK = Path(__file__).parent / "contracts.lock.json"

Fields = Mapping[str, Mapping[str, Any]]
"""Field of a contract to what is locked of it."""


def contracts_of(package: ModuleType) -> Iterator[type[Contract]]:
    """Every contract that a module, or a module of a package, defines; private ones included."""
    modules = [package]
    for found in walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
        modules.append(importlib.import_module(found.name))
    for module in modules:
        for value in vars(module).values():
            is_contract = isinstance(value, type) and issubclass(value, Contract)
            if is_contract and value.__module__ == module.__name__:
                yield value


def schemas(word: str, models: Iterable[type[Contract]]) -> dict[str, Fields]:
    """`word.Class` of each contract to its fields: files may move within a package."""
    found: dict[str, Fields] = {}
    for model in models:
        key = f"{word}.{model.__name__}"
        assert key not in found, f"two contracts are called {key}"
        found[key] = fields_of(model)
    return found


def fields_of(model: type[Contract]) -> Fields:
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


def changes(locked: Mapping[str, Fields], found: Mapping[str, Fields]) -> list[str]:
    """What differs from the lock, and whether histories written before still decode."""
    said = [f"{name} is not locked" for name in sorted(found.keys() - locked.keys())]
    said += [f"{name} is gone" for name in sorted(locked.keys() - found.keys())]
    for name in sorted(found.keys() & locked.keys()):
        before, now = locked[name], found[name]
        said += [f"{name}.{field} was removed" for field in sorted(before.keys() - now.keys())]
        for field in sorted(now.keys() - before.keys()):
            wrong = "needs a default" if now[field]["required"] else "is not locked"
            said.append(f"{name}.{field} {wrong}")
        said += [
            f"{name}.{field} changed from {before[field]} to {now[field]}"
            for field in sorted(now.keys() & before.keys())
            if now[field] != before[field]
        ]
    return said


def read_lock() -> dict[str, Fields]:
    return json.loads(LOCK.read_text())


def every_contract() -> dict[str, Fields]:
    """Those of every pipeline of the catalogue, and whatever else stands in `contracts`."""
    shared = {found.name: f"contracts.{found.name}" for found in iter_modules(contracts.__path__)}
    pipelines = {pipeline.name: pipeline.contracts for pipeline in catalogue.PIPELINES}
    return {
        name: fields
        for word, package in {**shared, **pipelines}.items()
        for name, fields in schemas(word, contracts_of(importlib.import_module(package))).items()
    }


def test_no_contract_differs_from_the_lock() -> None:
    assert changes(read_lock(), every_contract()) == [], "see the top of this file"


@pytest.mark.parametrize(
    ("word", "order"),
    [("imports", ImportOrder), ("spreadsheets", SpreadsheetOrder), ("batches", BatchOrder)],
)
def test_the_lock_refuses_an_incompatible_change(word: str, order: type[Contract]) -> None:
    key = f"{word}.{order.__name__}"
    locked = {key: read_lock()[key]}
    name, field = next(iter(order.model_fields.items()))

    def planted(**fields: Any) -> list[str]:
        model = create_model(order.__name__, __base__=order, __module__=order.__module__, **fields)
        return changes(locked, schemas(word, [model]))

    def without() -> list[str]:
        kept = {key: (each.annotation, each) for key, each in order.model_fields.items()}
        del kept[name]
        changed: Any = create_model(
            order.__name__, __base__=Contract, __module__=order.__module__, **kept
        )
        return changes(locked, schemas(word, [changed]))

    assert field.is_required()
    assert planted() == []
    assert planted(planted=(int, ...)) == [f"{key}.planted needs a default"]
    assert planted(planted=(int, 0)) == [f"{key}.planted is not locked"]
    [changed] = planted(**{name: (dict[str, bytes], ...)})
    assert changed.startswith(f"{key}.{name} changed from ")
    assert f"{key}.{name} was removed" in without()


if __name__ == "__main__":
    LOCK.write_text(json.dumps(every_contract(), indent=1, sort_keys=True) + "\n")
