"""The ways a document import can go."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowHandle

from tests.support.imports.scripted import (
    OUTCOME,
    ScriptedImport,
    done,
    import_message,
    permanent,
    planned,
)
from tests.support.scripted import unavailable
from tests.support.waiting import eventually
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import Choice, HandlerOutcome, ImportInput, Preparation, Question, Retry
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import Dependency

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle, ScriptedImport], Awaitable[None]]


async def _nothing(handle: Handle, script: ScriptedImport) -> None:
    return


async def _when_parked(handle: Handle) -> None:
    while not (await handle.query(DocumentImport.status)).next_steps:
        await asyncio.sleep(0.05)


async def _retry(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    await handle.execute_update(DocumentImport.retry, Retry(by="ann"))


async def _retry_corrected(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    corrected = script.prepared[0].model_copy(update={"blob_name": "uploads/right.csv"})
    await handle.signal("retry", Retry(message=corrected, by="ann"))


async def _skip(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    await handle.signal("skip")


async def _cancel(handle: Handle, script: ScriptedImport) -> None:
    await script.working.wait()
    await handle.execute_update(DocumentImport.cancel, Answer(reason="enough"))


async def _cancel_held_up(handle: Handle, script: ScriptedImport) -> None:
    async def is_held_up() -> bool:
        return (await handle.query(DocumentImport.status)).reason is not None

    await eventually(is_held_up)
    await handle.execute_update(DocumentImport.cancel, Answer(by="ann"))


async def _cancel_by_signal(handle: Handle, script: ScriptedImport) -> None:
    await script.working.wait()
    await handle.signal("cancel", Answer(reason="enough", by="ann"))


async def _cancel_by_temporal(handle: Handle, script: ScriptedImport) -> None:
    await script.working.wait()
    await handle.cancel()


async def _cancel_parked_by_temporal(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    await handle.cancel()


async def _retry_twice(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    await handle.execute_update(DocumentImport.retry, Retry(by="ann"))
    await eventually(lambda: _has_handled(script, 2))
    await _retry(handle, script)


async def _has_handled(script: ScriptedImport, times: int) -> bool:
    return len(script.handled) >= times


async def _retry_as_other_work(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    other = script.prepared[0].model_copy(update={"project_id": "p2"})
    await handle.signal("retry", Retry(message=other, by="ann"))
    await handle.signal("retry", Retry(by="bea"))


def _update(name: str, answer: Answer | Retry) -> Act:
    async def act(handle: Handle, script: ScriptedImport) -> None:
        await _when_parked(handle)
        await handle.execute_update(name, answer)

    return act


def _signal(name: str, *answer: Answer | Retry) -> Act:
    async def act(handle: Handle, script: ScriptedImport) -> None:
        await _when_parked(handle)
        await handle.signal(name, *answer)

    return act


async def _correct(handle: Handle, script: ScriptedImport) -> None:
    await _when_parked(handle)
    corrected = script.prepared[0].model_copy(update={"blob_name": "uploads/right.csv"})
    await _update("retry", Retry(message=corrected, by="ann"))(handle, script)


class _Deaf(ScriptedImport):
    """A step that ends as if nothing were when it is cancelled."""

    def __init__(self, name: str, **fields: Any) -> None:
        super().__init__(**fields)
        self._name = name

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [self._deaf(step) for step in super().activities()]

    def _deaf(self, step: Callable[..., Any]) -> Callable[..., Any]:
        name = activity._Definition.must_from_callable(step).name
        if name != self._name:
            return step

        @functools.wraps(step, updated=())
        async def ends(work: Any) -> Any:
            self.working.set()
            with contextlib.suppress(asyncio.CancelledError):
                while True:
                    activity.heartbeat()
                    await asyncio.sleep(0.1)
            return await step(work)

        return activity.defn(name=name)(ends)


ASKED = HandlerOutcome(
    held_back="is it an update of U100, or new?",
    question=Question(
        field="schedule_id",
        choices=(
            Choice(value="U100", meaning="an update of U100"),
            Choice(value="U100-MAY", meaning="a new schedule"),
        ),
    ),
)


@dataclass
class Case:
    """One way a run can go."""

    script: ScriptedImport
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    act: Callable[[Handle, ScriptedImport], Awaitable[None]] = _nothing
    park: timedelta = timedelta(days=14)
    notices: bool = False

    workflow = DocumentImport

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        message = import_message(task_id=name, **self.message)
        return await client.start_workflow(
            DocumentImport.run,
            ImportInput(
                message=message,
                park_for_seconds=int(self.park.total_seconds()),
                notices=self.notices,
            ),
            id=message.workflow_id,
            task_queue=task_queue,
            search_attributes=attributes.at_start(
                "imports", message.document_type, message.project_id
            ),
        )

    async def go(self, handle: Handle) -> None:
        """Do what people do."""
        await self.act(handle, self.script)


def _unreadable() -> ScriptedImport:
    return ScriptedImport(failures=[permanent()])


def _unrecorded() -> ScriptedImport:
    return ScriptedImport(finish_failures=[permanent("no database")])


def _waiting_for_ever() -> ScriptedImport:
    script = ScriptedImport(failures=[unavailable()])
    script.held.add("wait")
    return script


def _parked_in_an_outage() -> ScriptedImport:
    script = ScriptedImport(failures=[permanent()], finish_failures=[unavailable()] * 2)
    script.held.add("wait")
    return script


async def _retry_recorded(handle: Handle, script: ScriptedImport) -> None:
    async def recorded() -> bool:
        return bool(script.closed)

    await eventually(recorded)
    await _retry(handle, script)


def _closing_through_an_outage() -> ScriptedImport:
    script = ScriptedImport(finish_failures=[unavailable()])
    script.held.add("wait")
    return script


class _HandedOverForEver(ScriptedImport):
    """Its handler hands over at once, and then works until it is cancelled."""

    def record(self, name: str, work: Any) -> None:
        """Hold the second attempt."""
        super().record(name, work)
        if name == "load_rows" and len(self.handled) == 2:
            self.held.add(name)


def _handed_over_for_ever() -> ScriptedImport:
    return _HandedOverForEver(outcomes=[HandlerOutcome(unfinished=True)])


async def _cancel_the_second(handle: Handle, script: ScriptedImport) -> None:
    await script.working.wait()
    await handle.execute_update(DocumentImport.cancel, Answer(reason="enough"))


async def _cancel_waiting_by_temporal(handle: Handle, script: ScriptedImport) -> None:
    await script.working.wait()
    script.held.discard("wait")
    await handle.cancel()


CASES: dict[str, Case] = {
    "plain": Case(ScriptedImport()),
    "plain-remote": Case(ScriptedImport(path="remote")),
    "handed-over": Case(ScriptedImport(outcomes=[HandlerOutcome(unfinished=True)], unprepared=1)),
    "handed-over-and-cancelled": Case(_handed_over_for_ever(), act=_cancel_the_second),
    "parked-and-retried": Case(ScriptedImport(failures=[permanent()]), act=_retry),
    "parked-and-corrected": Case(
        ScriptedImport(failures=[permanent()], path="remote"), act=_retry_corrected
    ),
    "parked-and-changed": Case(
        _unreadable(),
        act=_update(
            "retry",
            Retry(
                changes={
                    "blob_name": "uploads/p1/parked-and-changed/1/right.xlsx",
                    "filename": "right.xlsx",
                    "sheet": "Rev B",
                    "map": {"Qty": "quantity"},
                },
                by="ann",
            ),
        ),
    ),
    "asked-and-answered": Case(
        ScriptedImport(outcomes=[ASKED]),
        {
            "document_type": "schedule_extraction",
            "extraction_id": "x1",
            "primavera_project_id": "U100-MAY",
        },
        act=_signal("retry", Retry(changes={"schedule_id": "U100"}, by="ann")),
    ),
    "parked-and-skipped": Case(ScriptedImport(failures=[permanent()]), act=_skip),
    "parked-too-long": Case(ScriptedImport(failures=[permanent()]), park=timedelta(seconds=1)),
    "skipped": Case(ScriptedImport(skip="completed already by task t-0")),
    "waits-for-another-task": Case(
        ScriptedImport(preparations=[Preparation(waits="task t-0 is running")])
    ),
    "handler-waits-for-another-task": Case(
        ScriptedImport(outcomes=[HandlerOutcome(waits="task t-0 is loading a schedule")]),
        {"document_type": "schedule_extraction"},
    ),
    "waits-for-another-task-and-cancelled": Case(
        ScriptedImport(preparations=[Preparation(waits="task t-0 is running")]),
        act=_cancel_held_up,
    ),
    "steps-done-again": Case(
        ScriptedImport(preparations=[planned().model_copy(update={"done": True})])
    ),
    "done-by-the-first-step": Case(ScriptedImport(preparations=[done()])),
    "done-by-the-first-step-although-cancelled": Case(
        _Deaf("imports.prepare", preparations=[done()]), act=_cancel
    ),
    "refused": Case(
        ScriptedImport(preparations=[Preparation(refused="another message", digest="first")])
    ),
    "cancelled": Case(ScriptedImport(block=True, path="remote"), act=_cancel),
    "cancelled-local": Case(ScriptedImport(block=True), act=_cancel),
    "bulk": Case(
        ScriptedImport(),
        {"document_type": "schedule_fill_level", "payload": {"level": 2, "value": "Unit 100"}},
    ),
    "delete": Case(ScriptedImport(), {"document_type": "mto_delete", "service_id": "s1"}),
    "held-back": Case(
        ScriptedImport(outcomes=[OUTCOME.model_copy(update={"held_back": "nothing was written"})]),
        {"all_or_nothing": True},
        act=_retry,
    ),
    "result-not-recorded": Case(
        ScriptedImport(finish_failures=[permanent("no database")]), act=_retry
    ),
    "parked-and-retried-by-signal": Case(_unreadable(), act=_signal("retry")),
    "parked-and-corrected-by-update": Case(_unreadable(), act=_correct),
    "parked-and-skipped-by-update": Case(
        _unreadable(), act=_update("skip", Answer(reason="not ours", by="ann"))
    ),
    "parked-and-failed-by-update": Case(
        _unreadable(), act=_update("fail", Answer(reason="wrong file", by="ann"))
    ),
    "parked-and-failed-by-signal": Case(_unreadable(), act=_signal("fail")),
    "parked-and-cancelled": Case(_unreadable(), act=_update("cancel", Answer(by="ann"))),
    "parked-and-cancelled-by-signal": Case(_unreadable(), act=_signal("cancel")),
    "parked-and-cancelled-by-temporal": Case(_unreadable(), act=_cancel_parked_by_temporal),
    "parked-twice": Case(
        ScriptedImport(failures=[permanent(), permanent("still")]), act=_retry_twice
    ),
    "retried-as-other-work": Case(_unreadable(), act=_retry_as_other_work),
    "parked-without-status-row": Case(
        ScriptedImport(failures=[permanent()], finish_failures=[permanent("no database")]),
        act=_retry,
    ),
    "cancelled-by-signal": Case(ScriptedImport(block=True, path="remote"), act=_cancel_by_signal),
    "cancelled-by-temporal": Case(
        ScriptedImport(block=True, path="remote"), act=_cancel_by_temporal
    ),
    "cancelled-local-by-temporal": Case(ScriptedImport(block=True), act=_cancel_by_temporal),
    "cancelled-between-steps": Case(_Deaf("imports.prepare"), act=_cancel),
    "cancelled-between-steps-by-temporal": Case(_Deaf("imports.prepare"), act=_cancel_by_temporal),
    "cancelled-after-the-last-step": Case(_Deaf("imports.load_rows", path="remote"), act=_cancel),
    "cancelled-while-recorded": Case(ScriptedImport(block_finish=True), act=_cancel_by_temporal),
    "not-recorded-and-skipped": Case(_unrecorded(), act=_signal("skip")),
    "not-recorded-and-failed": Case(_unrecorded(), act=_update("fail", Answer(by="ann"))),
    "not-recorded-for-too-long": Case(_unrecorded(), park=timedelta(seconds=1)),
    "outage-in-a-step": Case(ScriptedImport(failures=[unavailable()])),
    "outage-in-a-remote-step": Case(
        ScriptedImport(failures=[unavailable(Dependency.BLOB_STORE)], path="remote")
    ),
    "outage-while-closing": Case(ScriptedImport(finish_failures=[unavailable()])),
    "parked-in-an-outage": Case(
        ScriptedImport(failures=[permanent()], finish_failures=[unavailable()] * 2),
        act=_retry_recorded,
    ),
    "parked-in-an-outage-and-retried": Case(_parked_in_an_outage(), act=_retry),
    "outage-and-cancelled": Case(_waiting_for_ever(), act=_cancel),
    "outage-while-closing-and-cancelled-by-temporal": Case(
        _closing_through_an_outage(), act=_cancel_waiting_by_temporal
    ),
    "not-recorded-and-cancelled-by-temporal": Case(_unrecorded(), act=_cancel_parked_by_temporal),
}
