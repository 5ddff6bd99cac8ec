"""The ways a batch, a case and the sweeper can go."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError

from tests.support.batches.scripted import (
    TODAY,
    ScriptedBatch,
    ScriptedCase,
    ScriptedSweep,
    cancelled,
    denied,
    depth,
    ended,
    finished,
    started,
)
from tests.support.scripted import unavailable
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import CancelMode
from workflows.batches.names import BatchKey, Phase, Purpose, Timings, ValidationOutcome
from workflows.batches.runs import (
    BatchAnswer,
    BatchInput,
    BatchProgress,
    CanaryCheckInput,
    CaseInput,
    DeliverySeen,
    DocumentCounts,
    PolledDepth,
    StepInput,
    SweepInput,
    Validation,
)
from workflows.batches.sweeper import BatchSweeper
from workflows.shared import attributes
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import NOT_YET

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle, ScriptedBatch], Awaitable[None]]
QUICK = Timings(settle=1, poll=1, hold=1, end=3600)


async def reach(handle: Handle, phase: Phase) -> None:
    async def reached() -> bool:
        return (await handle.query(BatchLifecycle.status)).phase is phase

    await eventually(reached)


async def whole_way(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.LOADING)
    await handle.signal(BatchLifecycle.take, finished())
    await reach_the_end(handle, script)


async def reach_the_end(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.ENDING)
    await handle.signal(BatchLifecycle.take, ended())


async def _missing_then_accepted(handle: Handle, script: ScriptedBatch) -> None:
    await handle.signal(BatchLifecycle.take, ended())
    await handle.signal(BatchLifecycle.take, finished(documents=3))
    await reach(handle, Phase.PARKED)
    await handle.execute_update("skip", BatchAnswer(by="ann"))
    await reach(handle, Phase.ENDING)
    await handle.signal(BatchLifecycle.take, ended())


async def _cancel_while_provisioning(handle: Handle, script: ScriptedBatch) -> None:
    await script.working.wait()
    await handle.signal(BatchLifecycle.take, cancelled())


async def _cancel_without_room(handle: Handle, script: ScriptedBatch) -> None:
    await eventually(lambda: _has_asked(script))
    await handle.signal(BatchLifecycle.take, cancelled())


async def _has_asked(script: ScriptedBatch) -> bool:
    return script.made("take_leases") > 0


async def cancel_partly(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.LOADING)
    await handle.signal(BatchLifecycle.take, cancelled(CancelMode.PARTIAL))


async def _retry_then_whole_way(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.PARKED)
    await handle.execute_update(BatchLifecycle.retry, BatchAnswer(by="ann"))
    await whole_way(handle, script)


async def _give_up(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.PARKED)
    await handle.signal("fail", BatchAnswer(by="ann"))


async def nothing(handle: Handle, script: ScriptedBatch) -> None:
    return


@dataclass
class Case:
    """One way a batch can go."""

    script: ScriptedBatch = field(default_factory=ScriptedBatch)
    act: Act = whole_way
    purpose: Purpose = Purpose.LOAD
    timings: Timings = QUICK
    progress: BatchProgress | None = None
    events_per_run: int | None = None
    notices: bool = False
    cancelled: CancelMode | None = None

    workflow = BatchLifecycle

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        key = BatchKey(case_id=1, batch_id=1)
        return await client.start_workflow(
            BatchLifecycle.run,
            BatchInput(
                key=key,
                purpose=self.purpose,
                timings=self.timings,
                progress=self.progress,
                notices=self.notices,
                cancelled=self.cancelled,
            ),
            id=key.workflow_id,
            task_queue=task_queue,
            search_attributes=attributes.at_start("batches", self.purpose, str(key.case_id)),
        )

    async def go(self, handle: Handle) -> None:
        """Do what other services do."""
        await self.act(handle, self.script)


@dataclass
class CaseCase:
    """One way a case can go; its batches are scripted, its table is in memory."""

    script: ScriptedCase
    act: Callable[[Handle, ScriptedCase], Awaitable[None]]
    events_per_run: int | None = None

    workflow = CaseQueue
    workflows = (CaseQueue, BatchLifecycle)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        return await client.start_workflow(
            CaseQueue.run,
            CaseInput(case_id=1, timings=QUICK, idle=2, watch=1),
            id="case/1",
            task_queue=task_queue,
            search_attributes=attributes.at_start("batches", "case", "1"),
        )

    async def go(self, handle: Handle) -> None:
        """Do what other services do."""
        await self.act(handle, self.script)


async def _two_batches(handle: Handle, script: ScriptedCase) -> None:
    script.validations = [
        Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True, end_finished=True)
    ]
    for number in (2, 1):
        await handle.execute_update(CaseQueue.take, started(BatchKey(case_id=1, batch_id=number)))
    for count in (1, 2):
        await eventually(lambda count=count: _are_ending(script, count), seconds=90)
        # An end counts after it was asked for.
        await handle.signal("take", ended(script.ending()[-1]))
    await eventually(lambda: script.has_closed(2), seconds=90)


async def _no_event(handle: Handle, script: ScriptedCase) -> None:
    """The case ends by itself."""


async def _are_ending(script: ScriptedCase, count: int) -> bool:
    return len(script.ending()) == count


async def _cancelled_case(handle: Handle, script: ScriptedCase) -> None:
    key = BatchKey(case_id=1, batch_id=1)
    await handle.execute_update(CaseQueue.take, started(key))
    await eventually(lambda: script.has_announced("LOADER_STARTED"))
    await handle.signal("take", cancelled(key=key))
    await eventually(lambda: script.has_closed(1))


async def _case_cancelled_by_temporal(handle: Handle, script: ScriptedCase) -> None:
    await handle.execute_update(CaseQueue.take, started(BatchKey(case_id=1, batch_id=1)))
    await eventually(lambda: script.has_announced("LOADER_STARTED"))
    await handle.cancel()


async def _refused_then_two_batches(handle: Handle, script: ScriptedCase) -> None:
    await handle.signal("take", started(BatchKey(case_id=2, batch_id=1)))
    await _two_batches(handle, script)


def _unavailable_table() -> ScriptedCase:
    script = ScriptedCase()
    script.fails["note"] = [denied("no database")]
    return script


def _interrupted_case() -> ScriptedCase:
    script = ScriptedCase()
    script.fails["note"] = [unavailable()]
    return script


@dataclass
class SweeperCase:
    """One way the sweeper can go."""

    script: ScriptedSweep
    cancel: bool = False

    workflow = BatchSweeper
    workflows = (BatchSweeper, BatchLifecycle)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        return await client.start_workflow(
            BatchSweeper.run, SweepInput(), id=f"sweep/{name}", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Cancel it, when this is such a case."""
        if self.cancel:
            await self.script.batch.working.wait()
            await handle.cancel()


