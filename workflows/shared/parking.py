"""Parking: a run whose step has used up its retries stays open until a person decides."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.shared import attributes
from workflows.shared.contracts import AnyAnswer
from workflows.shared.errors import NOT_PARKED
from workflows.shared.failures import awaited_by, explain, failures_logged, reraise_cancellation
from workflows.shared.notifications import NotificationInput, NotificationKind
from workflows.shared.run_notifications import Notifications, Reminders
from workflows.shared.waiting import Waiting

_UNANNOUNCED: Final = "status row of a parked run not written"


class Decision(StrEnum):
    """What a person, or the clock, decided about a parked run."""

    RETRY = "retry"
    SKIP = "skip"
    FAIL = "fail"


MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        Decision.RETRY.value: "try again",
        Decision.SKIP.value: "leave it out",
        Decision.FAIL.value: "give it up",
    }
)
"""Signals that answer, and what each of them does."""


@dataclass(frozen=True)
class Answered:
    """How a parked run continues."""

    decision: Decision
    reason: str | None = None
    by: str | None = None
    answer: AnyAnswer | None = None
    """As it was given; None: the time for answers is over."""

    @classmethod
    def by_person(cls, decision: Decision, answer: AnyAnswer) -> "Answered":
        """A person's decision."""
        return cls(decision, answer.reason, answer.by, answer)

    @property
    def remark(self) -> str | None:
        """The reason that a person gave, and who it was; None: no person gave one."""
        if self.answer is None or not self.reason:
            return None
        return f"{self.reason} ({self.by})" if self.by else self.reason

    def explain(self, reason: str) -> str:
        """Why a step failed, with the person's remark, or that none answered in time."""
        remark = "not answered in time" if self.answer is None else self.remark
        return reason if remark is None else f"{reason}; {remark}"

    def final_reason(self, reason: str) -> str:
        """Why a run ends here: as `explain` says, or that there was no answer in time."""
        return self.explain(reason) if self.answer is not None else self.reason or reason


async def _announce_nothing() -> None:
    """The default: only Temporal shows that a run is parked."""


async def _announced_or_later(
    announce: Callable[[], Awaitable[object]],
) -> asyncio.Task[None] | None:
    """Announce; what an outage prevents is done by the task that is returned."""
    try:
        await announce()
    except FailureError as error:
        reraise_cancellation(error)
        workflow.logger.warning("%s: %s", _UNANNOUNCED, explain(error))
        if awaited_by(error) is not None:
            return asyncio.create_task(_announce_after_outage(announce))
    return None


async def _announce_after_outage(announce: Callable[[], Awaitable[object]]) -> None:
    with failures_logged(_UNANNOUNCED):
        await Waiting(shown=False).done(announce)


@dataclass
class Parking:
    """Holds a run whose step has failed permanently until a person decides.

    While it waits, the reason and the possible answers stand in the run's current details, and
    the search attributes `State` and `NeedsAttention` show it. People are sent a notice at once,
    and two more at least before the time is over.
    """

    timeout: timedelta
    notices: Notifications
    meanings: Mapping[str, str] = field(default_factory=lambda: MEANINGS)
    """Signals that answer, and what each of them does."""
    reason: str | None = None
    since: datetime | None = None
    _answer: Answered | None = field(default=None, repr=False)

    @property
    def waits(self) -> bool:
        """Whether an answer is awaited and none has come."""
        return self.since is not None and self._answer is None

    def answer(self, answered: Answered) -> None:
        """Take an answer; one that is not awaited is dropped (a signal that came twice)."""
        if self.waits:
            self._answer = answered

    def refuse_unless_waiting(self) -> None:
        """For validators of updates.

        Raises:
            ApplicationError: The run is not parked.
        """
        if not self.waits:
            raise ApplicationError(
                "this run is not parked: there is nothing to decide", type=NOT_PARKED
            )

    async def wait(
        self,
        step: str,
        reason: str,
        announce: Callable[[], Awaitable[object]] = _announce_nothing,
    ) -> Answered:
        """Park until an answer comes or the time is over, which counts as `fail`.

        Args:
            step: The step that has failed.
            reason: Why, in a sentence.
            announce: Shows outside Temporal that the run is parked. The run waits for its answer
                even when that fails; after an outage it is done again.
        """
        self.reason, self.since, self._answer = reason, workflow.now(), None
        workflow.upsert_search_attributes(
            attributes.waiting("parked", self.since, attributes.OPERATORS)
        )
        self._show(step)
        reminders = self._reminders(step) if self.notices.enabled else None
        later: asyncio.Task[None] | None = None
        try:
            if reminders is not None:
                reminders.notify(NotificationKind.PARKED)
            later = await _announced_or_later(announce)
            await self._until_answered(reminders)
        except TimeoutError:
            answered = Answered(
                Decision.FAIL, f"parked for {self.timeout} without an answer: {reason}"
            )
        else:
            assert self._answer is not None
            answered = self._answer
        finally:
            # A run that is cancelled here awaits no answer any more either.
            self.reason = self.since = None
            if reminders is not None:
                reminders.stop()
            if later is not None:
                # It must not overwrite what comes after.
                later.cancel()
                await asyncio.gather(later, return_exceptions=True)
        return answered

    async def _until_answered(self, reminders: Reminders | None) -> None:
        if reminders is not None:
            await reminders.until(lambda: self._answer is not None)
            return
        await workflow.wait_condition(
            lambda: self._answer is not None,
            timeout=self.timeout,
            timeout_summary="parked: waits for a person",
        )

    def _reminders(self, step: str) -> Reminders:
        reason, since = self.reason, self.since
        assert reason is not None and since is not None

        def notice(kind: NotificationKind) -> NotificationInput:
            return self.notices.order(
                kind,
                "parked",
                f"{step}: {reason}",
                waiting_since=since,
                gives_up_at=since + self.timeout,
                answers=tuple(self.meanings),
            )

        return Reminders(
            self.notices, notice, since, self.timeout, lambda: self.waits and self._show(step)
        )

    async def unrecorded(self, failure: FailureError) -> None:
        """Park a run whose work is done and whose record is missing: any answer tries again."""
        await self.wait("record", explain(failure))
        self.resume()

    def resume(self, state: str = "running") -> None:
        """Show that the run continues and needs no answer."""
        workflow.upsert_search_attributes(attributes.not_waiting(state))
        workflow.set_current_details("")

    def _show(self, step: str) -> None:
        workflow.set_current_details(self._details(step))

    def _details(self, step: str) -> str:
        run = workflow.info().workflow_id
        assert self.since is not None
        answers = "".join(
            f"- {meaning}: `temporal workflow signal --workflow-id {run} --name {name}`\n"
            for name, meaning in self.meanings.items()
        )
        problem = f"\n\n{self.notices.problem}" if self.notices.problem else ""
        return (
            f"**Parked** at `{step}` since {self.since:%Y-%m-%d %H:%M} UTC\n\n"
            f"{self.reason}\n\n"
            f"Next step, one of:\n\n{answers}\n"
            f"It fails by itself on {self.since + self.timeout:%Y-%m-%d %H:%M} UTC.{problem}"
        )


