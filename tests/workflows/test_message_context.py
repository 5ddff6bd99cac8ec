"""Every line of a run names the message that it comes from, wherever in the run it is logged."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from workers.shared.logs import JsonLines, Redaction, bound

SHORTLY = timedelta(seconds=10)


@activity.defn(name="context.look")
async def look(place: str) -> None:
    activity.logger.info("%s", place)


@workflow.defn(name="ContextChild")
class Child:
    @workflow.run
    async def run(self) -> None:
        workflow.logger.info("child")


@workflow.defn(name="ContextRun")
class Run:
    @workflow.run
    async def run(self, is_first: bool) -> None:
        if is_first:
            workflow.logger.info("run")
            await workflow.execute_activity(look, "activity", start_to_close_timeout=SHORTLY)
            await workflow.execute_local_activity(
                look, "local activity", start_to_close_timeout=SHORTLY
            )
            await workflow.execute_child_workflow(Child.run, id="context-child")
            workflow.continue_as_new(False)
        workflow.logger.info("next run")


@workflow.defn(name="ContextQueue")
class Queue:
    def __init__(self) -> None:
        self._taken = 0

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._taken == 2)
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.update
    async def take(self) -> None:
        workflow.logger.info("update")
        await workflow.execute_activity(look, "of update", start_to_close_timeout=SHORTLY)
        self._taken += 1


@pytest.fixture
def lines() -> Iterator[Any]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(Redaction()))
    loggers = [workflow.logger.logger, activity.logger.logger]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    workflow.logger.workflow_info_on_message = activity.logger.activity_info_on_message = False
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    workflow.logger.workflow_info_on_message = activity.logger.activity_info_on_message = True
    for logger in loggers:
        logger.removeHandler(handler)


async def test_lines_of_run_activities_child_and_next_run_name_message_and_run(
    server: Any, run_worker: Any, lines: Any
) -> None:
    async with run_worker("context", [Run, Child], [look]):
        with bound(message_id="m1", queue="q"):
            started = await server.client.start_workflow(
                Run.run, True, id="context", task_queue="context"
            )
        await started.result()
    said = {line["message"]: (line["message_id"], "run_id" in line) for line in lines()}
    places = ("run", "activity", "local activity", "child", "next run")
    assert said == dict.fromkeys(places, ("m1", True))


async def test_each_update_of_a_run_names_its_own_message(
    server: Any, run_worker: Any, lines: Any
) -> None:
    async with run_worker("context-queue", [Queue], [look]):
        for message in ("m1", "m2"):
            start = WithStartWorkflowOperation(
                Queue.run,
                id="context-queue",
                task_queue="context-queue",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            with bound(message_id=message):
                await server.client.execute_update_with_start_workflow(
                    Queue.take, start_workflow_operation=start
                )
        await (await start.workflow_handle()).result()
    said = [(line["message"], line.get("message_id")) for line in lines()]
    assert said == [("update", "m1"), ("of update", "m1"), ("update", "m2"), ("of update", "m2")]
