"""Runs that are open somewhere must continue under today's code."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from contracts.imports import ImportOrder, ImportResult
from tests.replay.record import cases
from workers import catalogue
from workers.dependencies import COMMON_WORKFLOWS
from workers.plugin import docflow_plugin

FOLDER = Path(__file__).parent / "histories"
HISTORIES = sorted(FOLDER.glob("*/*.json"))
WORKFLOWS = {
    each.__name__: each
    for each in (
        *COMMON_WORKFLOWS,
        *(workflow for pipeline in catalogue.PIPELINES for workflow in pipeline.workflows()),
    )
}


def _history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(f"{path.parent.name}/{path.stem}", path.read_text())


def _replayer(workflows: list[type]) -> Replayer:
    return Replayer(workflows=workflows, plugins=[docflow_plugin()])


def test_the_histories_are_there() -> None:
    recorded = {(path.parent.name, path.stem) for path in HISTORIES}
    assert recorded == {(workflow, case) for workflow, of in cases().items() for case in of}


@pytest.mark.parametrize(
    ("case", "step", "times"),
    [
        ("happy", "redrive", 0),
        ("redriven-twice", "redrive", 2),
        ("dead-letters-kept", "redrive", 2),
        ("redrive-of-kept", "redrive", 1),
        ("cancelled-while-provisioning", "attach_mapping", 0),
        ("parked-then-retried", "subscribe", 2),
    ],
)
def test_a_history_matches_its_name(case: str, step: str, times: int) -> None:
    text = (FOLDER / "BatchLifecycle" / f"{case}.json").read_text()
    assert len(re.findall(rf'"name": "batches\.{step}"', text)) == times


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_history_reveals_nothing_about_its_machine(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\.py|\d+@", text)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_history_replays(path: Path) -> None:
    # A replayer imports every workflow that it is given: this history needs one.
    result = await _replayer([WORKFLOWS[path.parent.name]]).replay_workflow(_history(path))
    assert result.replay_failure is None


@workflow.defn(name="DocumentImport")
class _Diverging:
    @workflow.run
    async def run(self, order: ImportOrder) -> ImportResult | None:
        await workflow.sleep(1)
        return None


async def test_a_diverging_workflow_is_refused() -> None:
    history = _history(FOLDER / "DocumentImport" / "plain.json")
    with pytest.raises(workflow.NondeterminismError):
        await _replayer([_Diverging]).replay_workflow(history)


def test_histories_replay_whatever_the_hash_seed() -> None:
    # A second seed: that of the tests above is another one in every run.
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(len(HISTORIES))), done.stderr


async def _histories() -> AsyncIterator[WorkflowHistory]:
    for path in HISTORIES:
        yield _history(path)


async def _replay_all() -> int:
    replayer = _replayer([*WORKFLOWS.values()])
    async with replayer.workflow_replay_iterator(_histories()) as results:
        return len([result async for result in results if result.replay_failure is None])


if __name__ == "__main__":
    print(asyncio.run(_replay_all()), flush=True)
    # Threads of the SDK may outlive the interpreter's shutdown, which now and then aborts it.
    os._exit(0)
