"""The ways a sweep of runs, a removal of old rows and a look for receivers can go."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.shared.dependencies import Dependencies
from activities.shared.records import RowRemoval, RunSweep
from tests.support.scripted import ScriptedActivities, scripted, still_down, unavailable
from workflows.shared.contracts import Contract
from workflows.shared.record_workflows import RowRetention, RunSweeper, RunWebhooks
from workflows.shared.records import (
    RemovedRows,
    RowRetentionInput,
    RowRetentionResult,
    RunsSwept,
    RunSweepInput,
)
from workflows.shared.run_webhooks import RunsTold, RunWebhooksInput
from workflows.shared.steps import RunWebhooks as RunWebhookSteps

Handle = WorkflowHandle[Any, Any]
SWEPT = RunsSwept(terminated=1, runs=("import/P1/T1",), folders=2)

_SWEEP = RunSweepInput(pipeline="imports")
_SOON = timedelta(milliseconds=100)


@dataclass
class Case:
    """One sweep."""

    script: ScriptedActivities
    workflow: type = RunSweeper
    order: Contract = _SWEEP

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        return await client.start_workflow(
            self.workflow.__name__, self.order, id=f"sweep-{name}", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _script(**options: Any) -> ScriptedActivities:
    return scripted(RunSweep, Dependencies, results={"sweep": SWEPT}, **options)


def _removal(**options: Any) -> Case:
    removed = RemovedRows(what="status rows of imports", days=365, rows=7, blobs=2)
    result = RowRetentionResult(kinds=(removed,))
    script = scripted(RowRemoval, Dependencies, results={"remove_old": result}, **options)
    return Case(script, RowRetention, RowRetentionInput(pipeline="imports"))


def _look(**options: Any) -> Case:
    told = RunsTold(queued=3, delivered=2, failed=1)
    script = scripted(RunWebhookSteps, Dependencies, results={"tell": told}, **options)
    return Case(script, RunWebhooks, RunWebhooksInput())


CASES_OF: dict[str, dict[str, Case]] = {
    "RunSweeper": {
        "swept": Case(_script()),
        "outage": Case(
            _script(
                fails={"sweep": [unavailable()], "wait": [still_down(timedelta(milliseconds=100))]}
            )
        ),
    },
    "RunWebhooks": {
        "told": _look(),
        "outage": _look(
            fails={"tell": [unavailable()], "wait": [still_down(timedelta(milliseconds=100))]}
        ),
    },
    "RowRetention": {
        "removed": _removal(),
        "outage": _removal(
            fails={"remove_old": [unavailable()], "wait": [still_down(timedelta(milliseconds=100))]}
        ),
    },
}
