"""Whether a batch that was started may be built: its plan, its leases, the case that it claims."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.batches.store import SqlBatchStore
from activities.shared.failures import Heartbeater, translate_failures
from adapters.aws.functions import AwsFunctions
from adapters.aws.queues import AwsQueues
from adapters.database.records import SqlLeases
from adapters.ports.batches import BatchInfo, Claim, LeaseWait
from adapters.ports.errors import Unavailable
from adapters.temporal import TemporalOpenRuns
from workflows.batches.names import (
    FEWEST_AT_ONCE,
    MOST_AT_ONCE,
    BatchKey,
    BatchPlan,
    LoaderStatus,
    ResourceState,
    ValidationOutcome,
    names_of,
)
from workflows.batches.runs import (
    NoteEvents,
    SkipBatch,
    StepDone,
    StepInput,
    Validate,
    Validation,
    WaitingBatches,
)
from workflows.batches.validation import (
    ASK_AGAIN,
    Neighbour,
    check_infrastructure,
    check_sibling_batches,
    check_status,
    effective_concurrency,
)
from workflows.shared.errors import NOT_YET, RuleViolation

P = ParamSpec("P")
R = TypeVar("R")


def to_its_end(run: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Awaitable[R]]:
    """Decorate a step that changes something: once begun it ends, cancelled or not.

    A sent request is carried out even when its answer is no longer awaited. If teardown began
    before, it would find nothing to delete, and the resource would be made behind its back. Calls
    of ports are short, so this holds a cancel up for seconds. What is not there yet is asked for
    again by a retry of the server, which takes no slot meanwhile.

    Goes below `translate_failures`; heartbeats meanwhile.
    """

    @wraps(run)
    async def finished(*args: P.args, **kwargs: P.kwargs) -> R:
        async with Heartbeater():
            return await _ended(asyncio.create_task(run(*args, **kwargs)))

    return finished


async def _ended(call: asyncio.Task[R]) -> R:
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        # Whatever it raised was about work that is given up.
        await asyncio.gather(call, return_exceptions=True)
        raise


class BatchPlans:
    """Makes plans.

    Args:
        store: Tables.
        defaults: What every batch of the installation has in common.
    """

    def __init__(self, store: SqlBatchStore, defaults: BatchPlan) -> None:
        self._store = store
        self._defaults = defaults

    @activity.defn(name="batches.plan")
    @translate_failures
    async def plan(self, key: BatchKey) -> BatchPlan:
        """Read what a batch is built from; the run keeps it.

        Returns:
            The installation's plan, with the concurrency of the case where it has one.

        Raises:
            ApplicationError: `Permanent` when a resource's name would be too long.
        """
        return await self.read(key)

    async def read(self, key: BatchKey) -> BatchPlan:
        """As the step does it, inside another one.

        Raises:
            RuleViolation: A resource's name would be too long.
        """
        try:
            names_of(self._defaults.prefix, key)
        except ValueError as error:
            raise RuleViolation(f"{key} cannot be built: {error}") from error
        facts = await self._store.facts(key)
        if facts is None or facts.concurrency is None:
            return self._defaults
        wanted = facts.concurrency
        concurrency = effective_concurrency(wanted)
        if concurrency != wanted:
            activity.logger.warning(
                "max_processing_daemons of case %d is %d: %s runs with %d, because an event source "
                "mapping takes %d to %d",
                *(key.case_id, wanted, key, concurrency, FEWEST_AT_ONCE, MOST_AT_ONCE),
            )
        return self._defaults.model_copy(update={"concurrency": concurrency})


class CaseBacklog:
    """Keeps the batches of a case in order.

    Args:
        store: Tables.
        runs: Open runs in Temporal.
    """

    def __init__(self, store: SqlBatchStore, runs: TemporalOpenRuns) -> None:
        self._store = store
        self._runs = runs

    @activity.defn(name="batches.note")
    @translate_failures
    async def record_events(self, notes: NoteEvents) -> WaitingBatches:
        """Write events down, and read who waits; a second run writes nothing.

        Returns:
            The batches that are not done, lowest id first, and which of those that are loading
            have a run that is open.
        """
        line = await self._store.note(notes.case_id, notes.events)
        asked = {
            batch.batch_id for batch in line.batches if batch.status is LoaderStatus.PROCESSING
        }
        if notes.running is not None:
            asked.add(notes.running)
        running = {batch_id for batch_id in sorted(asked) if await self._is_open(notes, batch_id)}
        return WaitingBatches(
            batches=tuple(
                batch.model_copy(
                    update={
                        "open_run": batch.status is LoaderStatus.PROCESSING
                        and batch.batch_id in running
                    }
                )
                for batch in line.batches
            ),
            running_open=notes.running in running,
        )

    @activity.defn(name="batches.skip")
    @translate_failures
    async def skip(self, skipped: SkipBatch) -> None:
        """Record that a batch no longer blocks its case; a second run changes nothing."""
        await self._store.skip(skipped.key, skipped.reason)

    async def _is_open(self, notes: NoteEvents, batch_id: int) -> bool:
        key = BatchKey(case_id=notes.case_id, batch_id=batch_id)
        return await self._runs.is_open(key.workflow_id)


SHORTEST: Final = timedelta(seconds=5)
"""Until the first of those that wait are asked again; others are asked less often."""
FIRST: Final = 10
"""How many are asked that often: room that several batches have left is not idle for long, as none
is passed over by those behind it."""
LONGEST: Final = timedelta(minutes=5)
"""However many wait: those far behind are not asked for nothing every minute."""
KEPT: Final = timedelta(minutes=15)
"""A place is lost when nothing has asked for so long."""


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """What the account takes of all batches together."""

    filter_policies: int
    """Of the topic, for batches."""
    concurrency: int
    """That may be reserved for functions."""
    again: timedelta = SHORTEST
    """Until the first of those that wait are asked again."""


class BatchLeases:
    """Takes leases for batches; they are released in the transaction that ends a batch.

    Args:
        leases: Those of all runs.
        limits: Of the account.
    """

    def __init__(self, leases: SqlLeases, limits: AccountLimits) -> None:
        self._leases = leases
        self._limits = limits

    @activity.defn(name="batches.take_leases")
    @translate_failures
    async def take_leases(self, work: StepInput) -> StepDone:
        """Take what the batch needs of the account, in the order in which batches first asked.

        Raises:
            ApplicationError: `NotYet`, with the position of the batch; the server asks again, as
                often as it takes, and nothing of it is in the history.
        """
        wait = await self._take(work.key, work.plan)
        if wait is None:
            return StepDone(state=ResourceState.READY)
        raise ApplicationError(
            f"position {wait.position} of those that wait for {wait.resource}",
            type=NOT_YET,
            next_retry_delay=min(self._limits.again * -(-wait.position // FIRST), LONGEST),
        )

    async def have_room(self, key: BatchKey, plan: BatchPlan) -> bool:
        """Take what the batch needs if there is room; else it has its place from now on."""
        return await self._take(key, plan) is None

    async def _take(self, key: BatchKey, plan: BatchPlan) -> LeaseWait | None:
        return await self._leases.take(key.workflow_id, list(self._claims(plan)), KEPT)

    def _claims(self, plan: BatchPlan) -> Iterator[Claim]:
        yield Claim(f"filter policies of {plan.topic_arn}", 1, self._limits.filter_policies)
        if plan.with_function:
            most = self._limits.concurrency
            yield Claim("reserved concurrency of functions", plan.concurrency, most)


OVERTAKEN: Final = timedelta(seconds=5)
"""After another batch was claimed between the look and the claim."""

Lock = Callable[[BatchKey], Awaitable[bool]]
"""Whether the infrastructure of a batch exists; it is the lock that the case's batches share."""


