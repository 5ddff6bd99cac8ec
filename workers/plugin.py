"""One plugin for client, worker, replayer and tests, so that all of them speak alike."""

import dataclasses

from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

PASSTHROUGH = (
    # Pure data: re-importing pydantic models for every run costs most of a run's CPU.
    "contracts",
    # Pure rules without any state of their module.
    "domain",
    # Workflows name activities by their methods; nothing of them runs in the sandbox.
    "activities",
    # Protocols that activities are typed with.
    "adapters",
    # Constants, and classes without any state of their module: made anew for every run, they cost
    # as much as the story itself.
    "workflows.attributes",
    "workflows.policies",
    "workflows.steps",
    "workflows.spreadsheets.answers",
    "workflows.spreadsheets.refusals",
    "workflows.spreadsheets.messages",
    "workflows.spreadsheets.pauses",
)


def _sandbox(runner: WorkflowRunner | None) -> WorkflowRunner:
    if isinstance(runner, SandboxedWorkflowRunner):
        return dataclasses.replace(
            runner, restrictions=runner.restrictions.with_passthrough_modules(*PASSTHROUGH)
        )
    return runner or SandboxedWorkflowRunner()


def docflow_plugin() -> SimplePlugin:
    """Pydantic payloads and a sandbox that shares contracts, activities and ports."""
    return SimplePlugin(
        "docflow",
        data_converter=pydantic_data_converter,
        workflow_runner=_sandbox,
    )
