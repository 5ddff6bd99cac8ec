"""Pauses of a spreadsheet import: for answers, and for steps that have failed permanently."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.shared import attributes, policies
from workflows.shared.errors import (
    INVALID_DOCUMENT,
    TABLE_CHANGED,
    UNREADABLE_DOCUMENT,
    WRONG_STATE,
)
from workflows.shared.failures import explain, failure_type, failures_logged
from workflows.shared.notifications import NotificationInput, NotificationKind
from workflows.shared.parking import Decision
from workflows.spreadsheets import decisions
from workflows.spreadsheets.decisions import Nudge
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import Notice
from workflows.spreadsheets.state import SpreadsheetRun
from workflows.spreadsheets.steps import SpreadsheetNotifications

T = TypeVar("T")

HOPELESS: Final = (UNREADABLE_DOCUMENT, INVALID_DOCUMENT)
"""Failures that no answer can help."""
_CURES: Final = MappingProxyType(
    {TABLE_CHANGED: "or, if the type was changed, cancel this import and upload the file again"}
)
"""What an upload can do beside what its failures say."""


class Failed(Exception):
    """The file cannot be imported, whatever a person answers."""


class Abandoned(Exception):
    """No answer has come for too long."""


class SpreadsheetPauses:
    """Waits for people, reminds them, and parks the run at a step that has failed permanently."""

    def __init__(self, run: SpreadsheetRun) -> None:
        self._run = run
        self._notifying: asyncio.Task[None] | None = None
        self.is_busy: Callable[[], bool] = lambda: False
        """Whether something is in flight that a new history would lose."""

    async def do(self, step: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a step; one that fails permanently is retried when a person asks for it.

        Raises:
            Failed: It cannot be helped, or none answered in time.
        """

        async def attempt() -> T:
            self._run.cancellation.check()
            self._run.step = step
            return await work()

        async def park(failure: FailureError) -> None:
            if failure_type(failure) in HOPELESS:
                raise Failed(explain(failure)) from failure
            await self._park(step, explain(failure, _CURES))

        return await self._run.waiting.retried(attempt, park)

    async def _park(self, step: str, reason: str) -> None:
        parking = self._run.parking
        answered = await parking.wait(step, reason, self._run.record)
        if answered.decision is not Decision.RETRY:
            raise Failed(answered.reason or reason)
        self._run.note_retry(step, answered.by or "operator")
        parking.resume(self._run.now.state)

    async def move(self, state: SpreadsheetState) -> None:
        """Go to another state, and show it."""
        self._run.enter(state)
        workflow.upsert_search_attributes([attributes.STATE.value_set(state)])
        await self.do(f"show {state}", self._run.record)

    async def wait_for_person(
        self, answered: Callable[[], bool], step: str = "wait for a person"
    ) -> None:
        """Wait until a person has answered; notify, remind, escalate and finally give up.

        Args:
            answered: Whether nothing more is awaited.
            step: As people are shown it.

        Raises:
            Abandoned: No answer has come.
        """
        if answered():
            return
        is_new = self._run.now.waiting_since is None
        since = self._run.now.waiting_since or workflow.now()
        if is_new:
            self._run.set(waiting_since=since)
            self._run.touch()
        await self.do(step, self._run.record)
        workflow.upsert_search_attributes(
            attributes.waiting(self._run.now.state, since, self._run.now.assignee)
        )
        if self._run.notices.enabled and is_new:
            self._notify(NotificationKind.NEEDS_YOU)
        while not answered():
            self._show_waiting()
            await self._pause(answered)
            if workflow.info().is_continue_as_new_suggested() and not answered():
                await self._continue_as_new()
        self._stop_notifying()
        self._run.set(waiting_since=None, touched=None)
        workflow.upsert_search_attributes(attributes.not_waiting(self._run.now.state))
        workflow.set_current_details("")

    def _show_waiting(self) -> None:
        now = self._run.now
        assert now.waiting_since is not None
        shown = decisions.details(
            workflow.info().workflow_id,
            now.state,
            now.waiting_since,
            now.assignee,
            # Commands of the terminal take names.
            self._run.missing_fields,
            now.cells,
            now.review if now.in_review else None,
        )
        problem = self._run.notices.problem
        workflow.set_current_details(f"{shown}\n{problem}" if problem else shown)

    async def _pause(self, answered: Callable[[], bool]) -> None:
        """Until an answer, anything else that a person does, or what comes next without one."""
        touched = self._run.now.touched
        nudge, due = decisions.next_nudge(
            self._run.now, self._run.order.patience, warns=self._run.notices.enabled
        )
        try:
            await workflow.wait_condition(
                lambda: answered() or self._run.now.touched != touched,
                timeout=due - workflow.now(),
                timeout_summary=f"waits for {self._run.now.assignee}; next: {nudge}"[:200],
            )
        except TimeoutError:
            await self._nudge(nudge)

    async def _nudge(self, nudge: Nudge) -> None:
        if not self._run.notices.enabled:
            await self._notify_by_step(nudge)
        elif nudge is not Nudge.ABANDONED:
            self._notify(NotificationKind(nudge))
        match nudge:
            case Nudge.REMINDER:
                self._run.set(reminders=self._run.now.reminders + 1)
            case Nudge.ESCALATION:
                self._run.set(escalated=True)
            case Nudge.ABANDONED:
                days = self._run.order.patience.abandon_after / 86_400
                raise Abandoned(f"no answer for {days:g} days")

    def _notify(self, kind: NotificationKind) -> None:
        """Send a notice in the background, in place of one that is still being sent."""
        now = self._run.now
        assert now.waiting_since is not None and now.touched is not None
        review = now.review if now.in_review else None
        wanted = decisions.awaited(now.state, self._run.missing_titles, now.cells, review)
        order = self._run.notices.order(
            kind,
            now.state,
            wanted,
            waiting_since=now.waiting_since,
            gives_up_at=now.touched + timedelta(seconds=self._run.order.patience.abandon_after),
            answers=("cancel",),
            steps=decisions.next_steps(self._run.order.uuid, now.state, review),
            assignee=now.assignee,
            notify=now.notify,
            about={**self._run.notices.facts["about"], "open": wanted},
        )
        self._stop_notifying()
        self._notifying = asyncio.create_task(self._send(order))

    async def _send(self, order: NotificationInput) -> None:
        await self._run.notices.send(order)
        if self._run.now.waiting_since is not None:
            self._show_waiting()

    def _stop_notifying(self) -> None:
        if self._notifying is not None:
            self._notifying.cancel()

    async def _notify_by_step(self, nudge: Nudge) -> None:
        """Send a notice as runs do that began before all pipelines shared their notices."""
        now = self._run.now
        assert now.waiting_since is not None
        notice = Notice(
            kind=nudge,
            uuid=self._run.order.uuid,
            organisation_id=self._run.order.organisation_id,
            import_type=self._run.order.import_type,
            filename=self._run.order.filename,
            state=now.state,
            assignee=now.assignee,
            notify=now.notify,
            waiting_since=now.waiting_since,
            open=decisions.awaited(now.state, self._run.missing_titles, now.cells),
            link=self._run.order.link,
        )
        # A person who could not be notified now is notified next time; the inbox shows it anyway.
        with failures_logged(f"{nudge} not sent"):
            await workflow.execute_activity_method(
                SpreadsheetNotifications.notify, notice, summary=nudge, **policies.NOTICE
            )

    async def _continue_as_new(self) -> None:
        """Start a new history where this one has grown long, with nothing in flight."""
        if self._has_work_in_flight():
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._has_work_in_flight():
            # An answer that was waited for has started it.
            return
        workflow.continue_as_new(args=[self._run.order, self._run.now])

    def _has_work_in_flight(self) -> bool:
        """Whether something is being done whose result a new history would lose."""
        now = self._run.now
        is_staging = now.state is SpreadsheetState.COLUMN_MAPPING and now.staged is None
        is_notifying = self._notifying is not None and not self._notifying.done()
        return is_staging or is_notifying or self.is_busy()


P = ParamSpec("P")


def wrong_state(message: str) -> ApplicationError:
    """A refusal: the run does not wait for this answer."""
    return ApplicationError(message, type=WRONG_STATE, non_retryable=True)


def _for_caller(rule: Callable[P, T]) -> Callable[P, T]:
    @wraps(rule)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return rule(*args, **kwargs)
        except decisions.AnswerRefused as refusal:
            # Without a cause: the failure's message is complete.
            raise ApplicationError(
                str(refusal), *refusal.details, type=refusal.type, non_retryable=True
            ) from None

    return checked


decide_columns: Final = _for_caller(decisions.decide_columns)
refuse_malformed_answer: Final = _for_caller(decisions.refuse_malformed_answer)
refuse_other_version: Final = _for_caller(decisions.refuse_other_version)
refuse_other_state: Final = _for_caller(decisions.refuse_other_state)
refuse_open_fields: Final = _for_caller(decisions.refuse_open_fields)
refuse_open_columns: Final = _for_caller(decisions.refuse_open_columns)
refuse_open_values: Final = _for_caller(decisions.refuse_open_values)