AnswerType = type[AnyAnswer]


class Parkable:
    """Handlers of the answers to a parked run, and its parking; nothing else.

    A workflow states which answers it offers, and the contract of each:

        class DocumentImport(Parkable, retry=Retry, skip=Answer, fail=Answer): ...

    Each of them becomes an update, its validator and a twin signal of the same name for
    `temporal workflow signal`, where the contract's defaults count when nothing is sent. The
    updates return what `_answered` returns, and have its type.
    """

    retry: ClassVar[Any]
    skip: ClassVar[Any]
    fail: ClassVar[Any]

    def __init_subclass__(
        cls,
        retry: AnswerType | None = None,
        skip: AnswerType | None = None,
        fail: AnswerType | None = None,
    ) -> None:
        super().__init_subclass__()
        offered = {Decision.RETRY: retry, Decision.SKIP: skip, Decision.FAIL: fail}
        for decision, contract in offered.items():
            if contract is not None:
                cls._offer(decision, contract)

    @classmethod
    def _offer(cls, decision: Decision, contract: AnswerType) -> None:
        """Add the handlers of one answer: Temporal reads a message's type from its handler."""
        answered = cls._answered.__annotations__["return"]
        for handler in cls._handlers(decision, contract, answered, cls.__qualname__):
            setattr(cls, handler.__name__, handler)

    @staticmethod
    @lru_cache(maxsize=256)
    def _handlers(
        decision: Decision, contract: AnswerType, answered: Any, owner: str
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The update and the signal of one answer.

        Cached, because the sandbox makes the class of a workflow anew for every run, and to look
        at the types of its handlers is most of what that costs.
        """

        def validate(self: Parkable, answer: Any) -> None:
            self._parking.refuse_unless_waiting()
            self._validate_answer(decision, answer)

        async def update(self: Parkable, answer: Any) -> Any:
            self._parking.answer(Answered.by_person(decision, answer))
            return self._answered()

        def signal(self: Parkable, answer: Any = None) -> None:
            given = contract() if answer is None else answer
            try:
                validate(self, given)
            except ApplicationError as error:
                workflow.logger.warning("signal %s refused: %s", decision, error.message)
            else:
                self._parking.answer(Answered.by_person(decision, given))

        update.__annotations__ = {"answer": contract, "return": answered}
        validate.__annotations__ = {"answer": contract, "return": None}
        signal.__annotations__ = {"answer": contract | None, "return": None}
        for name, handler in {"": update, "_signal": signal}.items():
            handler.__name__ = f"{decision}{name}"
            handler.__qualname__ = f"{owner}.{handler.__name__}"
        workflow.update(name=decision.value)(update).validator(validate)
        workflow.signal(name=decision.value)(signal)
        for handler in (update, validate, signal):
            # What `inspect.signature` would find each time.
            handler.__signature__ = inspect.signature(handler)
        return update, signal

    def __init__(self, parking: Parking) -> None:
        self._parking = parking

    def _answered(self) -> Any:
        """What an accepted update returns; workflows override it."""

    def _validate_answer(self, decision: Decision, answer: AnyAnswer) -> None:
        """Refuse an answer for more than that the run is not parked; workflows override it.

        Raises:
            ApplicationError: What is wrong with it.
        """
