"""What the stories of all pipelines are told with: parking, and answers from people."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from workflows import attributes

Correction = TypeVar("Correction")
T = TypeVar("T")

EXPLANATION_CHARACTERS: Final = 1_500
"""Leaves room in a reason for who decided, and why."""


class Decision(StrEnum):
    """What a person, or the clock, decided about a parked run."""

    RETRY = "retry"
    SKIP = "skip"
    FAIL = "fail"


@dataclass(frozen=True)
class Answered(Generic[Correction]):
    """How a parked run goes on."""

    decision: Decision
    reason: str | None = None
    by: str | None = None
    correction: Correction | None = None


@dataclass
class Parking(Generic[Correction]):
    """Holds a run whose work has used up its retries until somebody decides.

    While it waits, the reason and the possible answers stand in the run's current details, and
    the search attributes `State` and `NeedsAttention` say so.
    """

    patience: timedelta
    choices: Mapping[str, str] = field(
        default_factory=lambda: {
            "retry": "try again",
            "skip": "leave it out",
            "fail": "give it up",
        }
    )
    """Signals that answer, and what each of them does."""
    reason: str | None = None
    since: datetime | None = None
    _answer: Answered[Correction] | None = field(default=None, repr=False)

    @property
    def waits(self) -> bool:
        """Whether an answer is awaited and none has come."""
        return self.since is not None and self._answer is None

    def answer(self, answered: Answered[Correction]) -> None:
        """Take an answer; one that nobody waits for is dropped (a signal that came twice)."""
        if self.waits:
            self._answer = answered

    def refuse_unless_waiting(self) -> None:
        """For validators of updates.

        Raises:
            ApplicationError: The run is not parked.
        """
        if not self.waits:
            raise ApplicationError(
                "this run is not parked: there is nothing to decide", type="NotParked"
            )

    async def wait(
        self, step: str, reason: str, announce: Callable[[], Awaitable[None]]
    ) -> Answered[Correction]:
        """Park until an answer comes or patience ends, which counts as `fail`.

        Args:
            step: The step that could not be done.
            reason: Why, in a sentence.
            announce: Tells the world outside Temporal.
        """
        self.reason, self.since, self._answer = reason, workflow.now(), None
        workflow.upsert_search_attributes(
            attributes.waiting("parked", self.since, attributes.OPERATORS)
        )
        workflow.set_current_details(self._details(step))
        try:
            await announce()
            await workflow.wait_condition(
                lambda: self._answer is not None,
                timeout=self.patience,
                timeout_summary="parked: waits for a person",
            )
        except TimeoutError:
            answered = Answered[Correction](
                Decision.FAIL, f"parked for {self.patience} without an answer: {reason}"
            )
        else:
            assert self._answer is not None
            answered = self._answer
        finally:
            # A run that is cancelled here waits for nobody any more either.
            self.reason = self.since = None
        return answered

    def resume(self, state: str = "running") -> None:
        """Show that the run goes on and needs nobody."""
        workflow.upsert_search_attributes(attributes.going_on(state))
        workflow.set_current_details("")

    def _details(self, step: str) -> str:
        run = workflow.info().workflow_id
        assert self.since is not None
        answers = "".join(
            f"- {meaning}: `temporal workflow signal --workflow-id {run} --name {name}`\n"
            for name, meaning in self.choices.items()
        )
        return (
            f"**Parked** at `{step}` since {self.since:%Y-%m-%d %H:%M} UTC\n\n"
            f"{self.reason}\n\n"
            f"Next step, one of:\n\n{answers}\n"
            f"It fails by itself on {self.since + self.patience:%Y-%m-%d %H:%M} UTC."
        )


def explain(error: FailureError) -> str:
    """What went wrong in a step, in one bounded sentence for a person.

    Failures of remote activities arrive wrapped in `ActivityError`, those of local ones bare.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    said = cause.message if isinstance(cause, FailureError) else str(cause or error)
    return said[:EXPLANATION_CHARACTERS]


def kind_of(error: FailureError) -> str | None:
    """Type of a step's failure: one of `contracts.errors`."""
    cause = error.cause if isinstance(error, ActivityError) else error
    return cause.type if isinstance(cause, ApplicationError) else None


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Finish some work whether or not the run is cancelled meanwhile."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
