"""Jobs of one sequence key wait for each other, and a job can be given to another queue."""

from collections.abc import Callable
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.shared import attributes, policies
from workflows.shared.contracts import Retry
from workflows.shared.errors import WRONG_STATE
from workflows.shared.parking import Answered, Decision, Parking
from workflows.shared.waiting import OnFailure, Waiting
from workflows.transfers.events import TransferStatus, queue_task_queue
from workflows.transfers.job_end import job_status, record
from workflows.transfers.runs import (
    FileJobInput,
    SequenceLockInput,
    SequencePosition,
    TransferAssign,
)
from workflows.transfers.steps import Planning

SETTINGS = "settings"
"""The step before all actions: there is no job for the event, or it cannot be carried out."""


class Reassigned(Exception):
    """A person has named another queue."""


class Assignment:
    """What a person says about the queue of a job that is parked at its settings.

    Args:
        order: Of the job.
        parking: Of the run.
        waiting: Of the run.
    """

    def __init__(self, order: FileJobInput, parking: Parking, waiting: Waiting) -> None:
        self._order, self._parking, self._waiting = order, parking, waiting
        self._step: str | None = None
        self._answer: TransferAssign | None = None

    def asks(self, step: str) -> None:
        """A person is asked at this step."""
        self._step = step

    def check(self) -> None:
        """See that it has no other queue.

        Raises:
            Reassigned: It has.
        """
        self._step = None
        if self._answer is not None:
            raise Reassigned

    def refuse_unless_possible(self) -> None:
        """For validators of updates.

        Raises:
            ApplicationError: It is not parked, or actions have begun.
        """
        self._parking.refuse_unless_waiting()
        if self._step != SETTINGS:
            reason = "its actions have begun: another queue is possible before, while it is parked"
            raise ApplicationError(f"{reason} at `{SETTINGS}`", type=WRONG_STATE)

    def take(self, answer: TransferAssign) -> None:
        """Take the answer; one that comes too late is dropped."""
        if self._parking.waits and self._step == SETTINGS:
            self._answer = answer
            self._parking.answer(Answered.by_person(Decision.RETRY, Retry(by=answer.by)))

    async def carried_on(self) -> NoReturn:
        """Continue on the other queue: the same run, with the workers of that queue.

        Raises:
            ContinueAsNewError: Always.
        """
        answer = self._answer
        assert answer is not None
        order = job_status(
            self._order,
            TransferStatus.ASSIGNED,
            queue=answer.queue,
            reason=answer.reason or f"assigned anew by a person, before to {self._order.queue}",
            by=answer.by,
        )
        await self._waiting.done(lambda: record(order, f"record {order.status}"))
        await workflow.wait_condition(workflow.all_handlers_finished)
        event = self._order.event
        workflow.continue_as_new(
            self._order.model_copy(update={"queue": answer.queue}),
            task_queue=queue_task_queue(answer.queue),
            search_attributes=attributes.at_start(
                "transfers", answer.queue, event.account_id, event.organisation_id
            ),
        )


_POSITIONS_SHOWN: Final = 20
"""A long line must not fill the history."""


class SequenceLock:
    """The place of a run in the line of its key.

    Args:
        order: Of the job.
        waiting: Of the run.
        show: Shows people what it waits for.
    """

    def __init__(
        self, order: FileJobInput, waiting: Waiting, show: Callable[[str | None], None]
    ) -> None:
        self._order, self._waiting, self._show = order, waiting, show
        self.waits: str | None = None
        """What it waits for, in words; None: it does not."""

    async def taken(self, key: str, park: OnFailure) -> None:
        """Wait until those that came before have ended; the end of the job gives the turn back.

        Args:
            key: Of the job.
            park: Asks a person when its place cannot be found out.
        """
        known: SequencePosition | None = None
        shown = 0
        while True:
            turn = await self._waiting.retried(lambda known=known: self._next(key, known), park)
            if not turn.position:
                break
            shown += 1
            known = turn if shown < _POSITIONS_SHOWN else SequencePosition(position=-1)
            self.waits = f"its turn: position {turn.position} of {key!r}, behind {turn.behind}"
            self._show(self.waits)
        self.waits = None
        self._show(None)

    async def _next(self, key: str, known: SequencePosition | None) -> SequencePosition:
        order = SequenceLockInput(
            transfer_id=self._order.transfer_id,
            key=key,
            run=workflow.info().workflow_id,
            arrived=self._order.arrived,
            known=known and known.position,
        )
        return await workflow.execute_activity_method(
            Planning.take_turn, order, summary="wait for its turn", **policies.DEPENDENCY
        )
