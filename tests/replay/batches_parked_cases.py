"""How batches are answered when they are parked, cancelled, and continued as new."""

import asyncio
import contextlib
from typing import Any

from tests.replay.batches_cases import (
    GO,
    QUICK,
    Act,
    Case,
    Handle,
    answering,
    cancel_partly,
    failing,
    held,
    nothing,
    reach,
    whole_way,
)
from tests.support.batches.scripted import (
    PLAN,
    ScriptedBatch,
    again,
    cancelled,
    denied,
    depth,
    ended,
    finished,
    started,
)
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import Phase, Purpose, Resource, ResourceState, ValidationOutcome
from workflows.batches.runs import BatchAnswer, BatchProgress, ResourceRow, Validation

IMPATIENT = QUICK.model_copy(update={"patience": 2})
NO_END = QUICK.model_copy(update={"end": 1})


def _park_and(*acts: Act) -> Act:
    """Do one thing after the other, each when the batch is parked."""

    async def act(handle: Handle, script: ScriptedBatch) -> None:
        for number, then in enumerate(acts):
            if number:
                await _until_asked_again(handle, script)
            await reach(handle, Phase.PARKED)
            await then(handle, script)

    return act


async def _counted_twice(handle: Handle, script: ScriptedBatch) -> None:
    for documents in (9, 8):
        await handle.signal(BatchLifecycle.take, finished(documents=documents))
    await reach(handle, Phase.PARKED)
    await handle.execute_update("skip", BatchAnswer(by="ann"))
    await reach(handle, Phase.ENDING)
    await handle.signal(BatchLifecycle.take, ended())


async def _until_asked_again(handle: Handle, script: ScriptedBatch) -> None:
    since = (await handle.query(BatchLifecycle.status)).waiting_since

    async def asked() -> bool:
        now = (await handle.query(BatchLifecycle.status)).waiting_since
        return now is not None and now != since

    if since is not None:
        await eventually(asked)


def _update(name: str) -> Act:
    return lambda handle, script: handle.execute_update(name, BatchAnswer(by="ann", reason="so"))


def _signal(name: str) -> Act:
    return lambda handle, script: handle.signal(name)


async def _cancel(handle: Handle, script: ScriptedBatch) -> None:
    await handle.signal(BatchLifecycle.take, cancelled())


async def _cancel_by_temporal(handle: Handle, script: ScriptedBatch) -> None:
    await handle.cancel()


def _when(phase: Phase, then: Act) -> Act:
    async def act(handle: Handle, script: ScriptedBatch) -> None:
        await reach(handle, phase)
        await then(handle, script)

    return act


def _when_working(then: Act) -> Act:
    async def act(handle: Handle, script: ScriptedBatch) -> None:
        await script.working.wait()
        await then(handle, script)

    return act


def _loaded_and(then: Act) -> Act:
    """Let the batch go to its end, then answer what it asks there."""

    async def act(handle: Handle, script: ScriptedBatch) -> None:
        await whole_way(handle, script)
        await then(handle, script)

    return act


async def _cancel_then_let_go(handle: Handle, script: ScriptedBatch) -> None:
    await handle.cancel()
    await asyncio.sleep(1)
    for event in script.held.values():
        event.set()


async def _end_asked_for(handle: Handle, script: ScriptedBatch) -> None:
    """Loaded, and parked because the end of the batch does not come."""
    await reach(handle, Phase.LOADING)
    await handle.signal(BatchLifecycle.take, finished())
    await reach(handle, Phase.PARKED)


async def _end_retried(handle: Handle, script: ScriptedBatch) -> None:
    await _end_asked_for(handle, script)
    await handle.execute_update("retry", BatchAnswer(by="ann"))
    await handle.signal(BatchLifecycle.take, ended())


async def _end_skipped(handle: Handle, script: ScriptedBatch) -> None:
    await _end_asked_for(handle, script)
    await handle.execute_update("skip", BatchAnswer(by="ann"))


async def _end_failed(handle: Handle, script: ScriptedBatch) -> None:
    await _end_asked_for(handle, script)
    await handle.signal("fail", BatchAnswer(by="ann"))


async def _cancel_partly_then_fully(handle: Handle, script: ScriptedBatch) -> None:
    await cancel_partly(handle, script)
    await reach(handle, Phase.DRAINING)
    await handle.signal(BatchLifecycle.take, cancelled())


async def _asked_for_again(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.LOADING)
    await handle.signal(BatchLifecycle.take, again())
    await handle.signal(BatchLifecycle.take, started())
    await whole_way(handle, script)


def _then(*acts: Act) -> Act:
    async def act(handle: Handle, script: ScriptedBatch) -> None:
        for then in acts:
            await then(handle, script)

    return act


async def _loading_done(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.LOADING)
    await handle.signal(BatchLifecycle.take, finished())


async def _end_reached(handle: Handle, script: ScriptedBatch) -> None:
    await reach(handle, Phase.ENDING)
    await handle.signal(BatchLifecycle.take, ended())


async def _wait_for_second_run(handle: Handle, script: ScriptedBatch) -> None:
    async def continued() -> bool:
        return (await handle.describe()).run_id != handle.first_execution_run_id

    await eventually(continued, seconds=60)
    await handle.signal(BatchLifecycle.take, cancelled())


def _parked_at(*steps: str, **fields: Any) -> ScriptedBatch:
    script = ScriptedBatch(**fields)
    for step in steps:
        script.fails[step] = [denied()]
    return script


class _Deaf(ScriptedBatch):
    """A held step ends as if nothing were when it is cancelled."""

    async def wait(self, name: str) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await super().wait(name)


