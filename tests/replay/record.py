"""Records the histories that every later release has to replay.

Run as `python -m tests.replay.record WORKFLOW CASE` for a new case. An existing history is never
recorded again: it stands for runs that are open somewhere when a release is rolled out.
"""

import asyncio
import importlib
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from temporalio.client import WorkflowFailureError
from temporalio.testing import TimeSkippingConfig, WorkflowEnvironment
from temporalio.worker import Worker

from stack.temporal import temporal_binary
from tests.replay import errands, history_lock, notices, outages, rejections, sweeps
from tests.replay.history_lock import HISTORIES
from workers import catalogue
from workers.shared.plugin import docflow_plugin
from workflows.shared import attributes

TASK_QUEUE = "recorded"

Cases = Mapping[str, Mapping[str, Any]]
"""Workflow to its cases by name."""


def cases() -> Cases:
    """The cases of every pipeline of the catalogue, and of what every worker serves."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    modules = [errands, outages, notices, rejections, sweeps]
    for pipeline in catalogue.PIPELINES:
        own = pipeline.replay_cases or f"tests.replay.{pipeline.name}"
        modules.append(importlib.import_module(own))
    for module in modules:
        for workflow, of in module.CASES_OF.items():
            found[workflow] |= of
    return found


def _of_no_machine(value: Any) -> Any:
    """Leave out what identifies the machine: names of hosts, and folders in stack traces."""
    if isinstance(value, list):
        return [_of_no_machine(item) for item in cast(list[Any], value)]
    if isinstance(value, str):
        return re.sub(r"^\d+@[\w.]+", "recorder", value)
    if not isinstance(value, dict):
        return value
    items = cast(dict[str, Any], value).items()
    return {name: "" if name == "stackTrace" else _of_no_machine(item) for name, item in items}


async def _server(case: Any) -> WorkflowEnvironment:
    """A dev server; a case may set after how many events a run is to continue as new."""
    values = ["frontend.WorkflowTimeSkippingEnabled=true"]
    if events := getattr(case, "events_per_run", None):
        values.append(f"limit.historyCount.suggestContinueAsNew={events}")
    return await WorkflowEnvironment.start_time_skipping_v2(
        ts_config=TimeSkippingConfig(enabled=False),
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[
            word for value in values for word in ("--dynamic-config-value", value)
        ],
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )


async def record(workflow: str, name: str, folder: Path = HISTORIES) -> None:
    """Run one case on a dev server and keep its history."""
    target = folder / workflow / f"{name}.json"
    if target.exists() or f"{workflow}/{name}" in history_lock.read_lock(folder):
        sys.exit(f"{workflow}/{name} was recorded: a history is never recorded again")
    case = cases()[workflow][name]
    environment = await _server(case)
    async with (
        environment,
        Worker(
            environment.client,
            task_queue=TASK_QUEUE,
            workflows=getattr(case, "workflows", [case.workflow]),
            activities=case.activities(),
            interceptors=getattr(case, "interceptors", ()),
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
        ),
    ):
        handle = await case.start(environment.client, name, TASK_QUEUE)
        await case.go(handle)
        if passes := getattr(case, "passes", None):
            await environment.fast_forward(handle, passes)
        try:
            await handle.result()
        except WorkflowFailureError as failure:
            print(f"{name}: ends with {failure.cause}")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Of the first run, where a case continues as new.
        first = environment.client.get_workflow_handle(
            handle.id, run_id=handle.first_execution_run_id
        )
        history = json.loads((await first.fetch_history()).to_json())
        target.write_text(json.dumps(_of_no_machine(history), indent=1) + "\n")
        history_lock.append(folder)


if __name__ == "__main__":
    workflow, *names = sys.argv[1:]
    for case_name in names or sorted(cases()[workflow]):
        asyncio.run(record(workflow, case_name))
    # Threads of the SDK may still be at work when the interpreter ends, which then aborts.
    sys.stdout.flush()
    os._exit(0)
