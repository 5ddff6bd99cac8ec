"""What holds a batch when a step has failed for good, and how people see and answer it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from contracts.batches import (
    BatchAnswer,
    BatchOrder,
    LoaderStatus,
    Phase,
    Purpose,
)
from workflows import attributes
from workflows.batches.infrastructure import Building, LeaveIt, table_of
from workflows.steps import Answered, Decision, Parking, explain

T = TypeVar("T")


class BatchOver(Exception):
    """The batch ends here, for a reason that a person reads."""

    def __init__(self, status: LoaderStatus, reason: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class BatchPauses:
    """The part of a batch's run that people deal with."""

    def __init__(self, order: BatchOrder) -> None:
        before = order.progress
        self._order, self._key, self._times = order, order.key, order.timings
        built = before.resources if before else ()
        self._building = Building(order.key, order.timings, built, self._show)
        self._depths = list(before.depths) if before else []
        self._phase = before.phase if before else Phase.VALIDATING
        self._reason: str | None = None
        self._stopped = False
        self._parking = Parking[BatchAnswer](timedelta(seconds=order.timings.patience))

    @property
    def _is_sweep(self) -> bool:
        return self._order.purpose is Purpose.SWEEP

    def _enter(self, phase: Phase, reason: str | None = None) -> None:
        self._phase, self._reason = phase, reason
        workflow.upsert_search_attributes(attributes.going_on(phase))
        self._show()

    def _show(self) -> None:
        said = f": {self._reason}" if self._reason else ""
        table = table_of(self._building.rows, self._depths)
        workflow.set_current_details(f"**{self._phase}**{said}\n\n{table}")

    async def _do(self, step: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a step; when it has failed for good, a person says whether it is tried again."""
        while True:
            self._go_on()
            try:
                done = await work()
            except FailureError as error:
                if is_cancelled_exception(error):
                    raise
                reason = explain(error)
            else:
                self._go_on()
                return done
            await self._park(step, reason)

    def _go_on(self) -> None:
        """Stop here when the run is to stop: a step that was ending took no notice of it."""
        if self._stopped:
            raise asyncio.CancelledError

    async def _rest(self, seconds: int) -> None:
        # The server fires a timer of no time after a second.
        if seconds:
            await workflow.sleep(timedelta(seconds=seconds))

    async def _leave(self, step: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do a step of the end, which a person may leave out."""
        while True:
            try:
                return await work()
            except FailureError as error:
                reason = explain(error)
            if self._is_sweep or await self._ask(step, reason) is not Decision.RETRY:
                return None

    async def _park(self, step: str, reason: str) -> None:
        """Wait until somebody says that a step is tried again.

        Raises:
            BatchOver: The batch is given up.
        """
        if self._is_sweep or await self._ask(step, reason) is not Decision.RETRY:
            raise BatchOver(LoaderStatus.FAILED, f"{step}: {reason}")

    async def _ask(self, step: str, reason: str) -> Decision:
        before, self._phase = self._phase, Phase.PARKED
        answered = await self._parking.wait(step, reason, _nobody)
        self._phase = before
        self._parking.resume(before)
        self._show()
        return answered.decision

    async def _ask_what_to_leave(self, reason: str) -> None:
        if await self._ask("tear down", reason) is not Decision.RETRY:
            raise LeaveIt

    @workflow.update(name="retry")
    async def retry(self, answer: BatchAnswer) -> None:
        """Try the step that the batch is parked at again."""
        self._answer(Decision.RETRY, answer)

    @workflow.update(name="skip")
    async def skip(self, answer: BatchAnswer) -> None:
        """Go on without a step of the end; before that, the batch is given up."""
        self._answer(Decision.SKIP, answer)

    @workflow.update(name="fail")
    async def fail(self, answer: BatchAnswer) -> None:
        """Give a parked batch up: what was built is removed."""
        self._answer(Decision.FAIL, answer)

    @retry.validator
    def _check_retry(self, answer: BatchAnswer) -> None:
        self._parking.refuse_unless_waiting()

    @skip.validator
    def _check_skip(self, answer: BatchAnswer) -> None:
        self._parking.refuse_unless_waiting()

    @fail.validator
    def _check_fail(self, answer: BatchAnswer) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.signal(name="retry")
    def retry_signal(self, answer: BatchAnswer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._answer(Decision.RETRY, answer or BatchAnswer())

    @workflow.signal(name="skip")
    def skip_signal(self, answer: BatchAnswer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._answer(Decision.SKIP, answer or BatchAnswer())

    @workflow.signal(name="fail")
    def fail_signal(self, answer: BatchAnswer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._answer(Decision.FAIL, answer or BatchAnswer())

    def _answer(self, decision: Decision, answer: BatchAnswer) -> None:
        self._parking.answer(Answered(decision, answer.reason, answer.by))


async def _nobody() -> None:
    """Nothing to tell."""