def _deaf(step: str) -> ScriptedBatch:
    script = _Deaf()
    script.hold(step)
    return script


def _unrecorded_skip() -> ScriptedBatch:
    script = answering(Validation(outcome=ValidationOutcome.SKIP_DUPLICATE, reason="complete"))
    script.fails["skip"] = [denied()]
    return script


CASES: dict[str, Case] = {
    "end-that-came-early": Case(
        answering(GO.model_copy(update={"job_finished": True, "end_finished": True})), nothing
    ),
    "parked-then-retried-by-signal": Case(
        failing("subscribe"), _then(_park_and(_signal("retry")), whole_way)
    ),
    "parked-then-skipped-by-update": Case(failing("subscribe"), _park_and(_update("skip"))),
    "parked-then-skipped-by-signal": Case(failing("plan"), _park_and(_signal("skip"))),
    "parked-then-failed-by-update": Case(failing("validate"), _park_and(_update("fail"))),
    "parked-too-long": Case(failing("subscribe"), nothing, timings=IMPATIENT),
    "parked-then-cancelled": Case(failing("subscribe"), _park_and(_cancel)),
    "parked-then-cancelled-by-temporal": Case(failing("subscribe"), _park_and(_cancel_by_temporal)),
    "parked-while-draining": Case(
        _parked_at("redrive", depths=[depth(dead=1), depth(dead=1), depth(dead=1), depth()]),
        _then(_loading_done, _park_and(_update("retry")), _end_reached),
    ),
    "deleted-then-restored": Case(
        ScriptedBatch(depths=[depth(missing=(Resource.QUEUE, Resource.FUNCTION)), depth()]),
        _then(_park_and(_update("retry")), whole_way),
    ),
    "deleted-while-draining": Case(
        ScriptedBatch(depths=[depth(3), depth(missing=(Resource.FUNCTION,)), depth()]),
        _then(_loading_done, _park_and(_update("retry")), _end_reached),
    ),
    "parked-at-the-announcement": Case(
        _parked_at("announce"), _then(_park_and(_update("retry")), whole_way)
    ),
    "cancelled-by-temporal": Case(act=_when(Phase.LOADING, _cancel_by_temporal)),
    "cancelled-between-steps": Case(_deaf("plan"), _when_working(_cancel_then_let_go)),
    "cancelled-while-provisioning-by-temporal": Case(
        held("create_function"), _when_working(_cancel_by_temporal)
    ),
    "cancelled-while-torn-down": Case(
        held("delete_queue"), _loaded_and(_when_working(_cancel_then_let_go))
    ),
    "cancelled-partly-then-fully": Case(
        ScriptedBatch(depths=[depth(3)]), _cancel_partly_then_fully
    ),
    "cancelled-unseen": Case(_parked_at("look"), _when(Phase.LOADING, _cancel)),
    "end-missing-then-retried": Case(act=_end_retried, timings=NO_END),
    "end-missing-then-skipped": Case(act=_end_skipped, timings=NO_END),
    "end-missing-then-failed": Case(act=_end_failed, timings=NO_END),
    "teardown-retried": Case(_parked_at("delete_queue"), _loaded_and(_park_and(_update("retry")))),
    "teardown-left": Case(_parked_at("delete_queue"), _loaded_and(_park_and(_signal("skip")))),
    "teardown-parked-and-cancelled-by-temporal": Case(
        _parked_at("delete_queue"),
        _loaded_and(_then(_park_and(_cancel_by_temporal), _park_and(_update("skip")))),
    ),
    "teardown-parked-too-long": Case(
        _parked_at("delete_queue"), _loaded_and(nothing), timings=IMPATIENT
    ),
    "end-not-recorded-then-retried": Case(
        _parked_at("close"), _loaded_and(_park_and(_update("retry")))
    ),
    "end-not-recorded-then-skipped": Case(
        _parked_at("truncate"), _loaded_and(_park_and(_update("skip")))
    ),
    "skip-not-recorded": Case(_unrecorded_skip(), _park_and(_signal("retry"))),
    "swept-not-all": Case(_parked_at("delete_queue", "close"), nothing, Purpose.SWEEP),
    "sweep-without-plan": Case(_parked_at("plan"), nothing, Purpose.SWEEP),
    "stuck": Case(
        answering(Validation(outcome=ValidationOutcome.BLOCKED, reason="batch 9 is loading")),
        nothing,
        timings=QUICK.model_copy(update={"stuck_after": 2}),
    ),
    "database-unavailable": Case(
        answering(Validation(outcome=ValidationOutcome.REQUEUE_DB_ERROR), GO)
    ),
    "redrive-asked-for": Case(
        ScriptedBatch(depths=[depth(dead=1), depth(dead=1), depth(dead=1), depth()]),
        _asked_for_again,
    ),
    "continued-as-new": Case(
        ScriptedBatch(), _when(Phase.LOADING, _wait_for_second_run), events_per_run=40
    ),
    "documents-counted-twice": Case(ScriptedBatch(), _counted_twice),
    "continued": Case(
        act=whole_way,
        progress=BatchProgress(
            plan=PLAN,
            phase=Phase.LOADING,
            resources=tuple(
                ResourceRow(resource=resource, state=ResourceState.READY) for resource in Resource
            ),
            depths=(depth(3),),
        ),
    ),
    "continued-while-draining": Case(
        act=_end_reached,
        progress=BatchProgress(
            plan=PLAN, phase=Phase.DRAINING, depths=(depth(3),), redrives=1, job_finished=True
        ),
    ),
}
