"""Provisioning and teardown, step by step."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.batches.provisioning import BatchProvisioning, BatchTeardown, Pace
from adapters.ports.batches import SourceFunction
from adapters.ports.errors import Denied, NoRoom, NotYet
from tests.support.imports.activities import environment
from tests.support.scripted_port import ScriptedPort
from tests.support.waiting import eventually
from workflows.batches.names import BatchKey, BatchPlan, QueueDepth, ResourceState
from workflows.batches.names import names_of as names_in
from workflows.batches.runs import StepDone, StepInput
from workflows.shared.errors import NOT_YET, PERMANENT

KEY = BatchKey(case_id=7, batch_id=3)
PLAN = BatchPlan(
    prefix="p", topic_arn="arn:aws:sns:eu-central-1:000000000000:t", source_function="source"
)
NAMES = names_in("p", KEY)
OWNER = "batch/7/3"
READY, GONE = StepDone(state=ResourceState.READY), StepDone(state=ResourceState.GONE)
FUNCTION_STEPS = (
    *("grant_permissions", "create_function", "attach_mapping", "reserve_concurrency"),
    *("detach_mapping", "delete_function", "revoke_permissions"),
)
QUICK = Pace(first=0.001, longest=0.008, again=0.08)


@dataclass
class Cloud:
    """The four ports of a cloud."""

    queues: ScriptedPort = field(default_factory=lambda: ScriptedPort(delete_queue=True))
    topic: ScriptedPort = field(default_factory=lambda: ScriptedPort(unsubscribe=True))
    functions: ScriptedPort = field(
        default_factory=lambda: ScriptedPort(
            source=SourceFunction(timeout=100, role="loader"), detach=True, delete=True
        )
    )
    grants: ScriptedPort = field(default_factory=lambda: ScriptedPort(revoke=True))

    @property
    def changes(self) -> list[tuple[Any, ...]]:
        """Every call that is not only a look."""
        calls = [
            *self.queues.asked,
            *self.topic.asked,
            *self.functions.asked,
            *self.grants.asked,
        ]
        return [call for call in calls if call[0] not in ("source", "depth")]

    def step(self, name: str, pace: Pace = QUICK) -> Callable[[StepInput], Any]:
        ports = (self.queues, self.topic, self.functions, self.grants)
        making = BatchProvisioning(*ports, pace=pace)
        return getattr(making, name, None) or getattr(BatchTeardown(*ports), name)

    async def run(self, name: str, env: ActivityEnvironment | None = None, **work: Any) -> StepDone:
        return await (env or environment()).run(self.step(name), work_of(**work))


def work_of(**work: Any) -> StepInput:
    return StepInput(**{"key": KEY, "plan": PLAN, **work})


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.mark.parametrize(
    ("step", "call"),
    [
        ("create_queue", ("ensure_queue", NAMES, PLAN, OWNER, 600)),
        ("create_dead_letters", ("ensure_dead_letters", NAMES, PLAN, OWNER)),
        ("set_redrive_policy", ("set_redrive_policy", NAMES, PLAN)),
        ("set_queue_policy", ("allow_topic", NAMES, PLAN)),
        ("subscribe", ("subscribe", NAMES, PLAN, KEY)),
        ("grant_permissions", ("grant", NAMES, PLAN, "loader")),
        ("create_function", ("clone", NAMES, PLAN, KEY, OWNER)),
        ("attach_mapping", ("attach", NAMES, PLAN)),
        ("reserve_concurrency", ("reserve", NAMES, PLAN)),
    ],
)
async def test_each_step_makes_its_own_resource_and_no_other(
    cloud: Cloud, step: str, call: tuple[Any, ...]
) -> None:
    assert await cloud.run(step) == READY
    assert cloud.changes == [call]


@pytest.mark.parametrize(
    ("step", "port", "call"),
    [
        ("unsubscribe", "topic", ("unsubscribe", NAMES, PLAN)),
        ("detach_mapping", "functions", ("detach", NAMES)),
        ("delete_function", "functions", ("delete", NAMES.function, OWNER)),
        ("revoke_permissions", "grants", ("revoke", NAMES, "loader")),
        ("delete_queue", "queues", ("delete_queue", NAMES.queue, OWNER)),
        ("delete_dead_letters", "queues", ("delete_queue", NAMES.dead_letters, OWNER)),
    ],
)
async def test_each_step_removes_its_own_resource_and_one_that_is_gone_is_removed(
    cloud: Cloud, step: str, port: str, call: tuple[Any, ...]
) -> None:
    assert await cloud.run(step) == GONE
    getattr(cloud, port).answer(call[0], False)
    assert await cloud.run(step) == GONE.model_copy(update={"note": "was gone already"})
    assert cloud.changes == [call, call]


STATIC = PLAN.model_copy(update={"static_permissions": True})


async def test_permissions_are_granted_once_for_all_batches(cloud: Cloud) -> None:
    assert await cloud.run("grant_permissions", plan=STATIC) == READY
    assert cloud.changes == [("grant_once", STATIC, "loader")]


async def test_a_sweep_takes_back_what_a_release_before_granted_as_far_as_it_may(
    cloud: Cloud,
) -> None:
    assert await cloud.run("revoke_permissions", plan=STATIC) == GONE
    cloud.grants.answer("revoke", Denied("no right"))
    done = await cloud.run("revoke_permissions", plan=STATIC)
    assert done == GONE.model_copy(update={"note": "not looked for: no right"})
    with pytest.raises(ApplicationError, match="no right"):
        await cloud.run("revoke_permissions")


@pytest.mark.parametrize("step", FUNCTION_STEPS)
async def test_without_a_function_there_is_nothing_to_do_for_one(cloud: Cloud, step: str) -> None:
    done = await cloud.run(step, plan=PLAN.model_copy(update={"with_function": False}))
    assert done.note == "no function: polled by docflow bridge batch-loader"
    assert (cloud.changes, cloud.functions.asked) == ([], [])


async def test_without_a_function_messages_stay_hidden_for_as_long_as_a_start_takes(
    cloud: Cloud,
) -> None:
    await cloud.run("create_queue", plan=PLAN.model_copy(update={"with_function": False}))
    assert cloud.queues.asked[0][-1] == 120
    assert cloud.functions.asked == []


@pytest.mark.parametrize(
    ("depth", "keep", "state"),
    [
        (QueueDepth(visible=2, in_flight=1), True, ResourceState.KEPT),
        (QueueDepth(delayed=1), True, ResourceState.KEPT),
        (QueueDepth(visible=2), False, ResourceState.GONE),
        (QueueDepth(), True, ResourceState.GONE),
        (None, True, ResourceState.GONE),
    ],
)
async def test_dead_letters_stay_when_there_are_any_and_they_are_wanted(
    cloud: Cloud, depth: QueueDepth | None, keep: bool, state: ResourceState
) -> None:
    cloud.queues.answer("depth", depth)
    done = await cloud.run("delete_dead_letters", keep_dead_letters=keep)
    assert done.state is state
    assert bool(cloud.changes) == (state is ResourceState.GONE)
    if depth is not None and state is ResourceState.KEPT:
        assert done.note == f"{depth.total} dead letters are in {NAMES.dead_letters}"


async def test_a_busy_cloud_is_waited_for_as_long_as_it_asks(cloud: Cloud) -> None:
    cloud.queues.answer("ensure_queue", NotYet("deleted a moment ago", retry_after=61))
    with pytest.raises(ApplicationError, match="deleted a moment ago") as caught:
        await cloud.run("create_queue")
    assert (caught.value.type, caught.value.next_retry_delay) == (NOT_YET, timedelta(seconds=61))


async def test_a_full_account_is_asked_again_for_as_long_as_it_takes(cloud: Cloud) -> None:
    cloud.topic.answer("subscribe", NoRoom("no room for another filter policy"))
    with pytest.raises(ApplicationError, match="no room") as caught:
        await cloud.run("subscribe", environment(attempt=1_000_000))
    failure = caught.value
    assert (failure.type, failure.non_retryable) == (NOT_YET, False)
    assert failure.next_retry_delay == timedelta(minutes=1)


async def test_what_the_cloud_refuses_is_not_asked_again(cloud: Cloud) -> None:
    cloud.topic.answer("subscribe", Denied("not allowed to subscribe"))
    with pytest.raises(ApplicationError, match="not allowed") as caught:
        await cloud.run("subscribe")
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)


class Slow(ScriptedPort):
    """Queues that take their time to be made."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.made_it = False

    async def ensure_dead_letters(self, *_: Any) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.made_it = True


