"""Runs that are open somewhere must continue under today's code."""

import asyncio
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.replay import history_lock
from tests.replay.history_lock import HISTORIES as FOLDER
from tests.replay.record import cases, record
from workers import catalogue
from workers.shared.payload_codec import EncryptingCodec
from workers.shared.plugin import docflow_plugin
from workers.shared.worker_factory import COMMON_WORKFLOWS
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import ImportInput, ImportResult

ROOT = Path(__file__).parents[2]
HISTORIES = sorted(FOLDER.glob("*/*.json"))
LANES = 12
"""Histories replayed at once: neighbours, which are mostly of one workflow."""
WORKFLOWS = {
    each.__name__: each
    for each in (
        *COMMON_WORKFLOWS,
        *(workflow for pipeline in catalogue.PIPELINES for workflow in pipeline.workflows()),
    )
}


def _history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(f"{path.parent.name}/{path.stem}", path.read_text())


def _replayer(workflows: list[type], *, sandboxed: bool = False) -> Replayer:
    return Replayer(workflows=workflows, plugins=[docflow_plugin(sandboxed=sandboxed)])


async def test_runs_that_began_in_clear_continue_with_keys() -> None:
    codec = EncryptingCodec({"one": b"k" * 32})
    replayer = Replayer(workflows=[*WORKFLOWS.values()], plugins=[docflow_plugin(codec=codec)])
    newest = {path.parent.name: path for path in HISTORIES}
    for path in newest.values():
        await replayer.replay_workflow(_history(path))


def test_the_histories_are_there() -> None:
    recorded = {(path.parent.name, path.stem) for path in HISTORIES}
    assert recorded == {(workflow, case) for workflow, of in cases().items() for case in of}


def test_no_history_differs_from_the_lock() -> None:
    locked = history_lock.read_lock(FOLDER)
    assert history_lock.differences(locked, history_lock.digests(FOLDER)) == [], (
        "restore what was recorded; see tests/replay/history_lock.py for new histories"
    )


def _two_histories(folder: Path) -> Path:
    """The first two histories of a workflow, in a folder of their own with a lock."""
    target = folder / "histories" / "Outage"
    target.mkdir(parents=True)
    for path in sorted((FOLDER / "Outage").glob("*.json"))[:2]:
        shutil.copy(path, target)
    history_lock.append(target.parent)
    return target.parent


def test_the_lock_refuses_a_history_that_is_changed_removed_or_new(tmp_path: Path) -> None:
    folder = _two_histories(tmp_path)
    first, second = sorted(folder.glob("*/*.json"))
    content = json.loads(first.read_text())
    locked = history_lock.read_lock(folder)

    def said() -> list[str]:
        return history_lock.differences(locked, history_lock.digests(folder))

    first.write_text(json.dumps(content))
    assert said() == [], "layout is no content"
    del content["events"][-1]
    first.write_text(json.dumps(content))
    name = f"Outage/{first.stem}"
    assert said() == [f"{name} is another history than the one that was recorded"]
    with pytest.raises(SystemExit, match="is another history"):
        history_lock.append(folder)
    first.unlink()
    assert said() == [f"{name} was removed"]
    with pytest.raises(SystemExit, match="was removed"):
        history_lock.append(folder)
    assert history_lock.read_lock(folder) == locked
    shutil.copy(second, first)
    second.rename(second.with_stem("other"))
    assert said() == [
        "Outage/other is not locked",
        f"Outage/{second.stem} was removed",
        f"{name} is another history than the one that was recorded",
    ]


def test_a_new_history_is_added_to_the_lock_beside_the_others(tmp_path: Path) -> None:
    folder = _two_histories(tmp_path)
    before = history_lock.read_lock(folder)
    first = min(folder.glob("*/*.json"))
    shutil.copy(first, first.with_stem("new"))
    history_lock.append(folder)
    after = history_lock.read_lock(folder)
    assert after == {**before, "Outage/new": before[f"Outage/{first.stem}"]}


