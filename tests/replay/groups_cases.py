"""The ways a group of documents can go."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from tests.support.batches.scripted_group import (
    DONE,
    KEY,
    OUTAGE,
    SINGLE,
    ScriptedGroup,
    group_of,
)
from tests.support.batches.scripted_load import unreadable
from tests.support.scripted import unavailable
from workflows.batches.document_load import DocumentGroup, DocumentLoad
from workflows.batches.loads import DocumentGroupInput, DocumentLoadInput
from workflows.shared import attributes
from workflows.shared.dependencies import Recovery

Handle = WorkflowHandle[Any, Any]


@dataclass
class Case:
    """One way a group can go."""

    script: ScriptedGroup = field(default_factory=ScriptedGroup)
    order: DocumentGroupInput = field(default_factory=lambda: group_of("A", "B", "C"))
    cancel: bool = False
    occupied: bool = False
    """Another message of the document B is being loaded when the group begins."""
    passes: timedelta | None = None

    workflow = DocumentGroup
    workflows = (DocumentGroup, DocumentLoad)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        if self.occupied:
            load = DocumentLoadInput(event=self.order.loads[1].event)
            await client.start_workflow(
                DocumentLoad.run, load, id=load.event.workflow_id, task_queue=task_queue
            )
            await self.script.working.wait()
        return await client.start_workflow(
            DocumentGroup.run,
            self.order,
            id=f"{KEY.group_prefix}{name}",
            task_queue=task_queue,
            search_attributes=attributes.at_start("batches", "group", "7"),
        )

    async def go(self, handle: Handle) -> None:
        """Cancel it, when this is such a case; let another load end."""
        if self.cancel:
            await self.script.working.wait()
            await handle.cancel()


def _failing(failure: BaseException) -> ScriptedGroup:
    script = ScriptedGroup()
    script.fails["load_group"] = [failure]
    return script


def _contradicted() -> ScriptedGroup:
    script = ScriptedGroup({"A": [OUTAGE]})
    script.results["wait"] = Recovery(was_down=False)
    return script


CASES: dict[str, Case] = {
    "loaded": Case(),
    "single": Case(ScriptedGroup({"B": [SINGLE]})),
    "outage": Case(ScriptedGroup({"A": [OUTAGE, DONE], "B": [OUTAGE, SINGLE]})),
    "contradicted-outage": Case(_contradicted()),
    "outage-of-all": Case(_failing(unavailable())),
    "failed": Case(_failing(unreadable("the activity cannot be decoded"))),
    "cancelled": Case(ScriptedGroup(held={"load_group"}), cancel=True),
    "occupied": Case(
        ScriptedGroup({"B": [SINGLE, DONE]}, held={"dedupe"}),
        occupied=True,
        passes=timedelta(minutes=1),
    ),
}
