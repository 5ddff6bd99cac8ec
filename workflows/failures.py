"""Failures of steps as workflows see them: their message, their type, and whether they count."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)

T = TypeVar("T")

EXPLANATION_CHARACTERS: Final = 1_500
"""Leaves room in a reason for who decided, and why."""


def explain(error: FailureError) -> str:
    """What went wrong in a step, in one bounded sentence for a person.

    Failures of remote activities arrive wrapped in `ActivityError`, those of local ones bare.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    message = cause.message if isinstance(cause, FailureError) else str(cause or error)
    return message[:EXPLANATION_CHARACTERS]


def failure_type(error: FailureError) -> str | None:
    """Type of a step's failure: one of `contracts.errors`."""
    cause = error.cause if isinstance(error, ActivityError) else error
    return cause.type if isinstance(cause, ApplicationError) else None


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


async def retried(
    work: Callable[[], Awaitable[T]], on_failure: Callable[[FailureError], Awaitable[None]]
) -> T:
    """Do a step until it succeeds.

    Args:
        work: One attempt, whose own retries are used up when it raises.
        on_failure: Returns when the step is to be tried again, raises when it is not.
    """
    while True:
        try:
            return await work()
        except FailureError as error:
            reraise_cancellation(error)
            failure = error
        await on_failure(failure)


async def retried_despite_cancel(
    work: Callable[[], Awaitable[T]], on_failure: Callable[[FailureError], Awaitable[None]]
) -> T:
    """Do the last step of a run until it succeeds.

    It is too late to stop anything then, and without its record the end would be lost: a
    cancelled attempt is made again.
    """
    while True:
        try:
            return await work()
        except FailureError as error:
            if is_cancelled_exception(error):
                continue
            failure = error
        await on_failure(failure)
