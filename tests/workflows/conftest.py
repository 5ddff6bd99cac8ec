"""A real Temporal server, and the workers that workflow tests run on it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowHandle,
)
from temporalio.testing import TimeSkippingConfig, WorkflowEnvironment
from temporalio.worker import Worker

from stack.temporal import TUNING, temporal_binary
from tests.support.batches.runs import BatchRuns
from tests.support.dev_server import started
from tests.support.spreadsheets.runs import SpreadsheetRuns
from workers.shared.plugin import docflow_plugin
from workflows.shared import attributes

TASK_TIMEOUT = timedelta(seconds=1)
"""Of workflow tasks, where production has Temporal's ten seconds: a run that loses its place on a
worker, or is cancelled while a local activity works, waits for it."""
NO_CACHE = {"max_cached_workflows": 0, "workflow_failure_exception_types": [Exception]}
"""Every run is replayed from its history at each step, and any exception fails it: hidden
non-determinism shows. Only for tests of one run at a time: a task of another run would evict the
first with its local activities, and that run would wait for the timeout of its task."""


class ShortTasks(Interceptor):
    """Gives the runs that tests start a short timeout of their workflow tasks."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _ShortTasks(next)


class _ShortTasks(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        input.task_timeout = input.task_timeout or TASK_TIMEOUT
        return await super().start_workflow(input)


@dataclass(frozen=True)
class Server:
    """A Temporal server whose runs have a clock each."""

    environment: WorkflowEnvironment

    @property
    def client(self) -> Client:
        return self.environment.client

    async def skip(self, handle: WorkflowHandle[Any, Any], by: timedelta) -> None:
        """Let time pass for one run."""
        await self.environment.fast_forward(handle, by)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server() -> AsyncIterator[Server]:
    arguments = ["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"]
    for value in (*TUNING, "limit.historyCount.suggestContinueAsNew=250"):
        arguments += ["--dynamic-config-value", value]
    start = partial(
        WorkflowEnvironment.start_time_skipping_v2,
        ts_config=TimeSkippingConfig(enabled=False),
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=arguments,
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
        interceptors=[ShortTasks()],
    )
    environment = await started(start)
    async with environment:
        yield Server(environment)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test runs without a cache; those marked `cached` with one too, or with one alone."""
    if "worker_options" not in metafunc.fixturenames:
        return
    marked = metafunc.definition.get_closest_marker("cached")
    ways: dict[str, dict[str, Any]] = {"no cache": NO_CACHE, "cached": {}}
    if marked is None:
        del ways["cached"]
    elif marked.kwargs.get("alone"):
        del ways["no cache"]
    metafunc.parametrize("worker_options", ways.values(), ids=ways)


@pytest.fixture
def run_worker(server: Server, worker_options: dict[str, Any]):
    """Builds a worker for workflows and activities on a task queue of its own."""

    def build(
        task_queue: str, workflows: list[type], activities: list[Any], **options: Any
    ) -> Worker:
        return Worker(
            server.client,
            task_queue=task_queue,
            workflows=workflows,
            activities=activities,
            # A request to cancel reaches an activity with the answer to a heartbeat.
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
            **worker_options,
            **options,
        )

    return build


@pytest.fixture
def spreadsheets(server: Server, run_worker: Any) -> SpreadsheetRuns:
    return SpreadsheetRuns(server, run_worker)


@pytest.fixture
def batches(server: Server, run_worker: Any) -> BatchRuns:
    """Runs of batches, in both ways."""
    return BatchRuns(server, run_worker)
