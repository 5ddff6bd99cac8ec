"""The catalogue holds everything that a run may ask for."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from temporalio import activity, workflow

from activities.spreadsheets.sheet_types import SheetTypes
from benchmarks import __main__ as benchmarks
from tests.support.batches.scripted import PLAN
from workers import catalogue
from workers.batches.register import BATCHES
from workers.batches.resources import BatchResources
from workers.commands import TREE
from workers.imports.register import IMPORTS
from workers.imports.resources import ImportResources
from workers.imports.settings import RunSettings
from workers.jobs.register import JOBS
from workers.jobs.resources import JobsOpened
from workers.shared.cli.app import Commands
from workers.shared.register import Bridge, Pipeline, activities_of, load, recognise
from workers.shared.resources import Resources
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.resources import SpreadsheetResources
from workers.transfers.register import TRANSFERS
from workers.transfers.resources import TransfersOpened
from workflows.imports.runs import Handler

SHA = "5eed" * 16
UUID = "5eed0000-0000-4000-8000-000000000000"

every_pipeline = pytest.mark.parametrize(
    "pipeline", catalogue.PIPELINES, ids=lambda pipeline: pipeline.name
)


class _Anything:
    """Stands for adapters that are wired and not used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"wiring must not use {name}")


def _filled(kind: type[Any], **given: Any) -> Any:
    """A dataclass of resources that are wired and not used."""
    return kind(**{name: _Anything() for name in inspect.signature(kind).parameters} | given)


OWN = {
    IMPORTS: _filled(ImportResources, runs=RunSettings(small_document_bytes=1, park_for_days=1)),
    SPREADSHEETS: _filled(SpreadsheetResources, types=SheetTypes()),
    BATCHES: _filled(BatchResources, plan=PLAN),
    JOBS: _filled(JobsOpened),
    TRANSFERS: _filled(TransfersOpened),
}


def _activities(pipeline: Pipeline) -> set[str]:
    common = _filled(Resources, scratch=Path())
    definitions = (
        activity._Definition.must_from_callable(function)
        for function in activities_of(*pipeline.activities(common, OWN[pipeline]))
    )
    return {definition.name or "" for definition in definitions}


@every_pipeline
def test_activities_are_named_after_their_pipeline(pipeline: Pipeline) -> None:
    found = _activities(pipeline)
    assert all(re.fullmatch(rf"{pipeline.name}\.[a-z_]+", name) for name in found)


@every_pipeline
def test_a_pipeline_has_its_task_queue_and_workflows(pipeline: Pipeline) -> None:
    assert pipeline.task_queue == pipeline.name
    names = {workflow._Definition.must_from_class(found).name for found in pipeline.workflows()}
    assert {kind.workflow for kind in pipeline.runs} == names


@every_pipeline
def test_a_run_of_a_schedule_is_recognised(pipeline: Pipeline) -> None:
    for id, declared in pipeline.schedules().items():
        run = recognise(catalogue.PIPELINES, f"schedule/{id}-2026-11-22T02:00:00Z")
        assert run is not None
        assert (run.pipeline, run.kind.workflow) == (pipeline, declared.workflow)
        assert (run.kind.scheduled, run.kind.verbs, run.key) == (True, (), "2026-11-22T02:00:00Z")


@every_pipeline
def test_ids_of_every_kind_begin_with_a_text_of_their_own(pipeline: Pipeline) -> None:
    assert all(re.fullmatch("[a-z-]+", kind.prefix) for kind in pipeline.runs)


def test_every_handler_of_an_import_is_served() -> None:
    assert _activities(IMPORTS) >= {handler.value for handler in Handler}


@every_pipeline
def test_every_activity_of_a_pipeline_is_served(pipeline: Pipeline) -> None:
    package = importlib.import_module(pipeline.activities_package)
    assert _activities(pipeline) == _declared(package)


@every_pipeline
def test_what_a_register_names_is_there(pipeline: Pipeline) -> None:
    _load_all(pipeline)


@every_pipeline
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contracts", "workflows.missing"),
        ("activities_package", "activities.missing"),
        ("commands", {"missing": "workers.shared.cli.missing:app"}),
        ("checks", "workers.shared.cli.status:missing"),
        ("replay_cases", "tests.replay.missing"),
        ("bridges", (Bridge("post", "Receive.", dict, "workers.shared.bridges.missing:receive"),)),
    ],
)
def test_a_wrong_name_in_a_register_is_found(pipeline: Pipeline, field: str, value: Any) -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError), match="missing"):
        _load_all(dataclasses.replace(pipeline, **{field: value}))


def _load_all(pipeline: Pipeline) -> None:
    """Import all modules and entry points that a register names.

    Raises:
        AttributeError: A module has not what it is named for.
        ModuleNotFoundError: There is no such module.
    """
    for module in (pipeline.contracts, pipeline.activities_package):
        importlib.import_module(module)
    once = (pipeline.checks, pipeline.documents)
    senders = [each.resubmission and each.resubmission.sender for each in pipeline.bridges]
    receivers = [bridge.run for bridge in pipeline.bridges]
    for entry in (*once, *pipeline.commands.values(), *senders, *receivers):
        if entry is not None:
            load(entry)
    load(f"{pipeline.replay_cases or f'tests.replay.{pipeline.name}'}:CASES_OF")


