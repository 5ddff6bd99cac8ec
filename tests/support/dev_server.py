"""Temporal servers that the SDK starts, on a machine that may be busy."""

from collections.abc import Awaitable, Callable

from temporalio.testing import WorkflowEnvironment

_TRIES = 6


async def started(start: Callable[[], Awaitable[WorkflowEnvironment]]) -> WorkflowEnvironment:
    """Start a server; the SDK gives up after five seconds, which is no failure of a test."""
    for tries in range(1, _TRIES + 1):
        try:
            return await start()
        except RuntimeError as error:
            if "did not start within" not in str(error) or tries == _TRIES:
                raise
    raise AssertionError
