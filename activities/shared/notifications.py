"""Sends notices to people, for runs of every pipeline."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from adapters.ports.errors import PortError, Throttled, Unavailable
from adapters.ports.records import Notifications
from workflows.shared.errors import PERMANENT, TRANSIENT
from workflows.shared.notifications import (
    REASON_CHARACTERS,
    Due,
    Held,
    Notification,
    NotificationGroups,
    NotificationInput,
    NotificationPolicies,
    NotificationReceipt,
)

Compose = Callable[[NotificationInput], Notification]
"""Adds to what a run says of itself what its register and the settings know of it."""
Cause = Callable[[NotificationInput], str | None]
"""What a notice shares with those of other runs, so that many are sent as one; None: nothing."""

AT_ONCE: Final = 2
"""Notices that a process sends at a time: a receiver that is slow must not occupy every worker
slot. The others come back a little later."""
LATER: Final = timedelta(seconds=5)


def _no_cause(order: NotificationInput) -> str | None:
    return None


async def deliver(channels: Mapping[str, Notifications], notice: Notification) -> None:
    """Send a notice through every channel that has not had it from an earlier attempt.

    One that fails does not delay the others. The heartbeat of the activity holds the channels
    that have accepted it, so that another attempt leaves them out.

    Raises:
        ApplicationError: A channel has not accepted it; retryable when another attempt may help.
    """
    accepted: list[str] = [str(name) for name in activity.info().heartbeat_details]
    failures: list[PortError] = []
    for name, channel in channels.items():
        if name in accepted:
            continue
        try:
            await channel.send(notice)
        except PortError as failure:
            failures.append(failure)
        else:
            accepted.append(name)
            activity.heartbeat(*accepted)
    if failures:
        passing = (each for each in failures if isinstance(each, Unavailable))
        raise _as_error(next(passing, failures[0]), failures)


def for_others(notice: Notification, others: int) -> Notification:
    """A notice that stands for others of its cause as well."""
    more = f"and {others:,} more"
    said = f"; {more} for the same cause, of which no notice of their own is sent"
    return notice.model_copy(
        update={
            "title": f"{notice.title} {more}"[:300],
            "reason": f"{notice.reason[: REASON_CHARACTERS - len(said)]}{said}",
        }
    )


def _as_error(first: PortError, every: list[PortError]) -> ApplicationError:
    pause = first.retry_after if isinstance(first, Throttled) else None
    is_passing = isinstance(first, Unavailable)
    return ApplicationError(
        "; ".join(str(each) for each in every)[:1_500],
        type=TRANSIENT if is_passing else PERMANENT,
        non_retryable=not is_passing,
        next_retry_delay=None if pause is None else timedelta(seconds=pause),
    )


class NotificationSending:
    """Sends what the policy of a run's pipeline wants sent; one object for a process.

    Args:
        channels: Ways to reach people, by name.
        policies: Who is sent what.
        compose: Makes the notice.
        cause: What a notice shares with others.
        clock: Seconds.
    """

    def __init__(
        self,
        channels: Mapping[str, Notifications],
        policies: NotificationPolicies,
        compose: Compose,
        cause: Cause = _no_cause,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channels, self._policies, self._compose = channels, policies, compose
        self._cause, self._clock = cause, clock
        self._groups = NotificationGroups()
        self._sending = 0

    @activity.defn(name="notices.send")
    async def send(self, order: NotificationInput) -> NotificationReceipt:
        """Send one notice.

        A second run of the activity sends it under the same id, by which receivers recognise it.

        Raises:
            ApplicationError: A channel has not accepted it, too many are being sent, or it is held
                to be sent as one with others of its cause.
        """
        notice = self._compose(order)
        policy = self._policies.of(notice.pipeline)
        if notice.kind in policy.kinds:
            await self._send_grouped(order, notice)
        return policy.receipt

    async def _send_grouped(self, order: NotificationInput, notice: Notification) -> None:
        cause = self._cause(order)
        if cause is None:
            await self._send(notice)
            return
        match self._groups.decide(cause, order.id, self._clock()):
            case Held(after):
                raise ApplicationError(
                    "held, to be sent as one with others of its cause",
                    type=TRANSIENT,
                    next_retry_delay=after,
                )
            case Due(others):
                await self._send(for_others(notice, others) if others else notice)
                self._groups.sent(cause, order.id)
            case None:
                pass

    async def _send(self, notice: Notification) -> None:
        if self._sending >= AT_ONCE:
            raise ApplicationError(
                "other notices are being sent", type=TRANSIENT, next_retry_delay=LATER
            )
        self._sending += 1
        try:
            await deliver(self._channels, notice)
        finally:
            self._sending -= 1
