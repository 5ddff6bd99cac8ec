"""Failures of steps as workflows see them: their message, their type, and whether they count."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    is_cancelled_exception,
)

from contracts.dependencies import Awaited
from contracts.errors import UNAVAILABLE

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


def awaited_by(error: FailureError) -> Awaited | None:
    """What the step needs and could not use; None: its failure is of another kind."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if not isinstance(cause, ApplicationError) or cause.type != UNAVAILABLE:
        return None
    dependency, room, *name = cause.details
    return Awaited(dependency=dependency, room=room, name=next(iter(name), None))


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
