"""Records the histories that every later release has to replay.

Run as `python -m tests.replay.record CASE` for a new case. An existing history is never recorded
again: it stands for runs that are open somewhere when a release is rolled out.
"""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from contracts.imports import Answer, ImportOrder, Retry
from tests.support.imports import OUTCOME, World, import_message, permanent
from workers.plugin import docflow_plugin
from workers.stack.temporal import temporal_binary
from workflows import attributes
from workflows.imports import DocumentImport

HISTORIES = Path(__file__).parent / "histories" / "DocumentImport"
Handle = WorkflowHandle[Any, Any]


async def _nothing(handle: Handle, world: World) -> None:
    return


async def _when_parked(handle: Handle) -> None:
    while not (await handle.query(DocumentImport.status)).next_steps:
        await asyncio.sleep(0.05)


async def _retry(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    await handle.execute_update(DocumentImport.retry, Retry(by="ann"))


async def _retry_corrected(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    corrected = world.prepared[0].model_copy(update={"blob_name": "uploads/right.csv"})
    await handle.signal("retry", Retry(message=corrected, by="ann"))


async def _skip(handle: Handle, world: World) -> None:
    await _when_parked(handle)
    await handle.signal("skip")


async def _cancel(handle: Handle, world: World) -> None:
    await world.working.wait()
    await handle.execute_update(DocumentImport.cancel, Answer(reason="enough"))


@dataclass
class Case:
    """One way a run can go."""

    world: World
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    act: Callable[[Handle, World], Awaitable[None]] = _nothing
    park: timedelta = timedelta(days=14)


CASES: dict[str, Case] = {
    "plain": Case(World()),
    "plain-remote": Case(World(path="remote")),
    "parked-and-retried": Case(World(failures=[permanent()]), act=_retry),
    "parked-and-corrected": Case(
        World(failures=[permanent()], path="remote"), act=_retry_corrected
    ),
    "parked-and-skipped": Case(World(failures=[permanent()]), act=_skip),
    "parked-too-long": Case(World(failures=[permanent()]), park=timedelta(seconds=1)),
    "skipped": Case(World(skip="completed already by task t-0")),
    "cancelled": Case(World(block=True, path="remote"), act=_cancel),
    "cancelled-local": Case(World(block=True), act=_cancel),
    "bulk": Case(
        World(),
        {"document_type": "schedule_fill_level", "payload": {"level": 2, "value": "Unit 100"}},
    ),
    "delete": Case(World(), {"document_type": "mto_delete", "service_id": "s1"}),
    "held-back": Case(
        World(outcomes=[OUTCOME.model_copy(update={"held_back": "nothing was written"})]),
        {"all_or_nothing": True},
        act=_retry,
    ),
    "result-not-recorded": Case(World(finish_failures=[permanent("no database")]), act=_retry),
}


def _of_no_machine(value: Any) -> Any:
    """Leave out what tells of the machine: names of hosts, and folders in stack traces."""
    if isinstance(value, list):
        return [_of_no_machine(item) for item in cast(list[Any], value)]
    if isinstance(value, str):
        return re.sub(r"^\d+@[\w.]+", "recorder", value)
    if not isinstance(value, dict):
        return value
    items = cast(dict[str, Any], value).items()
    return {name: "" if name == "stackTrace" else _of_no_machine(item) for name, item in items}


async def record(name: str) -> None:
    """Run one case on a dev server and keep its history."""
    target = HISTORIES / f"{name}.json"
    if target.exists():
        sys.exit(f"{target} exists: a recorded history is never recorded again")
    case = CASES[name]
    message = import_message(task_id=name, **case.message)
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with (
        environment,
        Worker(
            environment.client,
            task_queue="imports",
            workflows=[DocumentImport],
            activities=case.world.activities(),
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
        ),
    ):
        handle = await environment.client.start_workflow(
            DocumentImport.run,
            ImportOrder(message=message, park_for_seconds=int(case.park.total_seconds())),
            id=message.workflow_id,
            task_queue="imports",
            search_attributes=attributes.at_start(
                "imports", message.document_type, message.project_id
            ),
        )
        await case.act(handle, case.world)
        try:
            await handle.result()
        except WorkflowFailureError as failure:
            print(f"{name}: ends with {failure.cause}")
        HISTORIES.mkdir(parents=True, exist_ok=True)
        history = json.loads((await handle.fetch_history()).to_json())
        target.write_text(json.dumps(_of_no_machine(history), indent=1) + "\n")


if __name__ == "__main__":
    for case_name in sys.argv[1:]:
        asyncio.run(record(case_name))
