"""Scripted activities of the runs of batches and cases, and their events."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.batches.drain import BatchCompletion, BatchDrain
from activities.batches.provisioning import BatchOrphans, BatchProvisioning, BatchTeardown
from activities.batches.validation import BatchLeases, BatchPlans, BatchValidation, CaseBacklog
from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from tests.support.scripted import ScriptedActivities, next_of, scripted
from workflows.batches.events import (
    BatchEndFinished,
    CancelMode,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.names import (
    BatchKey,
    BatchPlan,
    LoaderStatus,
    Purpose,
    QueueDepth,
    Resource,
    ResourceState,
    ValidationOutcome,
)
from workflows.batches.runs import (
    Announce,
    Closing,
    DeliverySeen,
    DocumentCounts,
    NoteEvents,
    Orphans,
    PolledDepth,
    RedriveInput,
    Redriven,
    SkipBatch,
    StepDone,
    StepInput,
    SweepInfo,
    Validation,
    WaitingBatch,
    WaitingBatches,
)
from workflows.shared.errors import PERMANENT

CLASSES = (
    BatchLeases,
    CaseBacklog,
    BatchValidation,
    BatchPlans,
    BatchProvisioning,
    BatchDrain,
    BatchCompletion,
    BatchTeardown,
    Dependencies,
    NotificationSending,
)
"""Their activities make up a batch and its case; those of sweeps and loads stand apart."""

KEY = BatchKey(case_id=7, batch_id=3)
PLAN = BatchPlan(
    prefix="test", topic_arn="arn:aws:sns:eu-central-1:000000000000:documents", source_function="s"
)
TODAY = PLAN.model_copy(update={"proof_by_timer": True, "static_permissions": True, "leases": True})
"""As `batches.plan` makes it; that above is of a batch that an early release began."""
MAKING = (
    "create_queue",
    "create_dead_letters",
    "set_redrive_policy",
    "set_queue_policy",
    "grant_permissions",
    "subscribe",
    "create_function",
    "prove_delivery",
    "reserve_concurrency",
    "attach_mapping",
)
REMOVING = (
    "unsubscribe",
    "detach_mapping",
    "delete_function",
    "revoke_permissions",
    "delete_queue",
    "delete_dead_letters",
)
"""In the order of the system that is replaced; permissions go with the function."""


def denied(message: str = "no rights") -> ApplicationError:
    """A failure that no retry helps."""
    return ApplicationError(message, type=PERMANENT, non_retryable=True)


def depth(
    queue: int = 0, dead: int = 0, loads: int = 0, missing: Sequence[Resource] = ()
) -> PolledDepth:
    """What polling the queues finds."""
    return PolledDepth(
        at=datetime(2026, 1, 1, tzinfo=UTC),
        queue=QueueDepth(visible=queue),
        dead_letters=QueueDepth(visible=dead),
        loads=loads,
        missing=tuple(missing),
    )


def started(key: BatchKey = KEY, **more: Any) -> JobStarted:
    """JOB_STARTED of a batch."""
    return JobStarted(case_id=key.case_id, batch_id=key.batch_id, **more)


def finished(key: BatchKey = KEY, **more: Any) -> JobFinished:
    """JOB_FINISHED of a batch."""
    return JobFinished(case_id=key.case_id, batch_id=key.batch_id, **more)


def ended(key: BatchKey = KEY, **more: Any) -> BatchEndFinished:
    """BATCH_END_FINISHED of a batch."""
    return BatchEndFinished(case_id=key.case_id, batch_id=key.batch_id, **more)


def cancelled(mode: CancelMode = CancelMode.FULL, key: BatchKey = KEY) -> ImportCancelled:
    """IMPORT_CANCELLED of a batch."""
    return ImportCancelled(case_id=key.case_id, batch_id=key.batch_id, mode=mode)


def again(key: BatchKey = KEY, **more: Any) -> RedriveRequested:
    """REDRIVE_REQUESTED of a batch."""
    return RedriveRequested(case_id=key.case_id, batch_id=key.batch_id, **more)


class ScriptedBatch(ScriptedActivities):
    """Activities of a batch.

    Attributes:
        validations: Answers in order; the last one stays.
        depths: What polling finds, in order; the last one stays.
        keeps: The dead-letter queue is not empty at the end.
        counts: Documents of the batch at its end.
        facts: What sweeps find in the row, in order; the last one stays.
        held: Activities that do not end before their event is set, or they are cancelled.
        inputs: Those of the steps that make and remove resources.
    """

    def __init__(
        self,
        validations: Sequence[Validation] = (Validation(outcome=ValidationOutcome.CONTINUE),),
        depths: Sequence[PolledDepth] | None = None,
        *,
        keeps: bool = False,
        counts: DocumentCounts | None = None,
    ) -> None:
        self.validations = list(validations)
        self.depths = list(depths or [depth()])
        self.keeps = keeps
        self.counts = counts or DocumentCounts(loaded=2)
        self.facts = [SweepInfo(processing=True)]
        self.inputs: list[StepInput] = []
        super().__init__(
            *CLASSES,
            results={
                "validate": lambda asked: next_of(self.validations),
                "plan": PLAN,
                "look": self.look,
                "redrive": Redriven(moved=1),
                "close": lambda closing: self.counts,
                "count": lambda key: self.counts,
                "sweep_facts": lambda key: next_of(self.facts),
                "cancel_loads": lambda key: self.counts,
                **dict.fromkeys(MAKING, StepDone(state=ResourceState.READY)),
                "take_leases": StepDone(state=ResourceState.READY),
                "look_for_delivery": DeliverySeen(arrived=True),
                **dict.fromkeys(REMOVING, StepDone(state=ResourceState.GONE)),
                "delete_dead_letters": self._delete_dead_letters,
            },
        )
        self.held: dict[str, asyncio.Event] = {}

    @property
    def announced(self) -> list[Announce]:
        """Announcements, every attempt."""
        return self.received["announce"]

    @property
    def closings(self) -> list[Closing]:
        """Ends that were to be recorded, every attempt."""
        return self.received["close"]

    @property
    def skips(self) -> list[SkipBatch]:
        """Batches that were to be skipped, every attempt."""
        return self.received["skip"]

    @property
    def passes(self) -> list[RedriveInput]:
        """Passes over the dead letters, every attempt."""
        return self.received["redrive"]

    @property
    def events(self) -> list[str]:
        """Announcements in order, by type and status."""
        return [f"{order.event_type} {order.status}" for order in self.announced]

    def hold(self, name: str) -> None:
        """Make an activity wait until it is released or cancelled."""
        self.held[name] = asyncio.Event()

    def is_held(self, name: str) -> bool:
        """Whether a call of an activity has to wait."""
        return name in self.held and not self.held[name].is_set()

    def record(self, name: str, work: Any) -> None:
        """Record the inputs of all steps in one list."""
        if isinstance(work, StepInput) and name != "look":
            self.inputs.append(work)
        super().record(name, work)

    def look(self, work: StepInput) -> PolledDepth:
        """What polling finds."""
        return next_of(self.depths)

    def _delete_dead_letters(self, work: StepInput) -> StepDone:
        kept = self.keeps and work.keep_dead_letters
        return StepDone(state=ResourceState.KEPT if kept else ResourceState.GONE)


class ScriptedSweep:
    """A sweep over batches that have left something behind, and the activities that remove it."""

    def __init__(
        self,
        keys: Sequence[BatchKey],
        batch: ScriptedBatch | None = None,
        *,
        not_ours: Sequence[BatchKey] = (),
    ) -> None:
        self.batch = batch or ScriptedBatch()
        found = Orphans(keys=tuple(keys), not_ours=tuple(not_ours))
        self.orphans = scripted(BatchOrphans, results={"orphans": found})

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [*self.orphans.activities(), *self.batch.activities()]


class ScriptedCase(ScriptedBatch):
    """A case whose table is a dictionary; its batches are scripted."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, WaitingBatch] = {}
        self.results["note"] = self._note

    async def has_closed(self, batches: int) -> bool:
        """Whether so many batches have ended."""
        return len(self.closings) >= batches

    async def has_announced(self, event_type: str) -> bool:
        """Whether something was published."""
        return any(order.event_type == event_type for order in self.announced)

    def ending(self) -> list[BatchKey]:
        """Batches whose end was asked for."""
        asked = (order.key for order in self.announced if order.event_type == "BATCH_END_START")
        return list(dict.fromkeys(asked))

    def _note(self, noted: NoteEvents) -> WaitingBatches:
        done = {closing.key.batch_id for closing in self.closings}
        for event in noted.events:
            if isinstance(event, JobStarted) and event.batch_id not in done:
                self._waiting[event.batch_id] = WaitingBatch(
                    batch_id=event.batch_id,
                    status=LoaderStatus.WAITING,
                    purpose=Purpose.LOAD,
                    since=datetime(2026, 1, 1, tzinfo=UTC),
                )
        waiting = {id: batch for id, batch in self._waiting.items() if id not in done}
        return WaitingBatches(batches=tuple(waiting[id] for id in sorted(waiting)))
