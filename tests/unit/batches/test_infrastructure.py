"""All steps together, over one cloud: one of everything, then nothing."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.provisioning import BatchOrphans, BatchProvisioning, BatchTeardown, Pace
from activities.batches.validation import function_lock
from tests.support.batches.scripted import KEY, MAKING, PLAN, REMOVING
from tests.support.imports.activities import environment
from tests.support.memory.cloud import MemoryCloud
from tests.support.scripted_port import ScriptedPort
from workflows.batches.names import BatchKey, BatchPlan, ResourceState, names_of
from workflows.batches.runs import Orphans, StepDone, StepInput, SweepInput

NAMES = names_of(PLAN.prefix, KEY)
NEIGHBOUR = BatchKey(case_id=KEY.case_id, batch_id=30)
"""Its names begin like those of the batch."""
WITHOUT_FUNCTION = PLAN.model_copy(update={"with_function": False})


@dataclass
class Account:
    """An account in which batches are built, of which no run is open."""

    cloud: MemoryCloud = field(default_factory=MemoryCloud)
    key: BatchKey = KEY
    plan: BatchPlan = PLAN

    async def step(self, name: str, **work: Any) -> StepDone:
        cloud = self.cloud
        ports = (cloud.queues, cloud.topic, cloud.functions, cloud.grants)
        making = BatchProvisioning(*ports, pace=Pace(first=0.001, longest=0.001, again=0.01))
        step = getattr(making, name, None) or getattr(BatchTeardown(*ports), name)
        return await environment().run(step, StepInput(key=self.key, plan=self.plan, **work))

    async def steps(self, *names: str) -> set[ResourceState]:
        return {(await self.step(name)).state for name in names}

    async def orphans(self) -> Orphans:
        cloud = self.cloud
        sweeping = BatchOrphans(
            *(cloud.queues, cloud.topic, cloud.functions, cloud.grants),
            ScriptedPort(is_open=False),
            self.plan,
        )
        return await environment().run(sweeping.orphans, SweepInput(grace=0))


@pytest.fixture
def setup() -> Account:
    return Account()


async def test_provisioning_twice_makes_one_of_everything(setup: Account) -> None:
    for _ in range(2):
        assert await setup.steps(*MAKING) == {ResourceState.READY}
    cloud = setup.cloud
    assert set(cloud.queues_by_name) == {NAMES.queue, NAMES.dead_letters}
    assert {queue.owner for queue in cloud.queues_by_name.values()} == {KEY.workflow_id}
    queue, function = cloud.queues_by_name[NAMES.queue], cloud.functions_by_name[NAMES.function]
    assert (queue.redrives, queue.open_to_topic) == (True, True)
    assert (function.mapped, function.reserved) == (True, PLAN.concurrency)
    assert function.owner == KEY.workflow_id
    assert cloud.subscriptions == {NAMES.queue: KEY}
    assert cloud.policies == {NAMES.policy}


@pytest.mark.parametrize("done", range(len(MAKING) + 1))
async def test_teardown_leaves_nothing_wherever_provisioning_stopped(
    setup: Account, done: int
) -> None:
    neighbour = Account(setup.cloud, NEIGHBOUR)
    await neighbour.steps(*MAKING)
    await setup.steps(*MAKING[:done])
    for _ in range(2):
        assert await setup.steps(*REMOVING) == {ResourceState.GONE}
    assert (await setup.orphans()).keys == (NEIGHBOUR,)
    await neighbour.steps(*REMOVING)
    assert setup.cloud.is_empty


@pytest.mark.parametrize("done", range(1, len(REMOVING)))
async def test_the_sweeper_finds_what_is_left_wherever_teardown_stopped(
    setup: Account, done: int
) -> None:
    await setup.steps(*MAKING)
    assert await setup.orphans() == Orphans(keys=(KEY,))
    await setup.steps(*REMOVING[:done])
    assert await setup.orphans() == Orphans(keys=(KEY,))
    await setup.steps(*REMOVING)
    assert await setup.orphans() == Orphans()


async def test_without_functions_a_batch_is_queues_and_a_subscription(setup: Account) -> None:
    setup.plan = WITHOUT_FUNCTION
    await setup.steps(*MAKING)
    assert not setup.cloud.functions_by_name
    assert not setup.cloud.policies
    await setup.steps(*REMOVING)
    assert setup.cloud.is_empty


async def test_the_lock_is_held_from_the_functions_making_to_its_end(setup: Account) -> None:
    lock = function_lock(setup.cloud.functions, PLAN.prefix)
    held: list[str] = []
    for step in (*MAKING, *REMOVING):
        await setup.step(step)
        if await lock(KEY):
            held.append(step)
    between = [*MAKING, *REMOVING]
    first, last = between.index("create_function"), between.index("delete_function")
    assert held == between[first:last]
    assert not await lock(NEIGHBOUR)


async def test_dead_letters_outlive_everything_else_and_are_no_orphans(setup: Account) -> None:
    await setup.steps(*MAKING)
    setup.cloud.queues_by_name[NAMES.dead_letters].messages = ["{}", "{}"]
    await setup.steps(*REMOVING[:-1])
    kept = await setup.step(REMOVING[-1])
    assert kept == StepDone(
        state=ResourceState.KEPT, note=f"2 dead letters are in {NAMES.dead_letters}"
    )
    assert set(setup.cloud.queues_by_name) == {NAMES.dead_letters}
    assert await setup.orphans() == Orphans()
    setup.cloud.queues_by_name[NAMES.dead_letters].messages.clear()
    assert await setup.orphans() == Orphans(keys=(KEY,))


async def test_unwanted_dead_letters_are_removed(setup: Account) -> None:
    await setup.step("create_dead_letters")
    setup.cloud.queues_by_name[NAMES.dead_letters].messages = ["{}"]
    done = await setup.step("delete_dead_letters", keep_dead_letters=False)
    assert done == StepDone(state=ResourceState.GONE)
    assert setup.cloud.is_empty


BEFORE_DELIVERY = MAKING[: MAKING.index("prove_delivery")]


@pytest.mark.parametrize("missing", ["subscribe", "set_queue_policy"])
async def test_delivery_is_not_proven_as_long_as_something_is_in_its_way(
    setup: Account, missing: str
) -> None:
    await setup.steps(*(step for step in BEFORE_DELIVERY if step != missing))
    with pytest.raises(ApplicationError, match="has reached the queue"):
        await setup.step("prove_delivery", delivery=0)
    await setup.step(missing)
    assert await setup.step("prove_delivery") == StepDone(state=ResourceState.READY)


async def test_an_early_document_proves_delivery_and_stays(setup: Account) -> None:
    await setup.steps(*BEFORE_DELIVERY)
    document = json.dumps({"eventType": "DOCUMENT_PROCESSED"})
    setup.cloud.topic.deliver(KEY, document)
    await setup.step("prove_delivery")
    assert setup.cloud.queues_by_name[NAMES.queue].messages == [document]


async def test_a_foreign_resource_with_our_name_stops_both_building_and_sweeping(
    setup: Account,
) -> None:
    await setup.cloud.queues.ensure_queue(NAMES, PLAN, "somebody", 30)
    with pytest.raises(ApplicationError, match="belongs to somebody"):
        await setup.step("create_queue")
    assert await setup.orphans() == Orphans(not_ours=(KEY,))
