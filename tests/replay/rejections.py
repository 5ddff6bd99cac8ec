"""The ways the record of a rejected message can go."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.shared.dependencies import Dependencies
from activities.shared.records import Rejections
from tests.support.scripted import ScriptedActivities, scripted, unavailable
from workflows.shared.dependencies import Recovery
from workflows.shared.record_workflows import RejectionRecord
from workflows.shared.records import Rejection

Handle = WorkflowHandle[Any, Any]


@dataclass
class Case:
    """One record."""

    script: ScriptedActivities
    workflow = RejectionRecord

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        rejection = Rejection(
            queue="documents", message_id=name, reason="MalformedBody", description="", body=b"{"
        )
        return await client.start_workflow(
            RejectionRecord.run, rejection, id=rejection.workflow_id, task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _script(**options: Any) -> ScriptedActivities:
    answers = {"wait": Recovery(was_down=True)}
    return scripted(Rejections, Dependencies, results=answers, **options)


CASES_OF: dict[str, dict[str, Case]] = {
    "RejectionRecord": {
        "recorded": Case(_script()),
        "outage": Case(_script(fails={"record": [unavailable()]})),
    }
}
