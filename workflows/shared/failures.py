"""Failures of steps as workflows see them, and requests to stop a run."""

import asyncio
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)

from workflows.shared.dependencies import WaitInput
from workflows.shared.errors import UNAVAILABLE

EXPLANATION_CHARACTERS: Final = 1_500
"""Leaves room in a reason for who decided, and why."""
_NO_CURES: Final[Mapping[str, str]] = MappingProxyType({})


def explain(error: FailureError, cures: Mapping[str, str] = _NO_CURES) -> str:
    """What went wrong in a step, in one bounded sentence for a person.

    Failures of remote activities arrive wrapped in `ActivityError`, those of local ones bare.

    Args:
        error: The failure.
        cures: What else this run can do about failures of a type, to be added to the message.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    message = cause.message if isinstance(cause, FailureError) else str(cause or error)
    cure = cures.get(failure_type(error) or "")
    return (message if cure is None else f"{message}; {cure}")[:EXPLANATION_CHARACTERS]


def failure_type(error: FailureError) -> str | None:
    """Type of a step's failure: one of `workflows.shared.errors`."""
    cause = error.cause if isinstance(error, ActivityError) else error
    return cause.type if isinstance(cause, ApplicationError) else None


def awaited_by(error: FailureError) -> WaitInput | None:
    """What the step needs and could not use; None: its failure is of another kind."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if not isinstance(cause, ApplicationError) or cause.type != UNAVAILABLE:
        return None
    dependency, room, *name = cause.details
    return WaitInput(dependency=dependency, room=room, name=next(iter(name), None))


def reraise_cancellation(error: FailureError) -> None:
    """Raise the error again when it is the cancellation of the run, which is not a failure."""
    if is_cancelled_exception(error):
        raise error


@contextmanager
def failures_logged(what: str) -> Generator[None, None, None]:
    """For work that nothing depends on: its failure is logged, a cancellation is raised."""
    try:
        yield
    except FailureError as error:
        reraise_cancellation(error)
        workflow.logger.warning("%s: %s", what, explain(error))


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
