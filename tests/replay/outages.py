"""The ways an outage can go."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.shared.dependencies import Dependencies
from tests.support.scripted import ScriptedActivities, next_of, scripted, still_down
from workflows.shared.dependencies import Dependency, OutageInput, Recovery, outage_id
from workflows.shared.waiting import Outage

Handle = WorkflowHandle[Any, Any]


@dataclass
class Case:
    """One outage."""

    script: ScriptedActivities
    passes: timedelta | None = None
    notices: bool = False

    workflow = Outage

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = OutageInput(
            dependency=Dependency.DATABASE,
            since=datetime.now(UTC),
            problem="connection refused",
            notices=self.notices,
        )
        return await client.start_workflow(
            Outage.run, order, id=outage_id(order.dependency), task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _outage(*, checks: int, every: timedelta) -> ScriptedActivities:
    return scripted(Dependencies, fails={"wait": [still_down(every)] * checks})


def _changing() -> ScriptedActivities:
    refused = Recovery(was_down=True, problem="password refused", settings=("DATABASE_URL",))
    answers = [refused, Recovery(was_down=True)]
    return scripted(Dependencies, results={"wait": lambda awaited: next_of(answers)})


CASES_OF: dict[str, dict[str, Case]] = {
    "Outage": {
        "short": Case(_outage(checks=2, every=timedelta(milliseconds=100))),
        "long": Case(_outage(checks=1, every=timedelta(minutes=20)), timedelta(minutes=21)),
        "another-problem": Case(_changing()),
    }
}
