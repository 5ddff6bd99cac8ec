"""One plugin for client, worker, replayer and tests, so that all of them encode and run alike."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter, DataConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ReplayerConfig,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerConfig,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from workers import catalogue
from workers.message_context import MessageContext
from workers.query_guard import GuardedExecutor, QueryGuard
from workers.update_attempts import UpdateAttempts
from workers.used_contracts import build_contracts
from workflows.run_ends import RunEnds

PASSTHROUGH = (
    # Pure data: re-importing pydantic models for every run costs most of a run's CPU.
    "contracts",
    # Pure rules without any state of their module.
    "domain",
    # Workflows name activities by their methods; nothing of them runs in the sandbox.
    "activities",
    # Protocols that activities are typed with.
    "adapters",
    # Constants, functions and classes; none of these modules holds any state. Imported again for
    # every run, they would cost as much as the workflow itself.
    "workflows.attributes",
    "workflows.cancellation",
    "workflows.failures",
    "workflows.notices",
    "workflows.parkable",
    "workflows.parking",
    "workflows.policies",
    "workflows.run_ends",
    "workflows.short_steps",
    "workflows.waiting",
)
"""What all pipelines share; each names its own modules in its register."""


_CONVERTERS = tuple(PydanticPayloadConverter().converters.values())


class SharedConverters(CompositePayloadConverter):
    """The SDK's converters of pydantic, which it makes anew for every workflow task.

    They hold nothing but caches, and making them takes as long as to encode a payload.
    """

    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


def passthrough() -> list[str]:
    """Modules that the sandbox shares with the worker instead of importing them for every run."""
    own = (module for pipeline in catalogue.PIPELINES for module in pipeline.passthrough)
    return [*PASSTHROUGH, *own]


def _sandboxed(runner: WorkflowRunner | None) -> WorkflowRunner:
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner or SandboxedWorkflowRunner()
    restrictions = runner.restrictions.with_passthrough_modules(*passthrough())
    return dataclasses.replace(runner, restrictions=restrictions)


def _unsandboxed(runner: WorkflowRunner | None) -> WorkflowRunner:
    # The SDK's default is the sandbox; a runner of a test's own stays.
    if runner is None or isinstance(runner, SandboxedWorkflowRunner):
        return UnsandboxedWorkflowRunner()
    return runner


def _is_document(workflow_type: str) -> bool:
    kinds = (kind for pipeline in catalogue.PIPELINES for kind in pipeline.kinds)
    return any(kind.is_document for kind in kinds if kind.workflow == workflow_type)


class _Plugin(SimplePlugin):
    """A plugin whose workers have their queries guarded."""

    def __init__(self, *, sandboxed: bool) -> None:
        self._guard = QueryGuard()
        super().__init__(
            "docflow",
            data_converter=DataConverter(payload_converter_class=SharedConverters),
            interceptors=[MessageContext(), UpdateAttempts(), RunEnds(_is_document), self._guard],
            workflow_runner=_sandboxed if sandboxed else _unsandboxed,
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Let the guard see what a worker is given to do, and build what it decodes."""
        config = super().configure_worker(config)
        given = cast("Mapping[str, Any]", config)
        build_contracts([*given.get("workflows", ()), *given.get("activities", ())])
        if config.get("workflow_task_executor") is None:
            config["workflow_task_executor"] = GuardedExecutor(self._guard)
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Build what histories hold."""
        config = super().configure_replayer(config)
        build_contracts(cast("Mapping[str, Any]", config).get("workflows", ()))
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """End the threads with the worker, as the SDK does with threads of its own."""
        try:
            await next(worker)
        finally:
            executor = worker.config(active_config=True).get("workflow_task_executor")
            if isinstance(executor, GuardedExecutor):
                executor.shutdown()


def docflow_plugin(*, sandboxed: bool = False) -> SimplePlugin:
    """Pydantic payloads, ends of runs in log and metrics, and how workflows are run.

    Args:
        sandboxed: Run workflows in the SDK's sandbox, which refuses clock, randomness, I/O and
            state of modules at run time. Without it, tests and lint have refused them before
            (docs/decisions/workflows-without-sandbox.md).
    """
    return _Plugin(sandboxed=sandboxed)
