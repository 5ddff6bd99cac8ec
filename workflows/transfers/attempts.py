"""An attempt at an action, and how often it is tried again before a person is asked."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

from contracts.errors import NOT_YET, THROTTLING, TRANSIENT, WORKERS_LOST
from contracts.transfers import Action, ActionOrder, ActionResult, Actions, Backoff, Side
from domain.transfers.job_settings import side_of, verb_of
from workflows import policies
from workflows.failures import failure_type

_UNCOUNTED: Final = frozenset({NOT_YET, THROTTLING})
"""The endpoint asks for a later attempt: that is not a failure."""
_AT_ENDPOINTS: Final = RetryPolicy(
    initial_interval=policies.BACKOFF.initial_interval,
    backoff_coefficient=policies.BACKOFF.backoff_coefficient,
    maximum_interval=policies.BACKOFF.maximum_interval,
    non_retryable_error_types=[TRANSIENT],
)
_FIRST_UNCOUNTED_PAUSE: Final = timedelta(minutes=1)
_LONGEST_UNCOUNTED_PAUSE: Final = timedelta(minutes=30)
"""They double from the first on: an endpoint that throttles for days must not fill the history."""
_LONGEST: Final = timedelta(days=1)


def options_of(action: Action) -> policies.RemoteStep:
    """Of the activity of an action.

    The server passes over crashes, and waits as the endpoint asks; failures of a file are counted
    here, as the settings of the job say.
    """
    if side_of(action) is Side.OWN:
        return policies.LONG
    return {**policies.LONG, "retry_policy": _AT_ENDPOINTS}


async def carried_out(order: ActionOrder) -> ActionResult:
    """Carry out one action: one attempt, as its settings count them."""
    return await workflow.execute_activity(
        verb_of(order.action),
        order,
        result_type=ActionResult,
        summary=f"{order.index + 1}. {order.action.action}",
        **options_of(order.action),
    )


class Attempts:
    """The attempts at one action.

    Args:
        action: The action.
        settings: Of its job.
    """

    def __init__(self, action: Action, settings: Actions) -> None:
        self._backoff = settings.backoff
        side = side_of(action)
        if side is Side.SOURCE:
            self._retries = settings.retry_failure_source
            self._delay = settings.retry_failure_source_delay
        else:
            self._retries = settings.retry_failure_destination
            self._delay = settings.retry_failure_destination_delay
        if side is Side.OWN:
            self._retries = 0
        self._failures = 0
        self._uncounted_pause = _FIRST_UNCOUNTED_PAUSE
        self.next_attempt = ""
        """When the action is tried again, in words."""

    def pause_after(self, failure: FailureError) -> timedelta | None:
        """How long to wait before it is tried again; None: a person is asked."""
        if failure_type(failure) in _UNCOUNTED:
            pause = self._uncounted_pause
            self._uncounted_pause = min(2 * pause, _LONGEST_UNCOUNTED_PAUSE)
            self.next_attempt = f"tried again after {pause}, and not counted"
            return pause
        if failure_type(failure) == WORKERS_LOST or self._failures >= self._retries:
            return None
        self._failures += 1
        seconds = float(self._delay)
        if self._backoff is Backoff.EXPONENTIAL:
            seconds *= 2 ** min(self._failures - 1, 20)
        pause = min(timedelta(seconds=seconds), _LONGEST)
        self.next_attempt = f"retry {self._failures} of {self._retries}"
        return pause
