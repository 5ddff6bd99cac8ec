"""A scripted world for the runs of batches."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from contracts.batches import (
    Announce,
    BatchEndFinished,
    BatchKey,
    BatchPlan,
    CancelMode,
    Closing,
    DocumentCounts,
    ImportCancelled,
    JobFinished,
    JobStarted,
    Line,
    LoaderStatus,
    NoteEvents,
    Orphans,
    PolledDepth,
    Purpose,
    QueueDepth,
    Redriven,
    RedriveOrder,
    RedriveRequested,
    ResourceState,
    SkipBatch,
    StepDone,
    StepInput,
    SweepOrder,
    Validate,
    Validation,
    ValidationOutcome,
    WaitingBatch,
)
from contracts.errors import PERMANENT

KEY = BatchKey(case_id=7, batch_id=3)
PLAN = BatchPlan(
    prefix="test", topic_arn="arn:aws:sns:eu-central-1:000000000000:documents", source_function="s"
)
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
    """What an activity says when trying again cannot help."""
    return ApplicationError(message, type=PERMANENT, non_retryable=True)


def depth(queue: int = 0, dead: int = 0, loads: int = 0) -> PolledDepth:
    """What a look at the queues says."""
    return PolledDepth(
        at=datetime(2026, 1, 1, tzinfo=UTC),
        queue=QueueDepth(visible=queue),
        dead_letters=QueueDepth(visible=dead),
        loads=loads,
    )


def started(key: BatchKey = KEY, **more: Any) -> JobStarted:
    """JOB_STARTED of a batch."""
    return JobStarted(case_id=key.case_id, batch_id=key.batch_id, **more)


def finished(key: BatchKey = KEY) -> JobFinished:
    """JOB_FINISHED of a batch."""
    return JobFinished(case_id=key.case_id, batch_id=key.batch_id)


def ended(key: BatchKey = KEY) -> BatchEndFinished:
    """BATCH_END_FINISHED of a batch."""
    return BatchEndFinished(case_id=key.case_id, batch_id=key.batch_id)


def cancelled(mode: CancelMode = CancelMode.FULL, key: BatchKey = KEY) -> ImportCancelled:
    """IMPORT_CANCELLED of a batch."""
    return ImportCancelled(case_id=key.case_id, batch_id=key.batch_id, mode=mode)


def again(key: BatchKey = KEY) -> RedriveRequested:
    """REDRIVE_REQUESTED of a batch."""
    return RedriveRequested(case_id=key.case_id, batch_id=key.batch_id)


@dataclass
class ScriptedBatch:
    """Answers for every activity of a batch, and a record of what was asked."""

    validations: list[Validation] = field(
        default_factory=lambda: [Validation(outcome=ValidationOutcome.CONTINUE)]
    )
    """Answers in order; the last one stands."""
    depths: list[PolledDepth] = field(default_factory=lambda: [depth()])
    """Answers in order; the last one stands."""
    fails: dict[str, list[ApplicationError]] = field(
        default_factory=lambda: defaultdict[str, list[ApplicationError]](list)
    )
    """What an activity raises the next times that it is called."""
    held: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """Activities that do not end before this is set, or they are cancelled."""
    keeps: bool = False
    """The dead-letter queue is not empty at the end."""
    counts: DocumentCounts = field(default_factory=lambda: DocumentCounts(loaded=2))
    calls: list[str] = field(default_factory=list[str])
    working: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a held activity has begun."""
    announced: list[Announce] = field(default_factory=list[Announce])
    closings: list[Closing] = field(default_factory=list[Closing])
    skips: list[SkipBatch] = field(default_factory=list[SkipBatch])
    passes: list[RedriveOrder] = field(default_factory=list[RedriveOrder])
    inputs: list[StepInput] = field(default_factory=list[StepInput])

    @property
    def events(self) -> list[str]:
        """Announcements in order, by type and status."""
        return [f"{said.event_type} {said.status}" for said in self.announced]

    def made(self, name: str) -> int:
        """How often an activity was called."""
        return self.calls.count(name)

    def hold(self, name: str) -> None:
        """Make an activity wait until it is cancelled."""
        self.held[name] = asyncio.Event()

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [
            *(self._step(name) for name in (*MAKING, *REMOVING)),
            self._validate,
            self._plan,
            self._look,
            self._redrive,
            self._cancel_loads,
            self._announce,
            self._close,
            self._truncate,
            self._skip,
        ]

    async def _begin(self, name: str) -> None:
        self.calls.append(name)
        if self.fails[name]:
            raise self.fails[name].pop(0)
        if name in self.held:
            self.working.set()
            while not self.held[name].is_set():
                activity.heartbeat()
                await asyncio.sleep(0.05)

    def _step(self, name: str) -> Callable[..., Any]:
        making = name in MAKING

        async def step(work: StepInput) -> StepDone:
            self.inputs.append(work)
            await self._begin(name)
            if making:
                return StepDone(state=ResourceState.READY)
            kept = name == "delete_dead_letters" and self.keeps and work.keep_dead_letters
            return StepDone(state=ResourceState.KEPT if kept else ResourceState.GONE)

        return activity.defn(name=f"batches.{name}")(step)

    @activity.defn(name="batches.validate")
    async def _validate(self, asked: Validate) -> Validation:
        await self._begin("validate")
        return _next(self.validations)

    @activity.defn(name="batches.plan")
    async def _plan(self, key: BatchKey) -> BatchPlan:
        await self._begin("plan")
        return PLAN

    @activity.defn(name="batches.look")
    async def _look(self, work: StepInput) -> PolledDepth:
        await self._begin("look")
        return _next(self.depths)

    @activity.defn(name="batches.redrive")
    async def _redrive(self, order: RedriveOrder) -> Redriven:
        self.passes.append(order)
        await self._begin("redrive")
        return Redriven(moved=1)

    @activity.defn(name="batches.cancel_loads")
    async def _cancel_loads(self, key: BatchKey) -> None:
        await self._begin("cancel_loads")

    @activity.defn(name="batches.announce")
    async def _announce(self, said: Announce) -> None:
        self.announced.append(said)
        await self._begin("announce")

    @activity.defn(name="batches.close")
    async def _close(self, closing: Closing) -> DocumentCounts:
        self.closings.append(closing)
        await self._begin("close")
        return self.counts

    @activity.defn(name="batches.truncate")
    async def _truncate(self, key: BatchKey) -> None:
        await self._begin("truncate")

    @activity.defn(name="batches.skip")
    async def _skip(self, skipped: SkipBatch) -> None:
        self.skips.append(skipped)
        await self._begin("skip")


