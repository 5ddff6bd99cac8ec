"""Blocking calls in threads."""

import asyncio
import threading

import pytest

from adapters.threads import to_end


async def test_a_cancelled_call_is_waited_for() -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        release.wait()
        ended.set()

    waiting = asyncio.ensure_future(to_end(call))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done, "the wait ended before the call"
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_a_result_and_an_error_arrive() -> None:
    assert await to_end(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await to_end(divmod, 7, 0)
