"""Requests to stop a run: how they reach its work, and what is finished in spite of them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from temporalio.exceptions import FailureError, is_cancelled_exception

Request = TypeVar("Request")
T = TypeVar("T")


class Cancellation(Generic[Request]):
    """The request to stop a run, and the task of its work."""

    def __init__(self) -> None:
        self.request: Request | None = None
        """The first one, if there was any."""
        self._work: asyncio.Task[None] | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start the work that a request cancels."""
        self._work = asyncio.create_task(work)
        return self._work

    async def completes(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work that a request cancels.

        Returns:
            False: It was cancelled, by a request or by Temporal's own cancel.

        Raises:
            FailureError: It has failed.
        """
        try:
            await self.start(work)
        except asyncio.CancelledError:
            return False
        except FailureError as error:
            if not is_cancelled_exception(error):
                raise
            return False
        return True

    def stop(self, request: Request) -> None:
        """Cancel the work."""
        self.request = self.request or request
        if self._work is not None:
            self._work.cancel()

    def check(self) -> None:
        """Begin no further step after a request.

        Raises:
            asyncio.CancelledError: A stop was requested.
        """
        stop_if(self.request is not None)


def stop_if(requested: bool) -> None:
    """Stop here when that was requested.

    A step that was ending when it was cancelled takes the cancellation with it, and the next one
    must not begin.

    Raises:
        asyncio.CancelledError: It was requested.
    """
    if requested:
        raise asyncio.CancelledError


async def finished_despite_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Finish some work even when the run is cancelled meanwhile."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