async def test_a_history_that_was_removed_is_not_recorded_again(tmp_path: Path) -> None:
    folder = _two_histories(tmp_path)
    first = min(folder.glob("*/*.json"))
    first.unlink()
    with pytest.raises(SystemExit, match="never recorded again"):
        await record("Outage", first.stem, folder)
    assert not first.exists()


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
async def test_a_history_replays_in_the_sandbox(path: Path) -> None:
    replayer = _replayer([WORKFLOWS[path.parent.name]], sandboxed=True)
    result = await replayer.replay_workflow(_history(path))
    assert result.replay_failure is None


async def test_the_sandbox_refuses_a_workflow_that_reads_the_clock() -> None:
    history = _history(FOLDER / "DocumentImport" / "plain.json")
    with pytest.raises(RuntimeError, match=r"Cannot access datetime\.datetime\.now"):
        await _replayer([_ReadingClock], sandboxed=True).replay_workflow(history)


@workflow.defn(name="DocumentImport")
class _Diverging:
    @workflow.run
    async def run(self, order: ImportInput) -> ImportResult | None:
        await workflow.sleep(1)
        return None


@workflow.defn(name="DocumentImport")
class _ReadingClock(DocumentImport):
    @workflow.init
    def __init__(self, order: ImportInput) -> None:
        super().__init__(order)

    @workflow.run
    async def run(self, order: ImportInput) -> ImportResult:
        datetime.datetime.now(datetime.UTC)
        return await super().run(order)


async def test_a_diverging_workflow_is_refused() -> None:
    history = _history(FOLDER / "DocumentImport" / "plain.json")
    with pytest.raises(workflow.NondeterminismError):
        await _replayer([_Diverging]).replay_workflow(history)


class _Last:
    """State of a module that runs share."""

    run: object = None


@workflow.defn(name="DocumentImport")
class _Sharing(DocumentImport):
    @workflow.init
    def __init__(self, order: ImportInput) -> None:
        super().__init__(order)

    @workflow.run
    async def run(self, order: ImportInput) -> ImportResult:
        own = _Last.run = object()
        result = await super().run(order)
        if _Last.run is not own:
            await workflow.sleep(1)
        return result


async def test_a_workflow_that_shares_state_replays_alone_and_is_refused_among_others() -> None:
    history = FOLDER / "DocumentImport" / "parked-and-retried.json"
    replayed = await _replayer([_Sharing]).replay_workflow(_history(history))
    assert replayed.replay_failure is None
    found = await _replay_interleaved([_Sharing], [history] * LANES)
    assert any(isinstance(each, workflow.NondeterminismError) for each in found)


def test_histories_replay_interleaved_whatever_the_hash_seed() -> None:
    # A second seed: that of the tests above, which replay them alone, differs from run to run.
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(len(HISTORIES))), done.stderr


async def _histories(paths: Sequence[Path]) -> AsyncIterator[WorkflowHistory]:
    for path in paths:
        yield _history(path)


async def _replay_interleaved(
    workflows: list[type], paths: Sequence[Path]
) -> list[Exception | None]:
    """Failures of histories that are replayed side by side: runs of a lane follow one another,
    and the lanes take turns after each task of a run."""

    async def replay(lane: Sequence[Path]) -> list[Exception | None]:
        async with _replayer(workflows).workflow_replay_iterator(_histories(lane)) as results:
            return [result.replay_failure async for result in results]

    lanes = [paths[at::LANES] for at in range(LANES)]
    return [each for found in await asyncio.gather(*map(replay, lanes)) for each in found]


if __name__ == "__main__":
    found = asyncio.run(_replay_interleaved([*WORKFLOWS.values()], HISTORIES))
    print(found.count(None), flush=True)
    # Threads of the SDK may outlive the interpreter's shutdown, which now and then aborts it.
    os._exit(0)
