"""The ways an errand can go."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.shared.errands import Errands
from tests.support.scripted import ScriptedActivities, scripted
from workflows.shared.errand_workflow import Errand
from workflows.shared.errands import ErrandInput, ErrandResult

Handle = WorkflowHandle[Any, Any]


@dataclass
class Case:
    """One errand."""

    script: ScriptedActivities
    workflow = Errand

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = ErrandInput(kind="dead-letters", arguments={"do": "list"}, by="ann")
        return await client.start_workflow(
            Errand.run, order, id=f"errand-{name}", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _case(result: ErrandResult) -> Case:
    return Case(scripted(Errands, results={"carry_out": result}))


CASES_OF: dict[str, dict[str, Case]] = {
    "Errand": {
        "done": _case(ErrandResult(answer="[]")),
        "refused": _case(ErrandResult(refused="not-found", problem="there is no queue x")),
    }
}