async def test_a_request_that_was_sent_is_waited_for_although_the_step_is_cancelled(
    cloud: Cloud,
) -> None:
    slow = Slow()
    cloud.queues = slow
    env = environment(heartbeat_timeout=timedelta(seconds=0.02))
    beats: list[tuple[Any, ...]] = []
    env.on_heartbeat = lambda *details: beats.append(details)
    step = asyncio.create_task(cloud.run("create_dead_letters", env))
    await slow.begun.wait()
    env.cancel()
    before = len(beats)

    async def went_on_beating() -> bool:
        return len(beats) > before + 1

    await eventually(went_on_beating)
    assert not step.done()
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert slow.made_it


def proving(since: timedelta = timedelta(0), **info: Any) -> ActivityEnvironment:
    """An attempt that begins now, of a step that was first scheduled a while ago."""
    now = datetime.now(UTC)
    env = environment(current_attempt_scheduled_time=now, **info)
    env.info = replace(env.info, scheduled_time=now - since)
    return env


async def test_a_canary_that_arrives_proves_delivery(cloud: Cloud) -> None:
    cloud.queues.answer("has_proof", False, False, True)
    assert await cloud.run("prove_delivery", proving(attempt=2)) == READY
    assert cloud.topic.asked == [("send_canary", PLAN, KEY, f"{OWNER}/2")]
    assert cloud.queues.asked == [("has_proof", NAMES.queue, f"{OWNER}/2")] * 3


