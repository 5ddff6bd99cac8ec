"""How everything that can go wrong in an activity is translated; heartbeats; handing over.

One translation of everything that can go wrong in an activity into `ApplicationError`s.

Permanent failures are never retried. The others are retried by the server, whose policy sets the
backoff and no maximum, so that a crashed worker never gives a step up; the maximum is kept here,
by class: at its last attempt a failure is marked non-retryable and the workflow decides.

A local step that takes long hands over to a remote one.

While a local step runs, its workflow hears nothing: a request to cancel arrives with the workflow
task's next report, which may be 8 seconds away. So a local step works for a short time only, and
the workflow runs the same activity again as a remote one, which hears of a cancellation with each
heartbeat and continues behind what is committed.
"""

import asyncio
import sys
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, timedelta
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError

from adapters.ports.errors import (
    BlobNotFound,
    Denied,
    NoRoom,
    NotYet,
    Throttled,
    Unavailable,
    UnreadableDocument,
)
from adapters.ports.places import PlaceError
from workflows.shared.contracts import Contract
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import (
    INVALID_DOCUMENT,
    MISSING_BLOB,
    NOT_YET,
    PERMANENT,
    TABLE_CHANGED,
    THROTTLING,
    TRANSIENT,
    UNAVAILABLE,
    UNDO_REFUSED,
    UNREADABLE_DOCUMENT,
    WORKERS_LOST,
    InvalidDocument,
    RuleViolation,
    TableChanged,
    UndoRefused,
    WorkersLost,
)

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
        case TableChanged():
            return _Verdict(TABLE_CHANGED, text)
        case UndoRefused():
            return _Verdict(UNDO_REFUSED, text)
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
        An error whose type is one of `workflows.shared.errors`; raise it from `error`.
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


S = TypeVar("S")

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


LONGEST_PAUSE: Final = 1.0
"""Seconds between heartbeats, whatever the timeout: that fresh a person sees the progress, and
that soon a cancellation request, which comes with the answer, stops the work."""
LOST_WORKERS: Final = 20
"""So often the same work may lose its worker, in a row."""
LOST_SILENTLY: Final = 200
"""The same without a heartbeat that counts: attempts of an earlier release may have failed."""


def day_of_step() -> date:
    """Return the day on which this step was first scheduled: the same at every attempt."""
    return activity.info().scheduled_time.date()


async def all_of(calls: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """Results of calls made side by side; the first failure, when all of them have ended."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    results: list[R] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


class Heartbeater:
    """Reports to the server at regular intervals that the activity lives, and its progress.

    A context manager. Silent in local activities and where no heartbeat timeout is set. Until
    the first `beat` it repeats the last details of the previous attempt, so nothing is lost. A
    first attempt that ends within its first pause sends none: it has nothing to repeat, and each
    costs the server as much as a step of the history.
    """

    def __init__(self) -> None:
        info = activity.info()
        self._newest: Sequence[Any] = info.heartbeat_details
        self._is_first = info.attempt == 1 and not info.heartbeat_details
        timeout = None if info.is_local else info.heartbeat_timeout
        self._pause = (
            min(timeout.total_seconds() / 2, LONGEST_PAUSE) if timeout is not None else None
        )
        self._task: asyncio.Task[None] | None = None

    def beat(self, details: Contract) -> None:
        """Remember how far the work is; the next heartbeat carries it.

        Call it when something is committed: a local step that is due hands over here.
        """
        self._newest = (details,)
        chunk_committed()

    async def __aenter__(self) -> Self:
        if self._pause:
            self._task = asyncio.create_task(self._send(self._pause))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if error is not None:
            # What this attempt reached goes with its failure.
            activity.heartbeat(*self._newest)

    async def _send(self, pause: float) -> None:
        if self._is_first:
            await asyncio.sleep(pause)
        while True:
            activity.heartbeat(*self._newest)
            await asyncio.sleep(pause)


class Attempts(Contract):
    """What every heartbeat of bounded work begins with."""

    ended: int = 0
    """The newest attempt that ended by itself; those after it lost their workers."""


class BoundedHeartbeater(Heartbeater):
    """One for work that may take its worker along, as code of others may: by memory, by a crash.

    The server would repeat it for ever without a reason that anyone sees. Its heartbeats count the
    attempts, before what `beat` is given.

    Args:
        work: What is done, for the reason, as in "they planned the stage".

    Raises:
        WorkersLost: On entering it: too many attempts in a row lost their workers.
    """

    def __init__(self, work: str) -> None:
        super().__init__()
        self._work = work
        info = activity.info()
        counted, self._progress = info.heartbeat_details[:1], info.heartbeat_details[1:]
        # An earlier release sent the progress of some steps alone.
        known = [Attempts.model_validate(each) for each in counted if "ended" in each]
        self._ended = known[0].ended if known else 0
        self._lost = info.attempt - 1 - self._ended
        self._most = LOST_WORKERS if known else LOST_SILENTLY

    def beat(self, details: Contract) -> None:
        """Remember how far the work is; the next heartbeat carries it, behind the attempts."""
        self._progress = (details,)
        self._remember(self._ended)

    def _remember(self, ended: int) -> None:
        self._newest = (Attempts(ended=ended), *self._progress)
        chunk_committed()

    async def __aenter__(self) -> Self:
        if self._lost >= self._most:
            raise WorkersLost(
                f"{self._lost} workers in a row were lost, or did not answer, while they "
                f"{self._work}: it crashes them, needs more memory than they have, or blocks "
                "their event loop"
            )
        self._remember(self._ended)
        entered = await super().__aenter__()
        # A repeated attempt has its first heartbeat on its way before the work begins.
        await asyncio.sleep(0)
        return entered

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._remember(activity.info().attempt)
        await super().__aexit__(kind, error, traceback)


class WorkerThread:
    """Runs blocking calls one after another, in one thread of their own.

    An async context manager; it ends when the last call has ended, cancelled or not, so what the
    calls use may be closed after it.

    Args:
        inline: Run the calls at once in the caller's thread instead: for work that is over in
            less time than two threads need to talk.
    """

    def __init__(self, *, inline: bool = False) -> None:
        self._pool = None if inline else ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._started: set[asyncio.Future[Any]] = set()

    def start(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Queue a call."""
        loop = asyncio.get_running_loop()
        if self._pool is not None:
            future = loop.run_in_executor(self._pool, call)
        else:
            future = loop.create_future()
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)
        self._started.add(future)
        future.add_done_callback(self._started.discard)
        return future

    async def run(self, call: Callable[[], T]) -> T:
        """Queue a call and wait for it; a cancelled wait leaves the call to its end."""
        return await asyncio.shield(self.start(call))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # An abandoned call may have raised; its work is given up.
        await asyncio.gather(*self._started, return_exceptions=True)
        if self._pool is not None:
            self._pool.shutdown()


def from_thread(pages: AsyncIterator[Sequence[T]], stopped: threading.Event) -> Iterator[T]:
    """What stands on pages that the event loop fetches, for a reader in another thread.

    Call it in the event loop; once `stopped` is set, no further page is asked for.
    """
    loop = asyncio.get_running_loop()

    async def next_page() -> Sequence[T] | None:
        return await anext(pages, None)

    def items() -> Iterator[T]:
        while not stopped.is_set():
            page = asyncio.run_coroutine_threadsafe(next_page(), loop).result()
            if page is None:
                return
            yield from page

    return items()
