"""One translation of everything that can go wrong in an activity into `ApplicationError`s.

Permanent failures are never retried. The others are retried by the server, whose policy sets the
backoff and no maximum, so that a crashed worker never gives a step up; the maximum is kept here,
by class: at its last attempt a failure is marked non-retryable and the workflow decides.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError

from adapters.ports import (
    BlobNotFound,
    Denied,
    NoRoom,
    NotYet,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.places import PlaceError
from contracts.dependencies import Dependency
from contracts.errors import (
    INVALID_DOCUMENT,
    MISSING_BLOB,
    NOT_YET,
    PERMANENT,
    THROTTLING,
    TRANSIENT,
    UNAVAILABLE,
    UNREADABLE_DOCUMENT,
    WORKERS_LOST,
)
from domain.errors import InvalidDocument, RuleViolation, WorkersLost

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

UNAVAILABLE_ATTEMPTS: Final = 2
"""The run waits for the dependency; one attempt more passes over a connection that broke."""
UNAVAILABLE_SECONDS: Final = 0.5
"""Until then. A local step's pause stays within its workflow task, and out of the history."""
TRANSIENT_ATTEMPTS: Final = 3
THROTTLING_ATTEMPTS: Final = 5
NOT_YET_ATTEMPTS: Final = 200
"""Waiting is not a failure; this many waits in a row are."""
NO_ROOM_SECONDS: Final = 60.0
"""Until a limit of an account is tried again, as often as it takes."""
CANCELLATIONS: Final = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
"""What ends a step from outside. A library's own `SystemExit` or panic is a failure like others:
left alone, the server would take the worker for lost and repeat the step without end."""
MESSAGE_CHARACTERS: Final = 1_500
"""A failure travels through history and search: libraries put whole statements into theirs."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    type: str
    message: str
    attempts: int = 1
    retry_after: float | None = None
    details: tuple[Any, ...] = ()
    at_last: str | None = None
    """Type of the last attempt's failure, where it is another one."""


def text_of(error: BaseException) -> str:
    """What an error says; without halves of surrogate pairs, which cannot be sent."""
    try:
        text = str(error)
    except Exception:
        # A job type's own class may fail even at that.
        text = ""
    return sendable(text) or type(error).__name__


def sendable(text: str) -> str:
    """Text with question marks for what UTF-8 does not have."""
    return text.encode(errors="replace").decode()


def _judge(error: BaseException) -> _Verdict:
    text = text_of(error)
    match error:
        case BlobNotFound():
            return _Verdict(MISSING_BLOB, text)
        case UnreadableDocument():
            return _Verdict(UNREADABLE_DOCUMENT, text)
        case InvalidDocument():
            return _Verdict(INVALID_DOCUMENT, text)
        case WorkersLost():
            return _Verdict(WORKERS_LOST, text)
        case NoRoom():
            return _Verdict(NOT_YET, text, sys.maxsize, NO_ROOM_SECONDS)
        case RuleViolation() | Denied():
            return _Verdict(PERMANENT, text)
        case NotYet():
            return _Verdict(NOT_YET, text, NOT_YET_ATTEMPTS, error.retry_after)
        case Throttled(dependency=Dependency.CLOUD):
            # All batches share the rate limits of the account: what was refused is called again.
            return _Verdict(
                THROTTLING, text, sys.maxsize, error.retry_after, (Dependency.CLOUD.value, 0)
            )
        case Throttled(dependency=Dependency() as dependency):
            return _Verdict(
                THROTTLING,
                text,
                THROTTLING_ATTEMPTS,
                error.retry_after,
                (dependency.value, 0),
                at_last=UNAVAILABLE,
            )
        case Throttled():
            return _Verdict(THROTTLING, text, THROTTLING_ATTEMPTS, error.retry_after)
        case Unavailable(dependency=Dependency() as dependency, room=room, name=name):
            return _Verdict(
                UNAVAILABLE,
                text,
                UNAVAILABLE_ATTEMPTS,
                UNAVAILABLE_SECONDS,
                (dependency.value, room) if name is None else (dependency.value, room, name),
            )
        case Unavailable() | PlaceError():
            return _Verdict(TRANSIENT, text, TRANSIENT_ATTEMPTS)
        case OSError(strerror=str(reason)):
            # Its full text names folders of the server, which callers must not see.
            return _Verdict(
                TRANSIENT, f"unexpected {type(error).__name__}: {reason}", TRANSIENT_ATTEMPTS
            )
        case _:
            # A fault of ours may hang on the moment (a race, a full disk): it gets the attempts
            # of a transient failure, then a person sees it.
            # Libraries put statements and values below their first line; they are not for
            # outside readers, and the log has them.
            first, *_ = text.splitlines() or [text]
            unexpected = f"unexpected {type(error).__name__}: {first}"
            return _Verdict(TRANSIENT, unexpected, TRANSIENT_ATTEMPTS)