async def test_a_canary_that_was_lost_is_followed_by_others(cloud: Cloud) -> None:
    cloud.queues.answer("has_proof", False)

    async def has_proof(*_: Any) -> bool:
        return len(cloud.topic.asked) == 3

    cloud.queues.has_proof = has_proof
    assert await cloud.run("prove_delivery", proving()) == READY


async def test_unproven_delivery_names_where_to_look(cloud: Cloud) -> None:
    cloud.queues.answer("has_proof", False)
    said = "within 900 s: look at the filter policy"
    async with asyncio.timeout(60):
        with pytest.raises(ApplicationError, match=said) as caught:
            await cloud.run("prove_delivery", proving(since=timedelta(hours=1), attempt=9))
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)
    # Workers may have been away for all that time: the last canary gets its chance.
    assert len(cloud.topic.asked) == 1
    looks = len(cloud.queues.asked)
    assert 1 < looks <= 4 + QUICK.again / QUICK.longest, "pauses grow"


async def test_a_canary_that_cannot_be_sent_fails_the_attempt(cloud: Cloud) -> None:
    cloud.topic.answer("send_canary", Denied("not allowed to publish"))
    with pytest.raises(ApplicationError, match="not allowed to publish"):
        await cloud.run("prove_delivery", proving())
    assert cloud.queues.asked == []


async def test_looking_for_delivery_stops_at_once_when_it_is_cancelled(cloud: Cloud) -> None:
    cloud.queues.answer("has_proof", False)
    env = proving()
    step = asyncio.create_task(env.run(cloud.step("prove_delivery", Pace()), work_of()))

    async def looked() -> bool:
        return bool(cloud.queues.asked)

    await eventually(looked)
    env.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await step
