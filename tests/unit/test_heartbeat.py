"""Heartbeats carry the newest progress, and only where they are received."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.shared.failures import (
    LONGEST_PAUSE,
    LOST_SILENTLY,
    LOST_WORKERS,
    Attempts,
    BoundedHeartbeater,
    Heartbeater,
)
from tests.support.imports.activities import environment
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation


class Progress(Contract):
    rows: int


class Listener:
    """Collects heartbeats of an environment."""

    def __init__(self, env: ActivityEnvironment) -> None:
        self.beats: list[tuple[Any, ...]] = []
        self._heard = asyncio.Event()
        env.on_heartbeat = self._hear

    def _hear(self, *details: Any) -> None:
        self.beats.append(details)
        self._heard.set()

    async def until(self, *wanted: Any) -> None:
        async with asyncio.timeout(60):
            while wanted not in self.beats:
                self._heard.clear()
                await self._heard.wait()


async def test_beats_at_half_the_timeout_with_the_newest_progress() -> None:
    env = environment(heartbeat_timeout=timedelta(seconds=0.02), is_local=False)
    listener = Listener(env)

    async def work() -> None:
        async with Heartbeater() as heart:
            await listener.until()
            heart.beat(Progress(rows=1))
            heart.beat(Progress(rows=2))
            await listener.until(Progress(rows=2))

    await env.run(work)
    assert (Progress(rows=1),) not in listener.beats


async def test_until_the_first_progress_the_last_attempts_details_are_repeated() -> None:
    env = environment(
        heartbeat_timeout=timedelta(seconds=0.02), is_local=False, heartbeat_details=["before"]
    )
    listener = Listener(env)

    async def work() -> None:
        async with Heartbeater():
            await listener.until("before")

    await env.run(work)


@pytest.mark.parametrize("heartbeater", [Heartbeater, lambda: BoundedHeartbeater("read files")])
async def test_a_first_attempt_that_ends_at_once_sends_no_heartbeat(
    heartbeater: Callable[[], Heartbeater],
) -> None:
    async def beats(**info: Any) -> Sequence[Any]:
        env = environment(heartbeat_timeout=timedelta(hours=1), is_local=False, **info)
        listener = Listener(env)

        async def work() -> None:
            async with heartbeater():
                await asyncio.sleep(0)

        await env.run(work)
        return listener.beats

    assert await beats(attempt=1) == []
    assert len(await beats(attempt=2)) == 1


async def test_a_failure_takes_the_newest_progress_along() -> None:
    env = environment(heartbeat_timeout=timedelta(hours=1), is_local=False)
    listener = Listener(env)

    async def work() -> None:
        async with Heartbeater() as heart:
            heart.beat(Progress(rows=7))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await env.run(work)
    assert listener.beats[-1] == (Progress(rows=7),)


@pytest.mark.parametrize(
    "info",
    [
        {"heartbeat_timeout": timedelta(seconds=0.001), "is_local": True},
        {"heartbeat_timeout": None, "is_local": False},
    ],
)
async def test_a_local_activity_sends_no_heartbeat(info: dict[str, Any]) -> None:
    env = environment(**info)
    listener = Listener(env)

    async def work() -> None:
        before = asyncio.all_tasks()
        async with Heartbeater() as heart:
            heart.beat(Progress(rows=1))
            assert asyncio.all_tasks() == before

    await env.run(work)
    assert listener.beats == []


def test_a_cancellation_is_delivered_with_a_heartbeat_within_a_second() -> None:
    assert LONGEST_PAUSE <= 1


async def test_work_that_loses_its_workers_again_and_again_is_refused() -> None:
    async def work() -> None:
        async with BoundedHeartbeater("planned the stage"):
            pass

    def after(attempt: int, *details: Any) -> ActivityEnvironment:
        return environment(attempt=attempt, heartbeat_details=details)

    failed_before = {"ended": 7}
    await after(7 + LOST_WORKERS, failed_before).run(work)
    await after(LOST_SILENTLY).run(work)
    for lost in (after(8 + LOST_WORKERS, failed_before), after(1 + LOST_SILENTLY)):
        with pytest.raises(RuleViolation, match=r"workers in a row were lost.*planned the stage"):
            await lost.run(work)


async def test_progress_is_sent_behind_the_attempts_and_changes_no_count() -> None:
    attempt = 8 + LOST_WORKERS
    env = environment(
        attempt=attempt,
        heartbeat_details=({"ended": 8}, {"rows": 4}),
        heartbeat_timeout=timedelta(hours=1),
        is_local=False,
    )
    listener = Listener(env)

    async def work() -> None:
        async with BoundedHeartbeater("planned the stage") as heart:
            heart.beat(Progress(rows=7))
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await env.run(work)
    assert listener.beats == [
        (Attempts(ended=8), {"rows": 4}),
        (Attempts(ended=attempt), Progress(rows=7)),
    ]
    earlier_release = environment(attempt=LOST_SILENTLY, heartbeat_details=({"rows": 4},))
    with pytest.raises(ValueError, match="broken"):
        await earlier_release.run(work)


async def test_an_attempt_that_fails_by_itself_has_lost_no_worker() -> None:
    env = environment(attempt=5, heartbeat_timeout=timedelta(hours=1), is_local=False)
    listener = Listener(env)

    async def work() -> None:
        async with BoundedHeartbeater("planned the stage"):
            assert listener.beats == [(Attempts(ended=0),)]
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await env.run(work)
    assert listener.beats[-1] == (Attempts(ended=5),)
