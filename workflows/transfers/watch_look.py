"""One look of a watch at an endpoint; started by its schedule."""

from temporalio import workflow
from temporalio.exceptions import FailureError

from activities.transfers.watches import Watching
from contracts.notices import NoticeKind, notice_id
from contracts.transfers.watches import WATCH_LOOK, LookFailure, LookOrder, LookResult
from workflows import policies
from workflows.failures import explain, reraise_cancellation
from workflows.notices import Notices
from workflows.waiting import Waiting


@workflow.defn(name=WATCH_LOOK)
class WatchLook:
    """list -> start an event for each new file that is complete.

    An endpoint that is unavailable is waited for; the schedule starts no other look meanwhile. Any
    other failure ends this look, causes one notice a day, and the next look tries again.
    """

    @workflow.run
    async def run(self, order: LookOrder) -> LookResult:
        """Look once."""
        waiting, notices = Waiting(), Notices(order.notices)
        try:
            result = await waiting.done(lambda: _look(order))
        except FailureError as error:
            reraise_cancellation(error)
            problem = f"watch {order.watch.name} cannot look: {explain(error)}"[:500]
            failure = LookFailure(watch=order.watch.name, problem=problem)
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


async def _look(order: LookOrder) -> LookResult:
    return await workflow.execute_activity_method(
        Watching.look, order, summary=f"look at {order.watch.partner}", **policies.LONG
    )


async def _note(failure: LookFailure) -> None:
    await workflow.execute_local_activity_method(
        Watching.note_look, failure, summary="note the failure", **policies.SHORT
    )


async def _notify(notices: Notices, order: LookOrder, sentence: str) -> None:
    """Notify people of a problem, once a day."""
    id = notice_id("watch", order.watch.name, workflow.now().date(), sentence)
    await notices.once(notices.order(NoticeKind.NEEDS_YOU, "problem", sentence, id=id))