def held(step: str) -> ScriptedBatch:
    script = ScriptedBatch()
    script.hold(step)
    return script


class _Healing(ScriptedBatch):
    """Each pass over the dead letters leaves one less of them."""

    def look(self, work: StepInput) -> PolledDepth:
        """What polling finds."""
        return depth(dead=2 - len(self.passes))


def failing(step: str) -> ScriptedBatch:
    script = ScriptedBatch()
    script.fails[step] = [denied()]
    return script


def outage(step: str, dependency: Dependency = Dependency.DATABASE) -> ScriptedBatch:
    script = ScriptedBatch()
    script.fails[step] = [unavailable(dependency)]
    return script


def answering(*outcomes: Validation) -> ScriptedBatch:
    return ScriptedBatch(validations=list(outcomes))


GO = Validation(outcome=ValidationOutcome.CONTINUE)


def _of_today() -> ScriptedBatch:
    script = ScriptedBatch()
    script.results["plan"] = TODAY
    return script


def _without_room(asked: int = 2) -> ScriptedBatch:
    """There is room when it was asked for so often."""
    script = _of_today()
    script.fails["take_leases"] = [
        ApplicationError("position 1", type=NOT_YET, next_retry_delay=timedelta(seconds=1))
    ] * asked
    return script


def _late_canary() -> ScriptedBatch:
    """The second look finds the canary."""
    script = _of_today()

    def look(order: CanaryCheckInput) -> DeliverySeen:
        return DeliverySeen(arrived=script.made("look_for_delivery") > 1)

    script.results["look_for_delivery"] = look
    return script


