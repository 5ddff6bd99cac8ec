"""How the steps of a batch call the cloud."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from activities.heartbeat import Heartbeater

P = ParamSpec("P")
R = TypeVar("R")


def to_its_end(run: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Awaitable[R]]:
    """Decorate a step that changes something: once begun it ends, cancelled or not.

    A sent request is carried out even when its answer is no longer awaited. If teardown began
    before, it would find nothing to delete, and the resource would be made behind its back. Calls
    of ports are short, so this holds a cancel up for seconds. What is not there yet is asked for
    again by a retry of the server, which takes no slot meanwhile.

    Goes below `translate_failures`; heartbeats meanwhile.
    """

    @wraps(run)
    async def finished(*args: P.args, **kwargs: P.kwargs) -> R:
        async with Heartbeater():
            return await _ended(asyncio.create_task(run(*args, **kwargs)))

    return finished


async def _ended(call: asyncio.Task[R]) -> R:
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        # Whatever it raised was about work that is given up.
        await asyncio.gather(call, return_exceptions=True)
        raise
