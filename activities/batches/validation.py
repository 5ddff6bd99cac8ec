"""Whether a batch that was started may be built; the answer that lets it claims the case."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.batches.leases import BatchLeases
from activities.batches.plans import BatchPlans
from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from adapters.ports import (
    BatchFacts,
    BatchFunctions,
    BatchQueues,
    BatchStore,
    OpenRuns,
    Unavailable,
)
from contracts.batches import BatchKey, Validate, Validation, ValidationOutcome, names_of
from domain.batches.validation import (
    ASK_AGAIN,
    Neighbour,
    of_infrastructure,
    of_neighbours,
    of_status,
)
from domain.errors import RuleViolation

OVERTAKEN: Final = timedelta(seconds=5)
"""After another batch was claimed between the look and the claim."""

Lock = Callable[[BatchKey], Awaitable[bool]]
"""Whether the infrastructure of a batch exists; it is the lock that the case's batches share."""


def function_lock(functions: BatchFunctions, prefix: str) -> Lock:
    """The lock of an installation whose batches have a function each."""

    async def exists(key: BatchKey) -> bool:
        return await functions.exists(names_of(prefix, key).function)

    return exists


def queue_lock(queues: BatchQueues, prefix: str) -> Lock:
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
        store: BatchStore,
        runs: OpenRuns,
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
                of Temporal as in `activities.failures`.
        """
        async with Heartbeater():
            try:
                facts = await self._store.facts(asked.key)
            except Unavailable as error:
                return _database_error(error)
            if facts is None:
                raise RuleViolation(f"{asked.key} is not known: send its JOB_STARTED")
            validation = (
                of_status(asked.key, facts.status, asked.purpose)
                or of_infrastructure(asked.key, facts.status, await self._lock(asked.key))
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

    async def _claim(self, asked: Validate, facts: BatchFacts) -> Validation:
        neighbours = [
            await self._neighbour(asked.key.case_id, batch_id, since)
            for batch_id, since in facts.processing
        ]
        grace = timedelta(seconds=asked.grace)
        if blocked := of_neighbours(neighbours, datetime.now(UTC), grace):
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
