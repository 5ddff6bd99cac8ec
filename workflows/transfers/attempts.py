"""Attempts at an action, and how far the actions of a job are."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError

from workflows.shared import policies
from workflows.shared.errors import NOT_YET, THROTTLING, TRANSIENT, WORKERS_LOST
from workflows.shared.failures import failure_type
from workflows.transfers.job_settings import partner_of, place_of, side_of, verb_of
from workflows.transfers.runs import (
    ActionDetail,
    ActionDetails,
    ActionInput,
    ActionResult,
    ActionView,
    Manifest,
    TransferPlan,
    TransferRetry,
)
from workflows.transfers.settings import Action, Actions, Backoff, Side

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


async def carried_out(order: ActionInput) -> ActionResult:
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


_NOTE: Final = 150
"""Characters of a note: the run has the whole reason."""


class Progress:
    """The actions of a run, as people see them."""

    def __init__(self) -> None:
        self._views: list[ActionView] = []
        self._details: list[ActionDetail] = []
        self._corrected_by: dict[int, str] = {}
        workflow.set_query_handler("actions", self.details)

    def begin(self, plan: TransferPlan) -> None:
        """The actions of a plan; those that were begun stay as they are."""
        known = self._views
        fresh = [ActionView(action=each.action, state="open") for each in plan.job.actions.list]
        self._views = [
            known[place] if place < len(known) and known[place].state != "open" else view
            for place, view in enumerate(fresh)
        ]
        names, before = dict(enumerate(plan.names)), dict(enumerate(self._details))
        self._details = [
            before.get(place, ActionDetail()).model_copy(
                update={"partner": partner_of(each), "place": place_of(each, names.get(place, {}))}
            )
            for place, each in enumerate(plan.job.actions.list)
        ]

    def running(self, index: int) -> None:
        """An action has begun."""
        self._detail(index, begun=workflow.now(), ended=None)
        self._set(index, state="running", note=None)

    def note(self, index: int, note: str) -> None:
        """It failed, and will be tried again."""
        self._detail(index, failed_tries=self._details[index].failed_tries + 1)
        self._set(index, note=note[:_NOTE])

    def done(self, index: int, result: ActionResult) -> None:
        """It is done."""
        self._detail(index, ended=workflow.now())
        note = "; ".join(filter(None, (result.guarantee, *result.remarks)))[:_NOTE] or None
        files = result.files
        self._set(index, state="done", files=files.files, bytes=files.bytes, note=note)

    def parked(self, index: int, reason: str) -> None:
        """A person is asked."""
        tries = self._details[index].failed_tries + 1
        self._detail(index, failed_tries=tries, ended=workflow.now())
        self._set(index, state="parked", note=reason[:_NOTE])

    def details(self) -> ActionDetails:
        """What else is known of all of them, for the query `actions`."""
        return ActionDetails(actions=tuple(self._details))

    def named(self, index: int | None, reason: str) -> str:
        """A reason with the partner of the action that has failed, where it does not name it."""
        partner = None if index is None else self._details[index].partner
        return reason if partner is None or partner in reason else f"{partner}: {reason}"

    def corrected(self, index: int, given: TransferRetry) -> tuple[str, ...]:
        """A person has changed settings of it, or had all read again; a remark on changes."""
        if given.settings:
            self._corrected_by.clear()
        if not given.action:
            return ()
        if given.by is not None:
            self._corrected_by[index] = given.by
        who = f" by {given.by}" if given.by else ""
        changed = " and ".join(sorted(given.action))
        return (f"{index + 1}. {self._views[index].action}: {changed} changed{who}",)

    def configured_by(self, index: int, plan: TransferPlan) -> str | None:
        """Who answers for the settings of an action."""
        return self._corrected_by.get(index, plan.job.configured_by)

    def skipped(self, index: int, reason: str) -> None:
        """A person has left it out."""
        self._detail(index, ended=workflow.now())
        self._set(index, state="skipped", note=reason[:_NOTE])

    def failed(self, reason: str) -> None:
        """The run has failed at the action that was under way."""
        for index, view in enumerate(self._views):
            if view.state in ("running", "parked"):
                self._set(index, state="failed", note=reason[:_NOTE])
                self._detail(index, ended=workflow.now())

    def views(self, *, waiting: str | None) -> tuple[ActionView, ...]:
        """All of them; the one under way waits where the run does."""
        if waiting is None:
            return tuple(self._views)
        return tuple(
            view.model_copy(update={"state": "waiting"}) if view.state == "running" else view
            for view in self._views
        )

    def text(self, more: str | None) -> str:
        """One line for each."""
        lines = [
            f"{place}. {view.action}: {view.state}" + (f", {view.note}" if view.note else "")
            for place, view in enumerate(self._views, 1)
        ]
        return "\n".join([*lines, *(["", more] if more else [])])

    def sentence(self, files: Manifest) -> str:
        """What was done."""
        done = sum(view.state == "done" for view in self._views)
        return f"{done} actions, {files.files:,} files, {files.bytes:,} bytes"

    def _set(self, index: int, **fields: object) -> None:
        self._views[index] = self._views[index].model_copy(update=fields)

    def _detail(self, index: int, **fields: object) -> None:
        self._details[index] = self._details[index].model_copy(update=fields)
