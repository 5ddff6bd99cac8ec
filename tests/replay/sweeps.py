"""The ways a sweep of runs can go."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.dependencies import Dependencies
from activities.run_sweep import RunSweep
from contracts.sweep import RunsSwept, RunSweepOrder
from tests.support.scripted import ScriptedActivities, scripted, still_down, unavailable
from workflows.run_sweeper import RunSweeper

Handle = WorkflowHandle[Any, Any]
SWEPT = RunsSwept(terminated=1, runs=("import/P1/T1",), folders=2)

_SOON = timedelta(milliseconds=100)


@dataclass
class Case:
    """One sweep."""

    script: ScriptedActivities
    workflow = RunSweeper

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = RunSweepOrder(pipeline="imports")
        return await client.start_workflow(
            RunSweeper.run, order, id=f"sweep-{name}", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _script(**options: Any) -> ScriptedActivities:
    return scripted(RunSweep, Dependencies, results={"sweep": SWEPT}, **options)


CASES_OF: dict[str, dict[str, Case]] = {
    "RunSweeper": {
        "swept": Case(_script()),
        "outage": Case(
            _script(
                fails={"sweep": [unavailable()], "wait": [still_down(timedelta(milliseconds=100))]}
            )
        ),
    }
}
