"""Workflows call activities by their stubs: each says what the activity says."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest
from temporalio import activity

import activities
import workflows


def _definitions(module: ModuleType) -> Iterator[activity._Definition]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if kind.__module__ == module.__name__:
            for _, method in inspect.getmembers(kind, inspect.isfunction):
                if definition := activity._Definition.from_callable(method):
                    yield definition


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


CARRIED_OUT = {each.name: each for module in _modules(activities) for each in _definitions(module)}
STUBS = [
    each
    for module in _modules(workflows)
    if module.__name__.endswith(".steps")
    for each in _definitions(module)
]


@pytest.mark.parametrize("stub", STUBS, ids=lambda each: each.name)
def test_a_stub_says_what_its_activity_says(stub: activity._Definition) -> None:
    found = CARRIED_OUT[stub.name or ""]
    assert stub.fn.__qualname__ == found.fn.__qualname__
    assert (stub.arg_types, stub.ret_type) == (found.arg_types, found.ret_type)


def test_a_step_has_one_stub() -> None:
    names = [each.name for each in STUBS]
    assert len(names) == len(set(names)) > 60
