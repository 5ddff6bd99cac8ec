"""What a batch takes of the account, and how it is asked again."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.validation import KEPT, AccountLimits, BatchLeases
from adapters.ports.batches import Claim, LeaseWait
from tests.support.batches.scripted import TODAY
from tests.support.imports.activities import environment
from tests.support.scripted_port import ScriptedPort
from workflows.batches.names import BatchKey, BatchPlan, ResourceState
from workflows.batches.runs import StepDone, StepInput
from workflows.shared.errors import NOT_YET

KEY = BatchKey(case_id=7, batch_id=3)


async def take(leases: Any, attempt: int = 1, plan: BatchPlan = TODAY) -> StepDone:
    taking = BatchLeases(leases, AccountLimits(filter_policies=200, concurrency=900))
    work = StepInput(key=KEY, plan=plan)
    return await environment(attempt=attempt).run(taking.take_leases, work)


async def test_a_batch_takes_a_filter_policy_and_the_concurrency_of_its_function() -> None:
    leases = ScriptedPort(take=None)
    assert await take(leases) == StepDone(state=ResourceState.READY)
    policies = Claim(f"filter policies of {TODAY.topic_arn}", 1, 200)
    concurrency = Claim("reserved concurrency of functions", TODAY.concurrency, 900)
    assert leases.asked == [("take", "batch/7/3", [policies, concurrency], KEPT)]


async def test_without_a_function_there_is_no_concurrency_to_take() -> None:
    leases = ScriptedPort(take=None)
    await take(leases, plan=TODAY.model_copy(update={"with_function": False}))
    [(_, _, claims, _)] = leases.asked
    assert [claim.units for claim in claims] == [1]


@pytest.mark.parametrize(
    ("position", "seconds"), [(1, 5), (10, 5), (11, 10), (25, 15), (200, 100), (10_000, 300)]
)
async def test_one_that_waits_is_asked_again_by_the_server_without_a_maximum(
    position: int, seconds: int
) -> None:
    leases = ScriptedPort(take=LeaseWait("filter policies", position))
    said = f"position {position} of those that wait for filter policies"
    with pytest.raises(ApplicationError, match=said) as caught:
        await take(leases, attempt=1_000_000)
    assert (caught.value.type, caught.value.non_retryable) == (NOT_YET, False)
    assert caught.value.next_retry_delay == timedelta(seconds=seconds)
