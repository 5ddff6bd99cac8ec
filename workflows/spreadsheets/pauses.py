"""The pauses of a spreadsheet import: waiting for answers, and for steps that could not be done."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from activities.spreadsheets.notices import SpreadsheetNotices
from contracts.errors import INVALID_DOCUMENT, UNREADABLE_DOCUMENT
from contracts.spreadsheets import NEXT, Notice, SpreadsheetState
from domain.spreadsheets import decisions
from domain.spreadsheets.decisions import Nudge
from workflows import attributes, policies
from workflows.spreadsheets.messages import SpreadsheetMessages
from workflows.steps import Decision, explain, kind_of

T = TypeVar("T")

HOPELESS: Final = (UNREADABLE_DOCUMENT, INVALID_DOCUMENT)
"""Failures that nobody's answer can help."""


class Failed(Exception):
    """The file cannot be imported, whatever anybody answers."""


class Abandoned(Exception):
    """Nobody has answered for too long."""


class SpreadsheetPauses(SpreadsheetMessages):
    """An import that waits for people, reminds them, and parks what it cannot do."""

    async def _do(self, step: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a step; one that cannot be done waits for somebody to say `retry`."""
        while True:
            self._begin(step)
            try:
                return await work()
            except FailureError as error:
                if is_cancelled_exception(error):
                    raise
                if kind_of(error) in HOPELESS:
                    raise Failed(explain(error)) from error
                await self._park(step, explain(error))

    def _begin(self, step: str) -> None:
        # A wish to stop that came while a step was ending must not start the next one.
        if self._stopped is not None:
            raise asyncio.CancelledError
        self._step = step

    async def _park(self, step: str, reason: str) -> None:
        answered = await self._parking.wait(step, reason, self._announce_parked)
        if answered.decision is not Decision.RETRY:
            raise Failed(answered.reason or reason)
        self._parking.resume(self._now.state)

    async def _announce_parked(self) -> None:
        try:
            await self._record()
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # The run waits whether or not the status row can say so.
            workflow.logger.warning("status row of a parked run not written: %s", explain(error))

    async def _move(self, state: SpreadsheetState) -> None:
        assert state in NEXT[self._now.state], f"{self._now.state} -> {state}"
        self._set(state=state)
        workflow.upsert_search_attributes([attributes.STATE.value_set(state)])
        await self._do(f"show {state}", self._record)

    async def _await_person(self, answered: Callable[[], bool]) -> None:
        """Wait until somebody has answered; remind, escalate and finally give up."""
        if answered():
            return
        since = self._now.waiting_since or workflow.now()
        if self._now.waiting_since is None:
            self._set(waiting_since=since)
            self._touch()
        await self._do("wait for a person", self._record)
        workflow.upsert_search_attributes(
            attributes.waiting(self._now.state, since, self._now.assignee)
        )
        while not answered():
            self._show_waiting()
            await self._pause(answered)
            if workflow.info().is_continue_as_new_suggested() and not answered():
                await self._begin_anew()
        self._set(waiting_since=None, touched=None)
        workflow.upsert_search_attributes(attributes.going_on(self._now.state))
        workflow.set_current_details("")

    def _show_waiting(self) -> None:
        now = self._now
        assert now.waiting_since is not None
        workflow.set_current_details(
            decisions.details(
                workflow.info().workflow_id,
                now.state,
                now.waiting_since,
                now.assignee,
                self._missing,
                now.cells,
            )
        )

    async def _pause(self, answered: Callable[[], bool]) -> None:
        """Until an answer, anything else that somebody does, or what comes next without one."""
        touched = self._now.touched
        nudge, due = decisions.next_nudge(self._now, self._order.patience)
        try:
            await workflow.wait_condition(
                lambda: answered() or self._now.touched != touched,
                timeout=due - workflow.now(),
                timeout_summary=f"waits for {self._now.assignee}; next: {nudge}"[:200],
            )
        except TimeoutError:
            await self._nudge(nudge)

    async def _nudge(self, nudge: Nudge) -> None:
        await self._notify(nudge)
        match nudge:
            case Nudge.REMINDER:
                self._set(reminders=self._now.reminders + 1)
            case Nudge.ESCALATION:
                self._set(escalated=True)
            case Nudge.ABANDONED:
                days = self._order.patience.abandon_after / 86_400
                raise Abandoned(f"nobody has answered for {days:g} days")

    async def _notify(self, nudge: Nudge) -> None:
        now = self._now
        assert now.waiting_since is not None
        notice = Notice(
            kind=nudge,
            uuid=self._order.uuid,
            organisation_id=self._order.organisation_id,
            import_type=self._order.import_type,
            filename=self._order.filename,
            state=now.state,
            assignee=now.assignee,
            notify=now.notify,
            waiting_since=now.waiting_since,
            open=decisions.awaited(now.state, self._missing, now.cells),
            link=self._order.link,
        )
        try:
            await workflow.execute_activity_method(
                SpreadsheetNotices.notify, notice, summary=nudge, **policies.NOTICE
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # Whoever could not be told now is told next time; the inbox shows it all along.
            workflow.logger.warning("%s not sent: %s", nudge, explain(error))

    async def _begin_anew(self) -> None:
        """Start a new history where this one has grown long, with nothing under way."""
        if self._now.state is SpreadsheetState.COLUMN_MAPPING and self._now.staged is None:
            return
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(args=[self._order, self._now])