def as_application_error(error: BaseException, attempt: int) -> ApplicationError:
    """The failure as the workflow sees it.

    Args:
        error: What the activity raised.
        attempt: Attempt of the activity, from 1. Attempts lost to crashed workers count: after
            many of them the first failure of this kind is the last, but a crash alone never is.

    Returns:
        An error whose type is one of `contracts.errors`; raise it from `error`.
    """
    verdict = _judge(error)
    last = attempt >= verdict.attempts
    return ApplicationError(
        verdict.message[:MESSAGE_CHARACTERS],
        *verdict.details,
        type=(last and verdict.at_last) or verdict.type,
        non_retryable=last,
        next_retry_delay=(
            None if last or verdict.retry_after is None else timedelta(seconds=verdict.retry_after)
        ),
    )


def announces(
    is_parked: Callable[[Any], bool],
) -> Callable[[Callable[[Any, T], Awaitable[R]]], Callable[[Any, T], Awaitable[R]]]:
    """Decorate an activity method that records where a run stands; goes above `translate_failures`.

    A run does not park because of the record that it is parked: whatever passes is waited for as an
    outage of the database is, so that the row does not contradict the run.

    Args:
        is_parked: Whether an input says that the run is parked.
    """

    def decorated(run: Callable[[Any, T], Awaitable[R]]) -> Callable[[Any, T], Awaitable[R]]:
        @wraps(run)
        async def announced(self: Any, record: T) -> R:
            try:
                return await run(self, record)
            except ApplicationError as error:
                passes = error.type in (TRANSIENT, THROTTLING)
                if not (error.non_retryable and passes and is_parked(record)):
                    raise
                raise ApplicationError(
                    error.message,
                    *(Dependency.DATABASE.value, 0),
                    type=UNAVAILABLE,
                    non_retryable=True,
                ) from error

        return announced

    return decorated


def translate_failures(run: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Decorate an activity method: what it raises reaches the workflow as `ApplicationError`.

    Goes below `activity.defn`. Cancellation and errors that are Temporal's already pass through;
    the original error stays as the cause, with its traceback.
    """

    @wraps(run)
    async def translated(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await run(*args, **kwargs)
        except FailureError:
            raise
        except BaseException as error:
            if not (isinstance(error, Exception) or _is_exit(error)):
                raise
            failure = as_application_error(error, activity.info().attempt)
            if _can_be_sent(error):
                raise failure from error
            activity.logger.warning("%s", failure.message, exc_info=True)
            raise failure from None

    return translated


def _is_exit(error: BaseException) -> bool:
    """Whether a library wanted to end the process, or a panic in it was raised as an exception."""
    return isinstance(error, SystemExit) or type(error).__module__ == "pyo3_runtime"


def _can_be_sent(error: BaseException | None) -> bool:
    """Whether the texts of an error and its causes can: else the server is sent a replacement."""
    while error is not None:
        try:
            str(error).encode()
        except Exception:
            return False
        context = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or context
    return True
