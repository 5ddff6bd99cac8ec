"""A local step ends after a short time; a remote one is left alone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.shared import failures
from activities.shared.failures import chunk_committed, hands_over, translate_failures
from tests.support.imports.activities import environment
from workflows.shared.errors import TRANSIENT

Work = Callable[[], Awaitable[str]]


class Step:
    """One activity, made of a function."""

    def __init__(self, work: Work) -> None:
        self._work = work

    @activity.defn(name="step")
    @translate_failures
    @hands_over("unfinished")
    async def run(self) -> str:
        return await self._work()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "LOCAL_SECONDS", 0.0)
    monkeypatch.setattr(failures, "CUT_SECONDS", 0.05)


async def three_chunks() -> str:
    for _ in range(3):
        await asyncio.sleep(0)
        chunk_committed()
    return "done"


async def for_ever() -> str:
    await asyncio.Event().wait()
    return "never"


async def times_out() -> str:
    raise TimeoutError("the store does not answer")


async def quick() -> str:
    return "done"


def local() -> ActivityEnvironment:
    return environment(is_local=True)


def remote() -> ActivityEnvironment:
    return environment(is_local=False, heartbeat_timeout=timedelta(seconds=5))


@pytest.mark.parametrize(
    ("work", "result"), [(three_chunks, "unfinished"), (for_ever, "unfinished"), (quick, "done")]
)
async def test_a_local_step_ends_with_its_chunk_or_where_it_is(work: Work, result: str) -> None:
    assert await local().run(Step(work).run) == result


async def test_a_remote_step_takes_as_long_as_it_takes() -> None:
    assert await remote().run(Step(three_chunks).run) == "done"


async def test_what_times_out_by_itself_is_a_failure() -> None:
    with pytest.raises(ApplicationError, match="does not answer") as failed:
        await local().run(Step(times_out).run)
    assert failed.value.type == TRANSIENT


async def test_a_cancelled_step_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "CUT_SECONDS", 60.0)
    env, working = local(), asyncio.Event()

    async def waits() -> str:
        working.set()
        return await for_ever()

    running = asyncio.create_task(env.run(Step(waits).run))
    await working.wait()
    env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_committed_chunk_ends_nothing_outside_such_a_step() -> None:
    chunk_committed()
