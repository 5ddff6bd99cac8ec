"""Notices of many runs that are parked for one cause are few, and count all of them."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

from activities.shared.notifications import NotificationSending
from tests.support.imports.activities import environment
from tests.support.memory.notifications import MemoryNotifications
from tests.support.notifications import an_order
from workers.shared.services.run_notifications import NotificationComposer
from workflows.shared.notifications import (
    ALONE,
    HELD,
    Due,
    Held,
    NotificationGroups,
    NotificationInput,
    NotificationKind,
    NotificationPolicies,
)

COMPOSER = NotificationComposer(NotificationPolicies(), None, None, "default")
WINDOW = HELD.total_seconds()


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def parked(
    number: int, kind: NotificationKind = NotificationKind.PARKED, **fields: object
) -> NotificationInput:
    reason = f"1. ReadFile: acme refuses 'in/{number}.csv': it answered 403"
    order = an_order(f"transfer/{number:064x}/job", kind)
    return order.model_copy(update={"id": f"notice_{kind}_{number}", "reason": reason, **fields})


def sending() -> tuple[NotificationSending, MemoryNotifications, Clock]:
    memory, clock = MemoryNotifications(), Clock()
    made = NotificationSending(
        {"memory": memory}, NotificationPolicies(), COMPOSER.compose, COMPOSER.cause, clock
    )
    return made, memory, clock


async def held(made: NotificationSending, order: NotificationInput) -> timedelta:
    with pytest.raises(ApplicationError, match="held, to be sent as one") as raised:
        await environment().run(made.send, order)
    assert raised.value.next_retry_delay is not None and not raised.value.non_retryable
    return raised.value.next_retry_delay


async def test_a_burst_for_one_cause_is_the_first_notices_and_one_for_all_others() -> None:
    made, memory, clock = sending()
    for number in range(ALONE):
        await environment().run(made.send, parked(number))
    others = [parked(number) for number in range(ALONE, 200)]
    for order in others:
        clock.seconds += 1
        assert await held(made, order) == HELD
    assert len(memory.sent) == ALONE
    clock.seconds = WINDOW + 1
    for order in others:
        await environment().run(made.send, order)
    assert len(memory.sent) == ALONE + 1
    said = memory.sent[others[0].id]
    assert said.title.endswith(f"and {200 - ALONE - 1} more")
    assert f"it answered 403; and {200 - ALONE - 1} more for the same cause" in said.reason


async def test_other_causes_kinds_and_pipelines_are_not_held() -> None:
    made, memory, _ = sending()
    for number in range(ALONE + 1):
        reason = f"1. ReadFile: partner{number} refuses 'a': 403"
        order = parked(number, reason=reason, id=f"partner {number}")
        await environment().run(made.send, order)
    for kind in (NotificationKind.PARKED, NotificationKind.REMINDER):
        for number in range(ALONE):
            await environment().run(made.send, parked(number, kind))
    for number in range(ALONE + 1):
        order = parked(number, workflow_id=f"batch/{number + 1}/1", id=f"batch {number}")
        await environment().run(made.send, order)
    for number in range(ALONE + 1):
        await environment().run(made.send, parked(number, NotificationKind.FAILED))
    assert len(memory.sent) == 2 * (ALONE + 1) + 2 * ALONE + ALONE + 1


def test_what_was_not_sent_is_decided_again() -> None:
    groups = NotificationGroups()
    assert [groups.decide("c", f"{n}", 0) for n in range(ALONE)] == [Due()] * ALONE
    # A retry of one that a channel has not accepted.
    assert groups.decide("c", "0", 1) == Due()
    for number in range(10, 13):
        assert groups.decide("c", f"{number}", 0) == Held(HELD)
    assert groups.decide("c", "10", WINDOW) == Due(2)
    # It could not be sent either: the next one stands for all.
    assert groups.decide("c", "11", WINDOW) == Due(2)
    groups.sent("c", "11")
    assert groups.decide("c", "10", WINDOW) is None
    assert groups.decide("c", "12", WINDOW) is None
    # Later ones are held anew, and after a quiet time the first ones are sent by themselves.
    assert groups.decide("c", "13", WINDOW + 1) == Held(HELD)
    assert groups.decide("c", "14", 10 * WINDOW) == Due()


def test_a_notice_alone_of_those_that_were_held_says_nothing_of_others() -> None:
    groups = NotificationGroups()
    for number in range(ALONE):
        groups.decide("c", f"{number}", 0)
    assert groups.decide("c", "late", 0) == Held(HELD)
    assert groups.decide("c", "late", WINDOW / 2) == Held(HELD / 2)
    assert groups.decide("c", "late", WINDOW) == Due()