def _next(answers: list[Any]) -> Any:
    return answers.pop(0) if len(answers) > 1 else answers[0]


@dataclass
class ScriptedSweep:
    """A cloud in which some batches have left something behind."""

    keys: tuple[BatchKey, ...]
    batch: ScriptedBatch = field(default_factory=ScriptedBatch)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [self._orphans, *self.batch.activities()]

    @activity.defn(name="batches.orphans")
    async def _orphans(self, order: SweepOrder) -> Orphans:
        return Orphans(keys=self.keys)


class ScriptedCase(ScriptedBatch):
    """A case whose table is a dictionary; its batches are scripted."""

    def __init__(self) -> None:
        super().__init__()
        self._line: dict[int, WaitingBatch] = {}

    async def has_closed(self, batches: int) -> bool:
        """Whether so many batches have ended."""
        return len(self.closings) >= batches

    async def has_announced(self, event_type: str) -> bool:
        """Whether something was published."""
        return any(said.event_type == event_type for said in self.announced)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [self._note, *super().activities()]

    @activity.defn(name="batches.note")
    async def _note(self, noted: NoteEvents) -> Line:
        done = {closing.key.batch_id for closing in self.closings}
        for event in noted.events:
            if isinstance(event, JobStarted) and event.batch_id not in done:
                self._line[event.batch_id] = WaitingBatch(
                    batch_id=event.batch_id,
                    status=LoaderStatus.WAITING,
                    purpose=Purpose.LOAD,
                    since=datetime(2026, 1, 1, tzinfo=UTC),
                )
        waiting = {id: batch for id, batch in self._line.items() if id not in done}
        return Line(batches=tuple(waiting[id] for id in sorted(waiting)))
