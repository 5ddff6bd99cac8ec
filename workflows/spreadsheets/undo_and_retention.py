"""What follows an import: taking its rows back, and removing what is no longer kept."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from workflows.shared import attributes, policies
from workflows.shared.errors import PERMANENT, UNDO_REFUSED
from workflows.shared.failures import explain, failure_type, reraise_cancellation
from workflows.shared.notifications import NotificationKind, counted
from workflows.shared.parking import Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.spreadsheets.runs import (
    Answer,
    ExpiredInput,
    ExpiredPage,
    FailedUndo,
    PurgeInput,
    PurgeResult,
    RetentionInput,
    UndoInput,
    UndoResult,
    workflow_id,
)
from workflows.spreadsheets.steps import SpreadsheetRetentionSteps, SpreadsheetUndoSteps

_PARKED_FOR: Final = timedelta(days=30)
_END_RECORDED: Final = "failed-undo-recorded"
_PARKED_SHOWN: Final = "parked-undo-shown"
_FAILURES_PARKED: Final = "permanent-failures-of-undo-parked"


@workflow.defn(name="SpreadsheetUndo")
class SpreadsheetUndo(Parkable, retry=Answer):
    """Newest chunk first; each is undone in one transaction and never twice.

    A step that fails permanently parks the run, which resumes behind the last chunk. However the
    run ends, the undo has a state afterwards.
    """

    @workflow.init
    def __init__(self, order: UndoInput) -> None:
        self._order = order
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        super().__init__(Parking(_PARKED_FOR, self._notices, {"retry": "try again"}))
        self._notices.facts = {"about": {"uuid": order.uuid, "filename": order.filename}}

    @workflow.run
    async def run(self, order: UndoInput) -> UndoResult:
        """Undo the import; one that cannot be undone fails with the reason."""
        try:
            result = await self._waiting.retried(self._undo, self._park)
        except (FailureError, asyncio.CancelledError) as error:
            await self._record_failure(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            reraise_cancellation(error)
            await self._notices.end(NotificationKind.FAILED, "failed", explain(error))
            raise
        workflow.upsert_search_attributes(attributes.not_waiting(result.state))
        await self._notices.end(
            NotificationKind.UNDONE, result.state.replace("_", " ").lower(), counted(result.counts)
        )
        return result

    async def _undo(self) -> UndoResult:
        return await workflow.execute_activity_method(
            SpreadsheetUndoSteps.undo,
            self._order,
            summary=f"undo {self._order.filename}"[:200],
            **policies.LONG,
        )

    async def _record_failure(self, error: BaseException) -> None:
        if not workflow.patched(_END_RECORDED):
            return
        reason = "it was cancelled"
        if isinstance(error, FailureError) and not is_cancelled_exception(error):
            reason = explain(error)
        await self._waiting.retried_despite_cancel(
            lambda: workflow.execute_local_activity_method(
                SpreadsheetUndoSteps.fail_undo,
                self._failed(reason),
                summary="record that the undo has failed",
                **policies.SHORT,
            ),
            self._parking.unrecorded,
        )

    async def _park(self, failure: FailureError) -> None:
        if failure_type(failure) == UNDO_REFUSED:
            raise failure
        if failure_type(failure) == PERMANENT and not workflow.patched(_FAILURES_PARKED):
            raise failure
        reason = explain(failure)
        answered = await self._parking.wait("undo", reason, partial(self._show_parked, reason))
        if answered.decision is not Decision.RETRY:
            raise failure
        by = (answered.by or "operator",)
        retried = (*self._order.retried_by, *by)[-20:]
        self._order = self._order.model_copy(update={"retried_by": retried})
        self._parking.resume()

    async def _show_parked(self, reason: str) -> None:
        if workflow.patched(_PARKED_SHOWN):
            await workflow.execute_local_activity_method(
                SpreadsheetUndoSteps.park_undo,
                self._failed(reason),
                summary="show that the undo is parked",
                **policies.SHORT,
            )

    def _failed(self, reason: str) -> FailedUndo:
        order = self._order
        return FailedUndo(uuid=order.uuid, reason=reason, by=order.by, at=workflow.now())


@workflow.defn(name="SpreadsheetRetention")
class SpreadsheetRetention:
    """Page by page, the oldest first; what one run does not reach is left to the next one."""

    @workflow.run
    async def run(self, order: RetentionInput) -> PurgeResult:
        """Purge what is due; safe to run twice and at any time."""
        waiting = Waiting()
        due = ExpiredInput(order=order, now=workflow.now())
        purged = 0
        while purged < order.most:
            page = await waiting.done(lambda: _expired(due))
            if not page.uuids:
                break
            for uuid in page.waiting:
                await self._cancel_waiting(uuid)
            work = PurgeInput(uuids=page.uuids, now=due.now)
            done = await waiting.done(partial(_purge, work))
            purged += done.purged
            if not done.purged:
                break
        leftovers = await waiting.done(lambda: _purge_leftovers(due))
        return leftovers.model_copy(update={"purged": purged})

    async def _cancel_waiting(self, uuid: str) -> None:
        """Cancel a run that still waits for answers about a file that is to be removed."""
        run = workflow.get_external_workflow_handle(workflow_id(uuid))
        try:
            await run.signal("cancel", Answer(by="retention", reason="no answer for too long"))
        except FailureError as error:
            reraise_cancellation(error)
            # A run that has ended already awaits no answer.
            workflow.logger.info("%s: %s", uuid, explain(error))


async def _expired(due: ExpiredInput) -> ExpiredPage:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.expired, due, summary="what is due", **policies.LONG
    )


async def _purge(work: PurgeInput) -> PurgeResult:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.purge,
        work,
        summary=f"purge {len(work.uuids)} imports",
        **policies.LONG,
    )


async def _purge_leftovers(due: ExpiredInput) -> PurgeResult:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.purge_leftovers, due, summary="leftovers", **policies.LONG
    )
