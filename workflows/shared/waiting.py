"""Waiting: a step that cannot use what docflow itself needs is repeated when that answers again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar, cast

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from workflows.shared import attributes, policies
from workflows.shared.dependencies import (
    OUTAGE,
    OUTAGES,
    PROBLEM,
    SETTINGS,
    WAITING,
    Dependency,
    OutageInput,
    OutageState,
    OutageStatus,
    Recovery,
    WaitInput,
    outage_id,
)
from workflows.shared.failures import awaited_by, explain, reraise_cancellation
from workflows.shared.notifications import NotificationKind
from workflows.shared.run_notifications import Notifications
from workflows.shared.steps import Dependencies

T = TypeVar("T")
OnFailure = Callable[[FailureError], Awaitable[None]]
"""Returns when the step is to be tried again, raises when it is not."""

CONTRADICTIONS: Final = 3
"""So often in a row a step may fail for a dependency that answers."""


@dataclass(frozen=True)
class _Shown:
    """What people saw of a run before it waited."""

    state: str
    waiting_for: str | None
    details: str


@dataclass(frozen=True)
class CurrentWait:
    """What a run waits for."""

    awaited: WaitInput
    since: datetime
    problem: str


class Waiting:
    """The waits of one run for what docflow itself needs, and how people see them.

    Args:
        shown: A wait is the state of the run. False: the run is in another state meanwhile.
        on_change: Called when a wait that is shown begins, and when the last one has ended.
    """

    def __init__(self, *, shown: bool = True, on_change: Callable[[], None] = lambda: None) -> None:
        self._shown = shown
        self._on_change = on_change
        self._awaited: list[WaitInput] = []
        self._current: CurrentWait | None = None
        self._before = _Shown("running", None, "")

    @property
    def dependency(self) -> Dependency | None:
        """What is awaited now."""
        return self._awaited[0].dependency if self._awaited else None

    @property
    def label(self) -> str | None:
        """What is awaited now, as it is called in a sentence."""
        return self._awaited[0].label if self._awaited else None

    @property
    def current(self) -> "CurrentWait | None":
        """The wait that is shown."""
        return self._current

    async def retried(self, work: Callable[[], Awaitable[T]], on_failure: OnFailure) -> T:
        """Do a step until it succeeds; outages are waited for.

        Args:
            work: One attempt, whose own retries are used up when it raises.
            on_failure: Decides about any other failure.
        """
        outages = StepOutages(self)
        while True:
            try:
                return await work()
            except FailureError as error:
                reraise_cancellation(error)
                failure = error
            if not await outages.waited_for(failure):
                await on_failure(failure)

    async def retried_despite_cancel(
        self, work: Callable[[], Awaitable[T]], on_failure: OnFailure
    ) -> T:
        """Do the last step of a run until it succeeds.

        It is too late to stop anything then, and without its record the end would be lost: a
        cancelled attempt is made again, and so is one whose wait for a dependency is cancelled.
        """
        outages = StepOutages(self)
        while True:
            try:
                return await work()
            except FailureError as error:
                if is_cancelled_exception(error):
                    continue
                failure = error
            try:
                waited = await outages.waited_for(failure)
            except (FailureError, asyncio.CancelledError) as error:
                if not is_cancelled_exception(error):
                    raise
                continue
            if not waited:
                await on_failure(failure)

    async def done(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do a step whose failure ends the run, or is the caller's business.

        Raises:
            FailureError: It failed for another reason than an outage.
        """
        return await self.retried(work, _raise)

    async def done_despite_cancel(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do a last step whose failure is the caller's business.

        Raises:
            FailureError: It failed for another reason than an outage or a cancel.
        """
        return await self.retried_despite_cancel(work, _raise)

    async def until_answered(self, awaited: WaitInput, problem: str) -> Recovery:
        """Wait, without limit, and show for what and why."""
        if not self._shown:
            return await _wait(awaited)
        self._show(awaited, problem)
        try:
            return await _wait(awaited)
        finally:
            self._hide(awaited)

    def _show(self, awaited: WaitInput, problem: str) -> None:
        outage = outage_id(awaited.dependency, awaited.name)
        if not self._awaited:
            self._before = _Shown(_state(), _waiting_for(), workflow.get_current_details())
            workflow.upsert_search_attributes(
                [
                    attributes.STATE.value_set(WAITING),
                    attributes.WAITING_FOR.value_set(outage),
                ]
            )
            workflow.set_current_details(
                f"**Waiting** for the {awaited.label} since {workflow.now():%Y-%m-%d %H:%M} "
                f"UTC; it continues by itself\n\n{problem}\n\n"
                f"The outage: `{outage}`"
            )
        self._awaited.append(awaited)
        if self._current is None:
            self._current = CurrentWait(awaited, workflow.now(), problem)
            self._on_change()

    def _hide(self, done: WaitInput) -> None:
        self._awaited.remove(done)
        if not self._awaited:
            self._current = None
            self._on_change()
        if self._awaited or _state() != WAITING:
            return
        before = self._before
        awaited = attributes.WAITING_FOR
        workflow.upsert_search_attributes(
            [
                attributes.STATE.value_set(before.state),
                awaited.value_set(before.waiting_for)
                if before.waiting_for is not None
                else awaited.value_unset(),
            ]
        )
        workflow.set_current_details(before.details)


class StepOutages:
    """The outages that one step meets, and when it fails by its own fault."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._contradictions = 0

    async def waited_for(self, failure: FailureError) -> bool:
        """Wait for the dependency that a step could not use.

        Returns:
            Whether the step is to be done again. False: its failure is not an outage, or the
            dependency has answered every time while the step went on failing.
        """
        awaited = awaited_by(failure)
        if awaited is None:
            return False
        if self._contradictions >= CONTRADICTIONS:
            self._contradictions = 0
            return False
        recovery = await self._waiting.until_answered(awaited, explain(failure))
        self._contradictions = 0 if recovery.was_down else self._contradictions + 1
        return True


async def _wait(awaited: WaitInput) -> Recovery:
    return await workflow.execute_activity_method(
        Dependencies.wait,
        awaited,
        summary=f"wait for the {awaited.label}",
        **policies.DEPENDENCY,
    )


def _state() -> str:
    return workflow.info().typed_search_attributes.get(attributes.STATE) or "running"


def _waiting_for() -> str | None:
    return workflow.info().typed_search_attributes.get(attributes.WAITING_FOR)


async def _raise(failure: FailureError) -> None:
    raise failure


ANNOUNCED_AFTER: Final = timedelta(minutes=2)
"""Shorter outages are not news."""
NEEDS_ATTENTION_AFTER: Final = timedelta(minutes=15)
CHANGES_SHOWN: Final = 20
"""Changes of the problem: one that comes and goes for days must not fill the history."""


@workflow.defn(name=OUTAGE)
class Outage:
    """Says what is down, since when and why; ends when it answers.

    Runs that wait need no answer. This run asks for attention when the outage lasts.
    """

    @workflow.init
    def __init__(self, order: OutageInput) -> None:
        self._order = order
        self._ended: datetime | None = None
        self._notices = Notifications(order.notices)

    @workflow.run
    async def run(self, order: OutageInput) -> OutageStatus:
        """Wait for the end of the outage."""
        self._show(OutageState.OPEN)
        checking = asyncio.create_task(self._wait())
        is_short = await _ends_within(checking, ANNOUNCED_AFTER)
        announcing: asyncio.Task[object] | None = None
        if not is_short:
            workflow.logger.warning("%s", self._sentence)
            if self._notices.enabled:
                begun = self._notices.order(
                    NotificationKind.OUTAGE, "open", self._sentence, waiting_since=order.since
                )
                announcing = asyncio.create_task(self._notices.send(begun))
            if not await _ends_within(checking, NEEDS_ATTENTION_AFTER - ANNOUNCED_AFTER):
                self._ask_operators()
        await checking
        self._ended = workflow.now()
        if announcing is not None:
            announcing.cancel()
        if not is_short:
            lasted = timedelta(seconds=round((self._ended - order.since).total_seconds()))
            over = f"the {order.label} answers again, after {lasted}"
            workflow.logger.warning("%s", over)
            await self._notices.end(NotificationKind.OUTAGE, "over", over)
        workflow.upsert_search_attributes(attributes.not_waiting(OutageState.OVER))
        workflow.set_current_details("")
        return self.status()

    async def _wait(self) -> None:
        """Wait until the dependency answers; another problem meanwhile is shown."""
        changes = 0
        while True:
            known = self._order if changes < CHANGES_SHOWN else None
            found = await workflow.execute_activity_method(
                Dependencies.wait,
                WaitInput(
                    dependency=self._order.dependency,
                    name=self._order.name,
                    room=self._order.room,
                    problem=known and known.problem,
                    settings=known.settings if known else (),
                ),
                summary=f"wait for the {self._order.label}",
                **policies.DEPENDENCY,
            )
            if found.problem is None:
                return
            changes += 1
            self._change(found)

    def _change(self, found: Recovery) -> None:
        self._order = self._order.model_copy(
            update={"problem": found.problem, "settings": found.settings}
        )
        workflow.logger.warning("%s", self._sentence)
        # Status and lists read it there, without a worker.
        workflow.upsert_memo({PROBLEM: found.problem, SETTINGS: list(found.settings)})
        self._show_details()

    def _show(self, state: str) -> None:
        workflow.upsert_search_attributes(
            [
                attributes.PIPELINE.value_set(OUTAGES),
                attributes.DOCUMENT_TYPE.value_set(self._order.dependency),
                *attributes.not_waiting(state),
            ]
        )
        self._show_details()

    def _show_details(self) -> None:
        workflow.set_current_details(
            f"**Outage**: {self._sentence}\n\n"
            "Runs that need it have the state `waiting` and continue by themselves."
        )

    def _ask_operators(self) -> None:
        workflow.logger.error("%s", self._sentence)
        workflow.upsert_search_attributes(
            attributes.waiting(OutageState.OPEN, self._order.since, attributes.OPERATORS)
        )

    @property
    def _sentence(self) -> str:
        order = self._order
        text = (
            f"the {order.label} cannot be used since {order.since:%Y-%m-%d %H:%M} UTC: "
            f"{order.problem}"
        )
        if not order.settings:
            return text
        return f"{text}; this is not an outage but a setting: check {' and '.join(order.settings)}"

    @workflow.query(name="status")
    def status(self) -> OutageStatus:
        """What is down, since when and why."""
        return OutageStatus(
            dependency=self._order.dependency,
            name=self._order.name,
            since=self._order.since,
            problem=self._order.problem,
            settings=self._order.settings,
            ended=self._ended,
        )


async def _ends_within(checking: asyncio.Task[None], time: timedelta) -> bool:
    try:
        await workflow.wait_condition(checking.done, timeout=time, timeout_summary="outage lasts")
    except TimeoutError:
        return False
    return True


class Outcome(Protocol):
    """The result of a step that may hand over."""

    @property
    def unfinished(self) -> bool:
        """It has had its time: run the same activity as a remote one."""
        ...


R = TypeVar("R", bound=Outcome)


async def begun_locally(step: Any, order: Any, result_type: type[R], summary: str) -> R:
    """Run an activity as a local one, and as a remote one when that hands over.

    Args:
        step: The activity: a method, or its name.
        order: Its input.
        result_type: Of its result.
        summary: For people.
    """
    outcome = cast(
        R,
        await workflow.execute_local_activity(
            step, order, result_type=result_type, summary=summary, **policies.SHORT
        ),
    )
    if not outcome.unfinished:
        return outcome
    return await done_remotely(step, order, result_type, summary)


async def done_remotely(step: Any, order: Any, result_type: type[R], summary: str) -> R:
    """Run an activity as a heartbeating one, on whichever worker is free."""
    return cast(
        R,
        await workflow.execute_activity(
            step, order, result_type=result_type, summary=summary, **policies.LONG
        ),
    )