@pytest.mark.parametrize("name", benchmarks.names())
def test_a_benchmark_can_be_started(name: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        benchmarks.main([name, "--help"])
    assert stopped.value.code == 0


@every_pipeline
def test_updates_that_people_send_are_those_of_the_workflow(pipeline: Pipeline) -> None:
    known = {
        definition.name: definition
        for definition in map(workflow._Definition.must_from_class, pipeline.workflows())
    }
    for kind in pipeline.runs:
        definition = known[kind.workflow]
        for name, argument in kind.answers.items():
            assert definition.updates[name].arg_types == [argument]
        query = definition.queries.get("status")
        assert kind.status is (query and query.ret_type)


@pytest.mark.parametrize(
    ("workflow_id", "pipeline", "workflow", "title"),
    [
        ("import/P1/T1", IMPORTS, "DocumentImport", None),
        (
            f"spreadsheet/{UUID}",
            SPREADSHEETS,
            "SpreadsheetImport",
            None,
        ),
        (
            f"spreadsheet-undo/{UUID}",
            SPREADSHEETS,
            "SpreadsheetUndo",
            None,
        ),
        ("batch/7/1000000000", BATCHES, "BatchLifecycle", "Batch 1000000000 of case 7"),
        ("case/7", BATCHES, "CaseQueue", "Case 7"),
        ("load/7/1/A-1/relations", BATCHES, "DocumentLoad", None),
        ("load-group/7/1/0a1b", BATCHES, "DocumentGroup", None),
        (f"job/{SHA}", JOBS, "Job", f"Job {SHA[:8]}"),
        (f"job/{SHA}/1/2", JOBS, "Stage", None),
        (f"job/{SHA}/1/2.1/19", JOBS, "TaskBatch", None),
        (f"job-webhook/{SHA}/1/0/2", JOBS, "WebhookDelivery", None),
        (f"transfer/{SHA}", TRANSFERS, "FileEvent", f"Event {SHA[:8]}"),
        (f"transfer/{SHA}/job", TRANSFERS, "FileJob", f"Transfer {SHA[:8]}"),
    ],
)
def test_a_workflow_id_is_recognised(
    workflow_id: str, pipeline: Pipeline, workflow: str, title: str | None
) -> None:
    run = recognise(catalogue.PIPELINES, workflow_id)
    assert run is not None
    assert (run.pipeline, run.kind.workflow) == (pipeline, workflow)
    assert run.kind.title(run.key) == title


@pytest.mark.parametrize(
    "workflow_id", ["", "import/P1", "import/P1/T1/x", "batch/0/1", "batch/7/1000000001", "x/1"]
)
def test_any_other_id_is_of_no_pipeline(workflow_id: str) -> None:
    assert recognise(catalogue.PIPELINES, workflow_id) is None


def test_every_command_of_the_tree_is_there_under_its_name() -> None:
    commands = Commands()
    for name in TREE:
        assert commands[name].name == name
        # A longer sentence is cut where commands are listed.
        assert len(TREE[name].help) <= 62, name


def test_no_two_pipelines_share_a_name() -> None:
    for names in (
        [pipeline.name for pipeline in catalogue.PIPELINES],
        [bridge.name for pipeline in catalogue.PIPELINES for bridge in pipeline.bridges],
        [name for pipeline in catalogue.PIPELINES for name in pipeline.commands],
        [id for pipeline in catalogue.PIPELINES for id in pipeline.schedules()],
        [kind.workflow for pipeline in catalogue.PIPELINES for kind in pipeline.runs],
    ):
        assert len(names) == len(set(names))


def test_an_activity_is_found_by_its_definition_alone() -> None:
    class Some:
        @activity.defn(name="some.act")
        async def act(self) -> None: ...

        async def help(self) -> None: ...

        @property
        def broken(self) -> str:
            raise AssertionError("a property is not evaluated")

    class More(Some):
        @activity.defn(name="some.more")
        async def more(self) -> None: ...

    assert [found.__name__ for found in activities_of(More())] == ["act", "more"]


def _declared(package: ModuleType) -> set[str]:
    """Names of all activities that a package declares."""
    definitions = (activity._Definition.from_callable(function) for function in _methods(package))
    return {definition.name or "" for definition in definitions if definition is not None}


def _methods(package: ModuleType) -> Iterator[Any]:
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            for _, function in inspect.getmembers(kind, inspect.isfunction):
                yield function


@every_pipeline
def test_what_a_pipeline_and_its_bridges_need_can_be_opened(pipeline: Pipeline) -> None:
    entries = [each.requirements for each in (pipeline, *pipeline.bridges)]
    assert all(callable(load(entry)) for entry in entries if entry is not None)
