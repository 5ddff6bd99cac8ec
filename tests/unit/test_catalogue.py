"""The catalogue holds everything that a run may ask for."""

import importlib
import inspect
import pkgutil
import re
from types import ModuleType
from typing import Any

import pytest
from temporalio import activity, workflow

from contracts.imports import Handler
from domain.spreadsheets.types import SheetTypes
from tests.support.batches import PLAN
from workers.catalogue import CATALOGUE
from workers.resources.batches import BatchResources
from workers.resources.common import Resources
from workers.settings import RunSettings


class _Anything:
    """Stands for adapters that are wired and not used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"wiring must not use {name}")


def _activities(name: str, tmp_path: Any) -> set[str]:
    anything: Any = _Anything()
    resources = Resources(
        database=anything,
        store=anything,
        tasks=anything,
        rejected=anything,
        blobs=anything,
        documents=anything,
        reports=anything,
        notices=anything,
        spreadsheets=anything,
        sheet_types=SheetTypes(),
        scratch=tmp_path,
        runs=RunSettings(1, 1, None),
        batches=BatchResources(
            plan=PLAN,
            queues=anything,
            topic=anything,
            functions=anything,
            grants=anything,
            store=anything,
            loads=anything,
            texts=anything,
            runs=anything,
        ),
    )
    definitions = (
        activity._Definition.must_from_callable(function)
        for function in CATALOGUE[name].activities(resources)
    )
    return {definition.name or "" for definition in definitions}


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_activities_are_named_after_their_pipeline(name: str, tmp_path: Any) -> None:
    assert all(re.fullmatch(rf"{name}\.[a-z_]+", found) for found in _activities(name, tmp_path))


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_a_pipeline_has_its_task_queue_and_workflows(name: str) -> None:
    pipeline = CATALOGUE[name]
    assert pipeline.task_queue == name
    for found in pipeline.workflows:
        assert workflow._Definition.must_from_class(found).name


def test_every_handler_of_an_import_is_served(tmp_path: Any) -> None:
    assert _activities("imports", tmp_path) >= {handler.value for handler in Handler}


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_activity_of_a_pipeline_is_served(name: str, tmp_path: Any) -> None:
    assert _activities(name, tmp_path) == _declared(importlib.import_module(f"activities.{name}"))


def _declared(package: ModuleType) -> set[str]:
    """Names of all activities that stand in a package."""
    modules = (
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    )
    functions = (
        function
        for module in modules
        for _, found in inspect.getmembers(module, inspect.isclass)
        for _, function in inspect.getmembers(found, inspect.isfunction)
    )
    definitions = (activity._Definition.from_callable(function) for function in functions)
    return {definition.name or "" for definition in definitions if definition is not None}
