"""Every named timeout and retry.

How often a failure is retried depends on its class and is counted in `activities.shared.failures`:
the policies here are unlimited, because a killed worker must not use up a step's attempts.
"""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypedDict, TypeVar, cast

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

_Options = TypeVar("_Options", bound=Mapping[str, Any])


def _constant(options: _Options) -> _Options:
    """Options that no run can change for the others."""
    return cast(_Options, MappingProxyType(options))


BACKOFF: Final = RetryPolicy(
    initial_interval=timedelta(seconds=2),
    backoff_coefficient=4,
    maximum_interval=timedelta(seconds=10),
)
"""2 s, 8 s, then every 10 s: attempts that killed workers used up are waited for as well.

A throttling server's own hint overrides it."""


class LocalStep(TypedDict):
    """Options of a step that runs inside the workflow's own worker."""

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    local_retry_threshold: timedelta
    cancellation_type: ActivityCancellationType


class RemoteStep(TypedDict):
    """Options of a step that any worker may run, for as long as it takes."""

    start_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


SHORT: Final = _constant(
    LocalStep(
        start_to_close_timeout=timedelta(minutes=1),
        retry_policy=BACKOFF,
        # Waiting for longer than this is a timer's work: it must not hold the workflow task open.
        local_retry_threshold=timedelta(seconds=1),
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
)

LONG: Final = _constant(
    RemoteStep(
        start_to_close_timeout=timedelta(hours=24),
        # How long a killed worker goes unnoticed.
        heartbeat_timeout=timedelta(seconds=10),
        retry_policy=BACKOFF,
        # The counts of a cancelled import have to be true: wait for the last chunk.
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
)


ANSWER: Final = _constant(
    RemoteStep(
        # What a person decided is in history before it is written: a local step would run before
        # that, and be forgotten when its worker dies.
        start_to_close_timeout=timedelta(minutes=1),
        heartbeat_timeout=timedelta(seconds=10),
        retry_policy=BACKOFF,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
)


class Asked(TypedDict):
    """Options of what a person waits for."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy


ERRAND: Final = _constant(
    Asked(
        start_to_close_timeout=timedelta(minutes=2),
        # Nobody waits any more: what would be done then might surprise.
        schedule_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=timedelta(seconds=10),
        # Of a worker that was killed.
        retry_policy=RetryPolicy(maximum_attempts=2),
    )
)


class Check(TypedDict):
    """Options of a wait for a dependency."""

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


DEPENDENCY: Final = _constant(
    Check(
        # Of one check; the server repeats it as long as it takes, with no event in the history.
        start_to_close_timeout=timedelta(minutes=1),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=5), maximum_interval=timedelta(minutes=1)
        ),
        # It changes nothing: a run that is cancelled need not wait for it.
        cancellation_type=ActivityCancellationType.TRY_CANCEL,
    )
)


class Notice(TypedDict):
    """Options of a notification."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    retry_policy: RetryPolicy


NOTICE: Final = _constant(
    Notice(
        start_to_close_timeout=timedelta(minutes=1),
        # A reminder that could not be sent by then is followed by the next one.
        schedule_to_close_timeout=timedelta(hours=1),
        retry_policy=BACKOFF,
    )
)

SENDING: Final = _constant(
    Notice(
        start_to_close_timeout=timedelta(minutes=2),
        # The server repeats it meanwhile; a run that is answered does not wait for that.
        schedule_to_close_timeout=timedelta(days=1),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=5), maximum_interval=timedelta(minutes=10)
        ),
    )
)