def function_lock(functions: AwsFunctions, prefix: str) -> Lock:
    """The lock of an installation whose batches have a function each."""

    async def exists(key: BatchKey) -> bool:
        return await functions.exists(names_of(prefix, key).function)

    return exists


def queue_lock(queues: AwsQueues, prefix: str) -> Lock:
    """The lock of an installation without functions: the batch's queue."""

    async def exists(key: BatchKey) -> bool:
        return await queues.depth(names_of(prefix, key).queue) is not None

    return exists


class BatchValidation:
    """Answers whether a batch may be built.

    Args:
        store: Tables.
        runs: The open runs in Temporal.
        lock: Whether the infrastructure of a batch exists.
        plans: Reads what a batch is built from; None: a step of its own does.
        leases: Takes what it needs of the account.
    """

    def __init__(
        self,
        store: SqlBatchStore,
        runs: TemporalOpenRuns,
        lock: Lock,
        plans: BatchPlans | None = None,
        leases: BatchLeases | None = None,
    ) -> None:
        self._store = store
        self._runs = runs
        self._lock = lock
        self._plans = plans
        self._leases = leases

    @activity.defn(name="batches.validate")
    @translate_failures
    async def validate(self, asked: Validate) -> Validation:
        """Ask the questions one by one, and claim the case when none of them objects.

        A second run finds its own claim and answers the same; orphans are named by the run that
        set them `in-complete`. With `prepare`, what follows is done here as well: each step is
        round trips, for which a new case waits on a busy machine.

        Returns:
            `CONTINUE`, and the batch is in `processing`; or why not, and when to ask again. A
            database that is busy is an answer too: the run shows it and asks again.

        Raises:
            ApplicationError: `Permanent` when there is no such batch; failures of the cloud and
                of Temporal as in `activities.shared.failures`.
        """
        async with Heartbeater():
            try:
                facts = await self._store.facts(asked.key)
            except Unavailable as error:
                return _database_error(error)
            if facts is None:
                raise RuleViolation(f"{asked.key} is not known: send its JOB_STARTED")
            validation = (
                check_status(asked.key, facts.status, asked.purpose)
                or check_infrastructure(asked.key, facts.status, await self._lock(asked.key))
                or await self._claim(asked, facts)
            )
            if asked.prepare and validation.outcome is ValidationOutcome.CONTINUE:
                return await self._prepared(asked.key, validation)
            return validation

    async def _prepared(self, key: BatchKey, validation: Validation) -> Validation:
        """With the plan of the batch, and its leases where there is room."""
        if self._plans is None or self._leases is None:
            return validation
        try:
            plan = await self._plans.read(key)
        except RuleViolation:
            # The step that reads it alone parks the batch, which is ours by now.
            return validation
        leased = plan.leases and await self._leases.have_room(key, plan)
        return validation.model_copy(update={"plan": plan, "leased": leased})

    async def _claim(self, asked: Validate, facts: BatchInfo) -> Validation:
        neighbours = [
            await self._neighbour(asked.key.case_id, batch_id, since)
            for batch_id, since in facts.processing
        ]
        grace = timedelta(seconds=asked.grace)
        if blocked := check_sibling_batches(neighbours, datetime.now(UTC), grace):
            return blocked
        orphans = tuple(neighbour.batch_id for neighbour in neighbours)
        try:
            ours = await self._store.claim(asked.key, orphans)
        except Unavailable as error:
            return _database_error(error)
        if not ours:
            return Validation(
                outcome=ValidationOutcome.BLOCKED,
                reason="another batch of the case was claimed at the same moment",
                retry_at=datetime.now(UTC) + OVERTAKEN,
            )
        for orphan in orphans:
            activity.logger.warning(
                "batch %d of case %d was an orphan: set to in-complete",
                *(orphan, asked.key.case_id),
            )
        return Validation(
            outcome=ValidationOutcome.CONTINUE,
            job_finished=facts.job_finished,
            documents=facts.documents,
            end_finished=facts.end_finished,
            orphans=orphans,
            lost=facts.lost if asked.purpose.tries_again else None,
        )

    async def _neighbour(self, case_id: int, batch_id: int, since: datetime) -> Neighbour:
        key = BatchKey(case_id=case_id, batch_id=batch_id)
        return Neighbour(
            batch_id=batch_id,
            since=since,
            exists=await self._lock(key),
            is_running=await self._runs.is_open(key.workflow_id),
        )


def _database_error(error: Unavailable) -> Validation:
    if error.dependency is not None:
        # Not a matter of this batch: every run waits for the database.
        raise error
    return Validation(
        outcome=ValidationOutcome.REQUEUE_DB_ERROR,
        reason=f"the database is unavailable: {error}"[:2000],
        retry_at=datetime.now(UTC) + ASK_AGAIN,
    )
