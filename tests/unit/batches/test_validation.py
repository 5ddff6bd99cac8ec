"""A batch is let in once, and the case is its own then."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.validation import (
    AccountLimits,
    BatchLeases,
    BatchPlans,
    BatchValidation,
    function_lock,
    queue_lock,
)
from adapters.ports.batches import BatchInfo, LeaseWait
from adapters.ports.errors import Throttled, Unavailable
from tests.support.batches.scripted import TODAY
from tests.support.imports.activities import environment
from tests.support.scripted_port import ScriptedPort
from workflows.batches.names import (
    BatchKey,
    LoaderStatus,
    Purpose,
    QueueDepth,
    ValidationOutcome,
    names_of,
)
from workflows.batches.runs import Validate, Validation
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import PERMANENT, THROTTLING, TRANSIENT, UNAVAILABLE

KEY = BatchKey(case_id=7, batch_id=3)
LONG_AGO = datetime(2025, 3, 4, tzinfo=UTC)


class ValidationSetup:
    """One case: what its tables say, what exists, which runs are open."""

    def __init__(self, status: LoaderStatus = LoaderStatus.WAITING, **facts: Any) -> None:
        self.store = ScriptedPort(facts=BatchInfo(status=status, **facts), claim=True)
        self.runs = ScriptedPort(is_open=False)
        self.built: set[int] = set()
        self.looks: list[BatchKey] = []

    async def lock(self, key: BatchKey) -> bool:
        self.looks.append(key)
        return key.batch_id in self.built

    async def validate(self, purpose: Purpose = Purpose.LOAD, grace: int = 900) -> Validation:
        activities = BatchValidation(self.store, self.runs, self.lock)
        asked = Validate(key=KEY, purpose=purpose, grace=grace)
        return await environment().run(activities.validate, asked)

    @property
    def claims(self) -> list[tuple[Any, ...]]:
        return [tuple(claim) for claim in self.store.made("claim")]


async def test_a_batch_without_objections_is_claimed() -> None:
    setup = ValidationSetup(job_finished=True, documents=5)
    assert await setup.validate() == Validation(
        outcome=ValidationOutcome.CONTINUE, job_finished=True, documents=5
    )
    assert setup.claims == [(KEY, ())]


async def test_an_attempt_that_finds_its_own_claim_continues() -> None:
    setup = ValidationSetup(LoaderStatus.PROCESSING, end_finished=True)
    validation = await setup.validate()
    assert (validation.outcome, validation.end_finished) == (ValidationOutcome.CONTINUE, True)


async def test_a_cancelled_batch_costs_the_cloud_nothing() -> None:
    setup = ValidationSetup(LoaderStatus.CANCELLED)
    assert (await setup.validate()).outcome is ValidationOutcome.SKIP_CANCELLED
    assert (setup.looks, setup.claims) == ([], [])


@pytest.mark.parametrize(
    ("purpose", "outcome"),
    [
        (Purpose.LOAD, ValidationOutcome.SKIP_DUPLICATE),
        (Purpose.REDRIVE, ValidationOutcome.CONTINUE),
    ],
)
async def test_a_complete_batch_is_built_again_only_for_its_dead_letters(
    purpose: Purpose, outcome: ValidationOutcome
) -> None:
    assert (await ValidationSetup(LoaderStatus.COMPLETE).validate(purpose)).outcome is outcome


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (LoaderStatus.PROCESSING, ValidationOutcome.SKIP_DUPLICATE),
        (LoaderStatus.WAITING, ValidationOutcome.SKIP_INCOMPLETE),
    ],
)
async def test_resources_of_another_owner_are_not_adopted(
    status: LoaderStatus, outcome: ValidationOutcome
) -> None:
    setup = ValidationSetup(status)
    setup.built = {KEY.batch_id}
    assert (await setup.validate()).outcome is outcome
    assert setup.claims == []


async def test_orphans_are_named_to_the_claim_and_in_the_answer() -> None:
    setup = ValidationSetup(processing=[(1, LONG_AGO), (2, LONG_AGO)])
    validation = await setup.validate()
    assert validation == Validation(outcome=ValidationOutcome.CONTINUE, orphans=(1, 2))
    assert setup.claims == [(KEY, (1, 2))]
    assert setup.runs.made("is_open") == [["batch/7/1"], ["batch/7/2"]]


async def test_one_that_lives_blocks_although_others_are_orphans() -> None:
    setup = ValidationSetup(processing=[(1, LONG_AGO), (2, LONG_AGO)])
    setup.built = {2}
    before = datetime.now(UTC)
    validation = await setup.validate()
    assert validation.outcome is ValidationOutcome.BLOCKED
    assert validation.reason == "batch 2 of the case is loading: its infrastructure exists"
    assert validation.retry_at is not None
    assert timedelta(seconds=60) <= validation.retry_at - before < timedelta(seconds=70)
    assert setup.claims == []


async def test_a_run_that_has_built_nothing_yet_blocks() -> None:
    setup = ValidationSetup(processing=[(1, LONG_AGO)])
    setup.runs.answer("is_open", True)
    validation = await setup.validate()
    assert validation.reason == "batch 1 of the case is loading: its run is open"
    assert setup.claims == []


async def test_a_young_lock_blocks_until_the_end_of_its_grace() -> None:
    claimed = datetime.now(UTC) - timedelta(minutes=10)
    setup = ValidationSetup(processing=[(1, claimed)])
    validation = await setup.validate(grace=900)
    assert validation.outcome is ValidationOutcome.BLOCKED
    assert validation.retry_at == claimed + timedelta(minutes=15)
    assert (await setup.validate(grace=600)).outcome is ValidationOutcome.CONTINUE


async def test_a_second_claim_is_retried_soon() -> None:
    setup = ValidationSetup()
    setup.store.answer("claim", False)
    before = datetime.now(UTC)
    validation = await setup.validate()
    assert validation.outcome is ValidationOutcome.BLOCKED
    assert validation.retry_at is not None
    assert timedelta(seconds=5) <= validation.retry_at - before < timedelta(seconds=15)


@pytest.mark.parametrize("call", ["facts", "claim"])
@pytest.mark.parametrize("error", [Unavailable("no connection" + "!" * 3000), Throttled("busy")])
async def test_an_unavailable_database_is_an_answer(call: str, error: Exception) -> None:
    setup = ValidationSetup()
    setup.store.answer(call, error)
    before = datetime.now(UTC)
    validation = await setup.validate()
    assert validation.outcome is ValidationOutcome.REQUEUE_DB_ERROR
    assert validation.reason is not None
    assert validation.reason.startswith(f"the database is unavailable: {error}"[:40])
    assert validation.retry_at is not None
    assert timedelta(seconds=60) <= validation.retry_at - before < timedelta(seconds=70)


async def test_an_unknown_batch_is_refused() -> None:
    setup = ValidationSetup()
    setup.store.answer("facts", None)
    with pytest.raises(ApplicationError, match="batch 3 of case 7 is not known") as caught:
        await setup.validate()
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)


@pytest.mark.parametrize(
    ("error", "kind"), [(Unavailable("no route"), TRANSIENT), (Throttled("slower"), THROTTLING)]
)
async def test_an_unavailable_temporal_blocks_every_claim(error: Exception, kind: str) -> None:
    setup = ValidationSetup(processing=[(1, LONG_AGO)])
    setup.runs.answer("is_open", error)
    with pytest.raises(ApplicationError) as caught:
        await setup.validate()
    assert (caught.value.type, caught.value.non_retryable) == (kind, False)
    assert setup.claims == []


@pytest.mark.parametrize("call", ["facts", "claim"])
async def test_a_database_that_is_down_is_no_answer_but_an_outage(call: str) -> None:
    setup = ValidationSetup()
    setup.store.answer(call, Unavailable("refused", Dependency.DATABASE))
    with pytest.raises(ApplicationError) as caught:
        await setup.validate()
    assert caught.value.type == UNAVAILABLE


async def test_the_lock_is_the_function_or_without_one_the_queue() -> None:
    names = names_of("p", KEY)
    functions = ScriptedPort(exists=True)
    assert await function_lock(functions, "p")(KEY)
    assert functions.asked == [("exists", names.function)]
    queues = ScriptedPort()
    queues.answer("depth", QueueDepth(), None)
    assert await queue_lock(queues, "p")(KEY)
    assert not await queue_lock(queues, "p")(KEY)
    assert queues.asked == [("depth", names.queue)] * 2


async def prepared(prefix: str = "p", wait: LeaseWait | None = None, **changes: Any) -> Validation:
    """What a batch without objections is answered that asks for what follows as well."""
    setup = ValidationSetup()
    plan = TODAY.model_copy(update={"prefix": prefix, **changes})
    activities = BatchValidation(
        setup.store,
        setup.runs,
        setup.lock,
        BatchPlans(setup.store, plan),
        BatchLeases(ScriptedPort(take=wait), AccountLimits(filter_policies=200, concurrency=900)),
    )
    asked = Validate(key=KEY, purpose=Purpose.LOAD, grace=900, prepare=True)
    return await environment().run(activities.validate, asked)


async def test_a_batch_that_may_be_built_has_its_plan_and_its_leases() -> None:
    validation = await prepared()
    assert validation.plan is not None and validation.plan.prefix == "p"
    assert validation.leased


@pytest.mark.parametrize(
    ("wait", "leases"), [(LeaseWait("filter policies", 3), True), (None, False)]
)
async def test_without_room_or_limits_a_batch_has_no_leases(
    wait: LeaseWait | None, leases: bool
) -> None:
    validation = await prepared(wait=wait, leases=leases)
    assert (validation.plan is not None, validation.leased) == (True, False)


async def test_a_plan_that_is_refused_is_left_to_the_step_that_says_why() -> None:
    validation = await prepared(prefix="p" * 58)
    assert (validation.outcome, validation.plan) == (ValidationOutcome.CONTINUE, None)


async def test_a_batch_that_may_not_be_built_takes_no_leases() -> None:
    setup, leases = ValidationSetup(LoaderStatus.CANCELLED), ScriptedPort(take=None)
    limits = AccountLimits(filter_policies=200, concurrency=900)
    activities = BatchValidation(
        setup.store,
        setup.runs,
        setup.lock,
        BatchPlans(setup.store, TODAY),
        BatchLeases(leases, limits),
    )
    asked = Validate(key=KEY, purpose=Purpose.LOAD, grace=900, prepare=True)
    assert (await environment().run(activities.validate, asked)).plan is None
    assert leases.asked == []
