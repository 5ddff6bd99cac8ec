"""Steps that ask again while the cloud is still busy."""

import asyncio

import pytest

from activities.batches.calls import POLL_SECONDS, to_its_end
from adapters.ports import Denied, NotYet
from tests.support.imports.activities import environment


class Busy:
    """A call that says `NotYet` for some times, then fails if it is to."""

    def __init__(self, *pauses: float, fails: bool = False) -> None:
        self.pauses = list(pauses)
        self.fails = fails
        self.asked = 0

    @to_its_end
    async def call(self) -> str:
        self.asked += 1
        if self.pauses:
            raise NotYet("pending", self.pauses.pop(0))
        if self.fails:
            raise Denied("no")
        return "done"


async def test_what_takes_a_moment_is_waited_for_here() -> None:
    busy = Busy(0.01, 0.01)
    assert await environment().run(busy.call) == "done"
    assert busy.asked == 3


async def test_what_fails_after_a_moment_has_failed() -> None:
    busy = Busy(0.01, fails=True)
    with pytest.raises(Denied):
        await environment().run(busy.call)
    assert busy.asked == 2


async def test_what_takes_long_is_left_to_the_server() -> None:
    busy = Busy(0.01, POLL_SECONDS)
    with pytest.raises(NotYet):
        await environment().run(busy.call)
    assert busy.asked == 2


async def test_a_cancel_ends_the_pause() -> None:
    busy = Busy(POLL_SECONDS / 2)
    running = asyncio.create_task(environment().run(busy.call))
    while not busy.asked:
        await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await running
    assert busy.asked == 1
