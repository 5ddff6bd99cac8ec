"""What the clock starts: looks of watches, warnings of keys, removal of kept copies."""

from functools import partial

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.shared import policies
from workflows.shared.failures import explain, reraise_cancellation
from workflows.shared.notifications import NotificationKind, notice_id
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.transfers.runs import (
    CopyRetentionInput,
    CopyRetentionResult,
    KeyExpiryResult,
    KeyWarnings,
    KeyWarningsInput,
)
from workflows.transfers.steps import CopyRemoval, KeyExpiry, Watching
from workflows.transfers.watches import WATCH_LOOK, PollFailure, PollWatchInput, PollWatchResult


@workflow.defn(name=WATCH_LOOK)
class WatchLook:
    """list -> start an event for each new file that is complete.

    An endpoint that is unavailable is waited for; the schedule starts no other look meanwhile. Any
    other failure ends this look, causes one notice a day, and the next look tries again.
    """

    @workflow.run
    async def run(self, order: PollWatchInput) -> PollWatchResult:
        """Look once."""
        waiting, notices = Waiting(), Notifications(order.notices)
        try:
            result = await waiting.done(lambda: _look(order))
        except FailureError as error:
            reraise_cancellation(error)
            problem = f"watch {order.watch.name} cannot look: {explain(error)}"[:500]
            failure = PollFailure(watch=order.watch.name, problem=problem)
            await waiting.done(lambda: _note(failure))
            await _notify(notices, order, problem)
            raise
        for problem in result.problems:
            await _notify(notices, order, f"watch {order.watch.name}: {problem}")
        if result.vanished_unsent:
            names = ", ".join(result.vanished_unsent)
            await _notify(
                notices, order, f"watch {order.watch.name}: gone before they were sent: {names}"
            )
        return result


async def _look(order: PollWatchInput) -> PollWatchResult:
    return await workflow.execute_activity_method(
        Watching.look, order, summary=f"look at {order.watch.partner}", **policies.LONG
    )


async def _note(failure: PollFailure) -> None:
    await workflow.execute_local_activity_method(
        Watching.note_look, failure, summary="note the failure", **policies.SHORT
    )


async def _notify(notices: Notifications, order: PollWatchInput, sentence: str) -> None:
    """Notify people of a problem, once a day."""
    id = notice_id("watch", order.watch.name, workflow.now().date(), sentence)
    await notices.once(notices.order(NotificationKind.NEEDS_YOU, "problem", sentence, id=id))


@workflow.defn(name="PartnerKeyWarnings")
class PartnerKeyWarnings:
    """Sends one notice for each key and step: 30, 14 and 7 days before its end, and after it."""

    @workflow.run
    async def run(self, order: KeyWarningsInput) -> KeyExpiryResult:
        """Look once; notices that were sent before are not sent again."""
        notices = Notifications(order.notices)
        while found := (await Waiting().done(partial(_found, order))).warnings:
            for warning in found:
                id = notice_id(
                    "key", warning.partner, warning.key, warning.ends.date(), warning.step
                )
                await notices.once(
                    notices.order(NotificationKind.NEEDS_YOU, "expiring", warning.sentence, id=id)
                )
            order = order.model_copy(update={"skip": order.skip + len(found)})
        return KeyExpiryResult(keys=order.skip)


async def _found(order: KeyWarningsInput) -> KeyWarnings:
    return await workflow.execute_activity_method(
        KeyExpiry.expiring_keys, order, summary="keys that expire", **policies.LONG
    )


@workflow.defn(name="TransferCopyRetention")
class TransferCopyRetention:
    """Looks once; what it does not come to is found the next day."""

    @workflow.run
    async def run(self, order: CopyRetentionInput) -> CopyRetentionResult:
        """Remove the copies."""
        return await Waiting().done(lambda: _removed(order))


async def _removed(order: CopyRetentionInput) -> CopyRetentionResult:
    return await workflow.execute_activity_method(
        CopyRemoval.remove_copies, order, summary="remove kept copies", **policies.LONG
    )
