"""How batches whose run was terminated are cancelled, and counts of no documents."""

from datetime import UTC, datetime

from tests.replay.batches_cases import Case, CaseCase, Handle, nothing, reach_the_end
from tests.support.batches.scripted import TODAY, ScriptedBatch, ScriptedCase, ended, finished
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.events import CancelMode
from workflows.batches.names import BatchKey, LoaderStatus, Purpose, ValidationOutcome
from workflows.batches.runs import (
    DocumentCounts,
    NoteEvents,
    SweepInfo,
    Validation,
    WaitingBatch,
    WaitingBatches,
)

_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
_LEFT = WaitingBatch(
    batch_id=1, status=LoaderStatus.PROCESSING, since=_SINCE, cancelled=CancelMode.FULL
)
_NEXT = WaitingBatch(batch_id=2, status=LoaderStatus.WAITING, purpose=Purpose.LOAD, since=_SINCE)


def _case(*batches: WaitingBatch) -> ScriptedCase:
    """A case with these batches until each is closed; the first is cancelled once another ran."""
    script = ScriptedCase()
    script.validations = [
        Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True, end_finished=True)
    ]

    def note(noted: NoteEvents) -> WaitingBatches:
        closed = {closing.key.batch_id for closing in script.closings}
        first, *others = batches
        if others and not script.made("validate"):
            first = first.model_copy(update={"cancelled": None})
        return WaitingBatches(
            batches=tuple(each for each in (first, *others) if each.batch_id not in closed)
        )

    script.results["note"] = note
    return script


async def _swept(handle: Handle, script: ScriptedCase) -> None:
    await eventually(lambda: script.has_closed(1), seconds=90)


async def _swept_beside_the_next_one(handle: Handle, script: ScriptedCase) -> None:
    await _swept(handle, script)
    await eventually(lambda: script.has_announced("BATCH_END_START"), seconds=90)
    await handle.signal("take", ended(BatchKey(case_id=1, batch_id=_NEXT.batch_id)))
    await eventually(lambda: script.has_closed(2), seconds=90)


async def _none_counted(handle: Handle, script: ScriptedBatch) -> None:
    await handle.signal(BatchLifecycle.take, finished(documents=0))
    await reach_the_end(handle, script)


_FULL = SweepInfo(processing=True, cancelled=CancelMode.FULL)


def _sweep(*facts: SweepInfo) -> Case:
    script = ScriptedBatch()
    script.facts = list(facts)
    return Case(script, nothing, Purpose.SWEEP)


def _prepared(*, leased: bool) -> Case:
    """A batch whose validation has read its plan."""
    go = Validation(outcome=ValidationOutcome.CONTINUE, plan=TODAY, leased=leased)
    return Case(ScriptedBatch(validations=[go]))


CASES = {
    "swept-after-a-cancel": _sweep(_FULL),
    "cancelled-while-swept": _sweep(
        SweepInfo(processing=True), SweepInfo(cancelled=CancelMode.FULL)
    ),
    "swept-without-a-cancel": _sweep(SweepInfo(processing=True)),
    "swept-after-its-end": _sweep(SweepInfo(unannounced=LoaderStatus.COMPLETE, not_loaded=1)),
    "recorded-as-cancelled-while-swept": _sweep(
        SweepInfo(processing=True), SweepInfo(unannounced=LoaderStatus.CANCELLED)
    ),
    "prepared": _prepared(leased=True),
    "prepared-without-room": _prepared(leased=False),
    "no-documents-counted": Case(ScriptedBatch(counts=DocumentCounts(loaded=2)), _none_counted),
    "swept-and-cancelled": Case(ScriptedBatch(), nothing, Purpose.SWEEP, cancelled=CancelMode.FULL),
}
CASE_CASES = {
    "cancelled-without-a-run": CaseCase(_case(_LEFT), _swept),
    "cancelled-beside-the-next-one": CaseCase(_case(_LEFT, _NEXT), _swept_beside_the_next_one),
}