CASES: dict[str, Case] = {
    "delivery-proven-between-timers": Case(_late_canary()),
    "waits-for-leases": Case(_without_room()),
    "cancelled-while-it-waits-for-leases": Case(_without_room(600), _cancel_without_room),
    "permissions-of-the-role": Case(_of_today()),
    "swept-with-permissions-of-the-role": Case(_of_today(), nothing, Purpose.SWEEP),
    "happy": Case(ScriptedBatch(depths=[depth(3), depth(2), depth()])),
    "cancelled-while-provisioning": Case(held("create_function"), _cancel_while_provisioning),
    "cancelled-partly": Case(ScriptedBatch(depths=[depth(3), depth(1), depth()]), cancel_partly),
    "redriven-twice": Case(_Healing()),
    "dead-letters-kept": Case(ScriptedBatch(depths=[depth(dead=1)], keeps=True)),
    "orphan-found": Case(answering(Validation(outcome=ValidationOutcome.CONTINUE, orphans=(9,)))),
    "blocked-then-built": Case(
        answering(
            Validation(outcome=ValidationOutcome.BLOCKED, reason="batch 9 is loading"), GO, GO
        )
    ),
    "skipped": Case(
        answering(Validation(outcome=ValidationOutcome.SKIP_DUPLICATE, reason="complete")),
        nothing,
    ),
    "parked-then-retried": Case(failing("subscribe"), _retry_then_whole_way),
    "came-in-after-the-end": Case(
        ScriptedBatch(depths=[*[depth()] * 3, depth(1), depth(dead=1), depth()]), whole_way
    ),
    "documents-missing": Case(
        ScriptedBatch(counts=DocumentCounts(loaded=1, failed=1)), _missing_then_accepted
    ),
    "outage-in-a-step": Case(outage("validate")),
    "outage-while-building": Case(outage("subscribe", Dependency.CLOUD)),
    "outage-while-closing": Case(outage("close")),
    "outage-while-removing": Case(outage("delete_queue", Dependency.CLOUD)),
    "given-up": Case(failing("attach_mapping"), _give_up),
    "redrive-of-kept": Case(
        ScriptedBatch(depths=[depth(dead=1), depth(dead=1), depth()]),
        lambda handle, script: handle.signal(BatchLifecycle.take, ended()),
        Purpose.REDRIVE,
    ),
    "slow": Case(timings=QUICK.model_copy(update={"slow_after": 0}), notices=True),
    "failed-tried-again": Case(ScriptedBatch(), reach_the_end, Purpose.RETRY_FAILED),
    "swept": Case(ScriptedBatch(), nothing, Purpose.SWEEP),
}

CASE_CASES: dict[str, CaseCase] = {
    "two-batches": CaseCase(ScriptedCase(), _two_batches),
    "cancelled-batch": CaseCase(ScriptedCase(), _cancelled_case),
    "cancelled-by-temporal": CaseCase(ScriptedCase(), _case_cancelled_by_temporal),
    "event-of-another-case": CaseCase(ScriptedCase(), _refused_then_two_batches),
    "outage-in-a-step": CaseCase(_interrupted_case(), _two_batches),
    "table-unavailable": CaseCase(_unavailable_table(), _two_batches),
    "table-unavailable-for-long": CaseCase(_unavailable_table(), _no_event, events_per_run=8),
}


def _interrupted_sweep() -> ScriptedSweep:
    sweep = ScriptedSweep((BatchKey(case_id=1, batch_id=1),))
    sweep.orphans.fails["orphans"] = [unavailable(Dependency.CLOUD)]
    return sweep


SWEEPER_CASES: dict[str, SweeperCase] = {
    "two-swept": SweeperCase(
        ScriptedSweep((BatchKey(case_id=1, batch_id=1), BatchKey(case_id=2, batch_id=1)))
    ),
    "outage-in-a-step": SweeperCase(_interrupted_sweep()),
    "nothing-to-sweep": SweeperCase(ScriptedSweep(())),
    "not-swept": SweeperCase(ScriptedSweep((BatchKey(case_id=1, batch_id=1),), failing("plan"))),
    "cancelled": SweeperCase(
        ScriptedSweep((BatchKey(case_id=1, batch_id=1),), held("plan")), cancel=True
    ),
}
