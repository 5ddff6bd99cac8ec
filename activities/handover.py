"""A local step that takes long hands over to a remote one.

While a local step runs, its workflow hears nothing: a request to cancel arrives with the workflow
task's next report, which may be 8 seconds away. So a local step works for a short time only, and
the workflow runs the same activity again as a remote one, which hears of a cancellation with each
heartbeat and continues behind what is committed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from temporalio import activity

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")

LOCAL_SECONDS: Final = 2.0
"""After these a local step ends with the chunk that it commits next."""
CUT_SECONDS: Final = 2.5
"""After these it ends wherever it is; what it has not committed is done again."""

_due: ContextVar[float | None] = ContextVar("due", default=None)


class _Due(Exception):
    """The step has had its time."""


def chunk_committed() -> None:
    """Signal a step that is to be handed over that the time has come."""
    due = _due.get()
    if due is not None and asyncio.get_running_loop().time() >= due:
        raise _Due


async def carried_through(work: Coroutine[Any, Any, R]) -> R:
    """Finish what a step has begun, although its time ends or it is cancelled meanwhile.

    For work whose end the run has to know, because it cannot be taken back.
    """
    task = asyncio.ensure_future(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


def hands_over(
    unfinished: R,
) -> Callable[
    [Callable[Concatenate[S, P], Awaitable[R]]], Callable[Concatenate[S, P], Awaitable[R]]
]:
    """Decorate an activity method that may be run again at any moment and then continues.

    Goes below `translate_failures`. Only local activities hand over.

    Args:
        unfinished: Its result when it does.
    """

    def decorate(
        run: Callable[Concatenate[S, P], Awaitable[R]],
    ) -> Callable[Concatenate[S, P], Awaitable[R]]:
        @wraps(run)
        async def limited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if not activity.info().is_local:
                return await run(self, *args, **kwargs)
            now = asyncio.get_running_loop().time()
            token = _due.set(now + LOCAL_SECONDS)
            limit = asyncio.timeout_at(now + CUT_SECONDS)
            try:
                async with limit:
                    return await run(self, *args, **kwargs)
            except _Due:
                return unfinished
            except TimeoutError:
                if not limit.expired():
                    raise
                return unfinished
            finally:
                _due.reset(token)

        return limited

    return decorate
