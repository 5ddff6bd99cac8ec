"""The ways the load of a document can go."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client, WorkflowHandle

from tests.support.batches.scripted_load import (
    ATTACHMENTS,
    PROCESSED,
    RELATIONS,
    ScriptedLoad,
    refused,
    unreadable,
)
from tests.support.scripted import unavailable
from workflows.batches.document_load import DocumentLoad
from workflows.batches.loads import DocumentEvent, DocumentLoadInput, LoadStep, StepOutcome
from workflows.shared import attributes

Handle = WorkflowHandle[Any, Any]


@dataclass
class Case:
    """One way a load can go."""

    script: ScriptedLoad = field(default_factory=ScriptedLoad)
    event: DocumentEvent = PROCESSED
    cancel: bool = False

    workflow = DocumentLoad

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        return await client.start_workflow(
            DocumentLoad.run,
            DocumentLoadInput(event=self.event),
            id=self.event.workflow_id,
            task_queue=task_queue,
            search_attributes=attributes.at_start("batches", self.event.event_type, "7"),
        )

    async def go(self, handle: Handle) -> None:
        """Cancel it, when this is such a case."""
        if self.cancel:
            await self.script.working.wait()
            await handle.cancel()


def _failing(step: LoadStep, *, is_final: bool = False) -> ScriptedLoad:
    script = ScriptedLoad(is_final=is_final)
    script.fails[step] = [unreadable()]
    return script


def _refused() -> ScriptedLoad:
    script = ScriptedLoad()
    script.fails[LoadStep.DEDUPE] = [refused()]
    return script


def _not_given_up() -> ScriptedLoad:
    script = _failing(LoadStep.EXTRACT)
    script.fails["give_up"] = [unreadable("no database")]
    return script


def _held_while_given_up() -> ScriptedLoad:
    script = _failing(LoadStep.EXTRACT)
    script.held.add("give_up")
    return script


def _unavailable(step: str, script: ScriptedLoad | None = None) -> ScriptedLoad:
    script = script or ScriptedLoad()
    script.fails[step] = [unavailable()]
    return script


def _handed_over() -> ScriptedLoad:
    script, tags = ScriptedLoad(), [StepOutcome(unfinished=True), StepOutcome()]
    script.results[LoadStep.TAGS] = lambda order: tags.pop(0)
    return script


CASES: dict[str, Case] = {
    "loaded": Case(),
    "handed-over": Case(_handed_over()),
    "resumed": Case(ScriptedLoad(done={LoadStep.DEDUPE, LoadStep.EXTRACT})),
    "duplicate": Case(ScriptedLoad(duplicate_of="DOC-0")),
    "superseded": Case(ScriptedLoad(superseded=True)),
    "dead-letter": Case(_failing(LoadStep.EXTRACT)),
    "refused": Case(_refused()),
    "failed-for-good": Case(_failing(LoadStep.EXTRACT, is_final=True)),
    "cancelled": Case(ScriptedLoad(held={LoadStep.EXTRACT}), cancel=True),
    "cancelled-between-steps": Case(
        ScriptedLoad(held={LoadStep.DEDUPE}, stubborn={LoadStep.DEDUPE}), cancel=True
    ),
    "failed-while-cancelled": Case(
        ScriptedLoad(held={LoadStep.EXTRACT}, fails_when_cancelled=unreadable()), cancel=True
    ),
    "given-up-twice": Case(_not_given_up()),
    "cancelled-while-given-up": Case(_held_while_given_up(), cancel=True),
    "outage-in-a-step": Case(_unavailable(LoadStep.EXTRACT)),
    "outage-while-given-up": Case(_unavailable("give_up", _failing(LoadStep.EXTRACT))),
    "relations": Case(event=RELATIONS),
    "attachments": Case(event=ATTACHMENTS),
}
