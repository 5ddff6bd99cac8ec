"""A job that has done nothing yet is given to another queue."""

from typing import NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from contracts.answers import Retry
from contracts.errors import WRONG_STATE
from contracts.transfers import (
    FileJobOrder,
    TransferAssign,
    TransferStatus,
    queue_task_queue,
)
from workflows import attributes
from workflows.parking import Answered, Decision, Parking
from workflows.transfers.job_record import record, standing
from workflows.waiting import Waiting

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

    def __init__(self, order: FileJobOrder, parking: Parking, waiting: Waiting) -> None:
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
        order = standing(
            self._order,
            TransferStatus.ASSIGNED,
            queue=answer.queue,
            reason=answer.reason or f"assigned anew by a person, before to {self._order.queue}",
            by=answer.by,
        )
        await self._waiting.done(lambda: record(order, f"record {order.status}"))
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            self._order.model_copy(update={"queue": answer.queue}),
            task_queue=queue_task_queue(answer.queue),
            search_attributes=attributes.at_start(
                "transfers", answer.queue, self._order.event.account_id
            ),
        )
