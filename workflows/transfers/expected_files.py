"""Expected files: the check of one expectation, and what is missing, late or too much."""

from datetime import timedelta
from types import MappingProxyType
from typing import Final

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
)
from temporalio.workflow import ParentClosePolicy

from workflows.shared import attributes, policies
from workflows.shared.contracts import Answer
from workflows.shared.failures import explain, reraise_cancellation
from workflows.shared.notifications import NotificationKind, notice_id
from workflows.shared.parking import Answered, Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.transfers.steps import Expecting
from workflows.transfers.watches import (
    EXPECTED_CHECK,
    EXPECTED_FILES,
    ExpectationCheckInput,
    ExpectedDay,
    ExpectedDays,
    ExpectedResult,
    ExpectedState,
    GapInput,
    GapView,
    gap_id,
)

_MEANINGS: Final = MappingProxyType({"skip": "close it: nothing more is expected"})
_ARRIVED: Final = "arrived"
_LATE_WAITS: Final = "late-files-wait"
"""Before, files that came late caused a notice alone."""


@workflow.defn(name=EXPECTED_CHECK)
class ExpectedFilesCheck:
    """judge the days -> begin or close the runs about gaps -> record; started by a schedule.

    Nothing is recorded before the notices were sent: a check that was broken off is made again.
    """

    @workflow.run
    async def run(self, order: ExpectationCheckInput) -> ExpectedResult:
        """Check once."""
        waiting = Waiting()
        try:
            result = await waiting.done(lambda: _check(order))
        except FailureError as error:
            reraise_cancellation(error)
            await _notify(order, f"{order.expectation.name} cannot be checked: {explain(error)}")
            raise
        for gap in result.gaps:
            await _begin(gap)
        for day in result.arrived:
            await _close(day)
        if result.days:
            await waiting.done(lambda: _record(result.days))
        return result


async def _notify(order: ExpectationCheckInput, sentence: str) -> None:
    notices = Notifications(order.notices)
    id = notice_id("expected", order.expectation.name, workflow.now().date(), sentence)
    await notices.once(notices.order(NotificationKind.NEEDS_YOU, "problem", sentence, id=id))


async def _check(order: ExpectationCheckInput) -> ExpectedResult:
    return await workflow.execute_local_activity_method(
        Expecting.check_expected, order, summary="judge the days", **policies.SHORT
    )


async def _record(days: tuple[ExpectedDay, ...]) -> None:
    await workflow.execute_local_activity_method(
        Expecting.record_expected, ExpectedDays(days=days), summary="record", **policies.SHORT
    )


async def _begin(gap: GapInput) -> None:
    day = gap.day
    try:
        await workflow.start_child_workflow(
            EXPECTED_FILES,
            gap,
            id=gap_id(day.name, day.day, day.state),
            # One gap causes one notice, also when a person has closed it.
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=ParentClosePolicy.ABANDON,
            search_attributes=attributes.at_start("transfers", "expected", day.name),
            static_summary=gap.sentence[:200],
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.info("%s %s is known", day.name, day.day)


async def _close(day: ExpectedDay) -> None:
    """Signal the run about missing files that they have come, unless it was closed."""
    run = gap_id(day.name, day.day, ExpectedState.MISSING)
    try:
        await workflow.get_external_workflow_handle(run).signal(_ARRIVED, day)
    except ApplicationError as error:
        workflow.logger.info("%s is over: %s", run, error.message)


@workflow.defn(name=EXPECTED_FILES)
class ExpectedFiles(Parkable, skip=Answer):
    """One gap: it waits in the inbox until its files come, or a person closes it.

    Files that came late wait there until a person has seen that they did.
    """

    @workflow.init
    def __init__(self, order: GapInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        timeout = timedelta(seconds=order.park_for_seconds)
        super().__init__(Parking(timeout, self._notices, _MEANINGS))
        self._day, self._sentence = order.day, order.sentence
        self._has_arrived = False

    @workflow.run
    async def run(self, order: GapInput) -> GapView:
        """Notify people, and wait."""
        is_late = order.day.state is ExpectedState.LATE
        if is_late and not workflow.patched(_LATE_WAITS):
            id = notice_id("expected", self._day.name, self._day.day, self._day.state)
            await self._notices.once(
                self._notices.order(NotificationKind.NEEDS_YOU, "late", self._sentence, id=id)
            )
        elif not self._has_arrived:
            await self._wait()
        self._parking.resume(self._day.state.value)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    async def _wait(self) -> None:
        answered = await self._parking.wait(self._day.state.value, self._sentence)
        if self._has_arrived or answered.answer is None:
            # Without an answer it stays in the record as it is.
            return
        if self._day.state is ExpectedState.LATE:
            # The files are there: what comes next on this day is judged as before.
            return
        closed = {"state": ExpectedState.CLOSED, "by": answered.by}
        self._day = self._day.model_copy(update=closed)
        await self._waiting.retried_despite_cancel(
            lambda: _record((self._day,)), self._parking.unrecorded
        )

    @workflow.signal(name=_ARRIVED)
    def arrived(self, day: ExpectedDay) -> None:
        """The files have come."""
        self._day, self._has_arrived = day, True
        self._parking.answer(Answered(Decision.SKIP, "the files have come"))

    def _answered(self) -> GapView:
        return self.status()

    @workflow.query(name="status")
    def status(self) -> GapView:
        """Where it stands."""
        return GapView(day=self._day, sentence=self._sentence, since=self._parking.since)
