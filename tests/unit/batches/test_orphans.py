"""Orphans are found, and nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.batches.provisioning import BatchOrphans
from adapters.ports.batches import SourceFunction
from adapters.ports.errors import Denied
from tests.support.imports.activities import environment
from tests.support.scripted_port import ScriptedPort
from workflows.batches.names import BatchKey, BatchPlan, QueueDepth, Resource
from workflows.batches.runs import Orphans, SweepInput
from workflows.batches.validation import FoundResource

PLAN = BatchPlan(
    prefix="p", topic_arn="arn:aws:sns:eu-central-1:000000000000:t", source_function="source"
)
KEY = BatchKey(case_id=7, batch_id=3)
TAGGED = (Resource.QUEUE, Resource.DEAD_LETTERS, Resource.FUNCTION)
PORTS = {
    Resource.QUEUE: "queues",
    Resource.DEAD_LETTERS: "queues",
    Resource.SUBSCRIPTION: "topic",
    Resource.FUNCTION: "functions",
    Resource.MAPPING: "functions",
    Resource.CONCURRENCY: "functions",
    Resource.PERMISSIONS: "grants",
}


class Cloud:
    """An account, with some of ours in it."""

    def __init__(self, plan: BatchPlan = PLAN) -> None:
        self.plan = plan
        self.ports = {name: ScriptedPort() for name in set(PORTS.values())}
        self.ports["functions"].answer("source", SourceFunction(timeout=3, role="loader"))
        self.found: dict[str, list[FoundResource]] = {name: [] for name in self.ports}
        self.open: set[str] = set()
        self.store = ScriptedPort(unannounced=[])

    def has(self, resource: Resource, key: BatchKey = KEY, **facts: Any) -> None:
        if "owner" not in facts and resource in TAGGED:
            facts["owner"] = key.workflow_id
        age = facts.pop("age", timedelta(hours=1))
        made_at = None if age is None else datetime.now(UTC) - age
        self.found[PORTS[resource]].append(
            FoundResource(key, resource, f"{resource} of {key}", made_at=made_at, **facts)
        )

    async def is_open(self, workflow_id: str) -> bool:
        return workflow_id in self.open

    async def orphans(self, **order: Any) -> Orphans:
        for name, port in self.ports.items():
            port.lists("found", *self.found[name])
        sweeping = BatchOrphans(**self.ports, runs=self, plan_defaults=self.plan, store=self.store)
        return await environment().run(sweeping.orphans, SweepInput(**order))


ORPHAN, NOTHING = Orphans(keys=(KEY,)), Orphans()


@pytest.mark.parametrize("resource", [one for one in PORTS if one is not Resource.DEAD_LETTERS])
async def test_anything_without_a_run_makes_its_batch_an_orphan(resource: Resource) -> None:
    cloud = Cloud()
    cloud.has(resource)
    assert await cloud.orphans() == ORPHAN
    cloud.open = {KEY.workflow_id}
    assert await cloud.orphans() == NOTHING


async def test_a_batch_with_everything_is_one_orphan() -> None:
    cloud = Cloud()
    for resource in PORTS:
        cloud.has(resource)
    assert await cloud.orphans() == ORPHAN


async def test_what_was_made_a_moment_ago_is_left_alone() -> None:
    cloud = Cloud()
    cloud.has(Resource.QUEUE)
    cloud.has(Resource.FUNCTION, age=timedelta(minutes=14))
    assert await cloud.orphans(grace=900) == NOTHING
    assert await cloud.orphans(grace=600) == ORPHAN


async def test_what_has_no_date_is_old() -> None:
    cloud = Cloud()
    cloud.has(Resource.PERMISSIONS, age=None)
    assert await cloud.orphans() == ORPHAN


@pytest.mark.parametrize("owner", [None, "batch/7/30", "somebody"])
@pytest.mark.parametrize("resource", TAGGED)
async def test_a_batch_with_a_foreign_resource_is_left_alone_and_named(
    resource: Resource, owner: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud()
    cloud.has(resource, owner=owner)
    cloud.has(Resource.SUBSCRIPTION)
    assert await cloud.orphans() == Orphans(not_ours=(KEY,))
    assert f"{resource} {resource} of {KEY} has one of our names" in caplog.text


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (QueueDepth(), ORPHAN),
        (QueueDepth(in_flight=1), NOTHING),
        (None, NOTHING),
    ],
)
async def test_dead_letters_that_are_alone_were_kept_on_purpose(
    depth: QueueDepth | None, expected: Orphans
) -> None:
    cloud = Cloud()
    cloud.has(Resource.DEAD_LETTERS)
    cloud.ports["queues"].answer("depth", depth)
    assert await cloud.orphans() == expected


async def test_a_batch_whose_end_was_not_announced_is_swept_although_nothing_is_left() -> None:
    cloud = Cloud()
    cloud.store.answer("unannounced", [KEY])
    asked_at = datetime.now(UTC)
    assert await cloud.orphans(grace=600) == ORPHAN
    [[before]] = cloud.store.made("unannounced")
    assert timedelta(0) <= before + timedelta(seconds=600) - asked_at < timedelta(seconds=60)
    cloud.open = {KEY.workflow_id}
    assert await cloud.orphans() == NOTHING, "it is being torn down"


async def test_kept_dead_letters_do_not_hold_an_announcement_back() -> None:
    cloud = Cloud()
    cloud.has(Resource.DEAD_LETTERS)
    cloud.ports["queues"].answer("depth", QueueDepth(visible=2))
    cloud.store.answer("unannounced", [KEY])
    assert await cloud.orphans() == ORPHAN


async def test_one_run_sweeps_a_bounded_number_and_reports_that_there_are_more() -> None:
    cloud = Cloud()
    keys = [BatchKey(case_id=case, batch_id=batch) for case in (9, 10) for batch in (2, 11)]
    for key in reversed(keys):
        cloud.has(Resource.QUEUE, key)
    assert await cloud.orphans(most=3) == Orphans(keys=tuple(keys[:3]), more=True)
    assert await cloud.orphans(most=4) == Orphans(keys=tuple(keys))
    cloud.open = {keys[0].workflow_id}
    assert await cloud.orphans(most=3) == Orphans(keys=tuple(keys[1:]))


async def test_an_installation_without_functions_needs_no_source_function() -> None:
    cloud = Cloud(PLAN.model_copy(update={"with_function": False}))
    cloud.has(Resource.QUEUE)
    assert await cloud.orphans() == ORPHAN
    assert cloud.ports["functions"].asked == cloud.ports["grants"].asked == []


async def test_every_port_is_asked_about_this_installation_only() -> None:
    cloud = Cloud()
    await cloud.orphans()
    assert {name: port.made("found") for name, port in cloud.ports.items()} == {
        "queues": [["p"]],
        "topic": [["p", PLAN.topic_arn]],
        "functions": [["p"]],
        "grants": [["p", "loader"]],
    }


@pytest.mark.parametrize("static", [True, False])
async def test_without_the_source_function_everything_else_is_swept(*, static: bool) -> None:
    cloud = Cloud(PLAN.model_copy(update={"static_permissions": static}))
    cloud.has(Resource.QUEUE)
    cloud.ports["functions"].answer("source", Denied("there is no function source"))
    if static:
        assert await cloud.orphans() == ORPHAN
    else:
        with pytest.raises(ApplicationError, match="there is no function source"):
            await cloud.orphans()
