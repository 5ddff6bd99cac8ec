"""Small documents of a batch, loaded together."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError

from activities.batches.document_group import DocumentGroups
from contracts.batches import (
    DocumentId,
    GroupEnd,
    GroupOrder,
    GroupOutcome,
    GroupOutcomes,
    GroupStatus,
    LoadOrder,
    message_key,
)
from contracts.errors import UNAVAILABLE
from contracts.origins import MEMO
from workflows import attributes, policies
from workflows.batches.document_load import DocumentLoad
from workflows.cancellation import stop_if
from workflows.failures import explain, reraise_cancellation
from workflows.waiting import StepOutages, Waiting

FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(minutes=10)
"""Between two attempts to load a message of a document that has another load."""


@workflow.defn(name="DocumentGroup")
class DocumentGroup:
    """Loads messages together; what is large, failed or suspect gets a load of its own.

    Its id protects nothing: the checkpoint of each message does, in the transaction of its rows.
    Any number of groups may hold the same message, and the one that comes last finds it loaded.
    """

    @workflow.init
    def __init__(self, order: GroupOrder) -> None:
        self._messages = len(order.loads)
        self._done = 0
        self._single: list[DocumentId] = []
        self._waiting = Waiting()
        self._outages = StepOutages(self._waiting)

    @workflow.run
    async def run(self, order: GroupOrder) -> GroupStatus:
        """Load the messages, or start loads of their own that will."""
        left, pause = order.loads, FIRST_PAUSE
        while True:
            self._stop_when_cancelled()
            outcomes = await self._outcomes(order.model_copy(update={"loads": left}))
            self._done += sum(each.end is GroupEnd.DONE for each in outcomes)
            waited, single = await self._after_outage(left, outcomes)
            occupied = await self._start_all(single)
            left = (*waited, *occupied)
            if not left:
                return self.status()
            if occupied:
                await workflow.sleep(pause, summary="another message of a document is being loaded")
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _outcomes(self, order: GroupOrder) -> Sequence[GroupOutcome]:
        async def load() -> GroupOutcomes:
            return await workflow.execute_activity_method(
                DocumentGroups.load_group,
                order,
                summary=f"load {len(order.loads)} messages of {order.key}",
                **policies.LONG,
            )

        try:
            return (await self._waiting.done(load)).outcomes
        except FailureError as error:
            reraise_cancellation(error)
            reason = explain(error)
            return [
                GroupOutcome(number=number, end=GroupEnd.SINGLE, reason=reason)
                for number in range(len(order.loads))
            ]

    async def _after_outage(
        self, loads: Sequence[LoadOrder], outcomes: Sequence[GroupOutcome]
    ) -> tuple[Sequence[LoadOrder], Sequence[LoadOrder]]:
        """Wait for what did not answer; the messages to try again, and those with their own load.

        What answers every time it is asked is no reason to try any longer: the messages that fail
        by it take loads of their own.
        """
        waited = [loads[each.number] for each in outcomes if each.end is GroupEnd.OUTAGE]
        single = [loads[each.number] for each in outcomes if each.end is GroupEnd.SINGLE]
        failures = [_failure(each) for each in outcomes if each.end is GroupEnd.OUTAGE]
        if not failures:
            return (), single
        if await self._outages.waited_for(failures[0]):
            return waited, single
        return (), [*single, *waited]

    async def _start_all(self, loads: Sequence[LoadOrder]) -> Sequence[LoadOrder]:
        """Start loads of their own; those whose document has another one at the moment."""
        started = await asyncio.gather(*map(self._start, loads))
        return [load for load, is_started in zip(loads, started, strict=True) if not is_started]

    async def _start(self, load: LoadOrder) -> bool:
        self._stop_when_cancelled()
        event = load.event
        try:
            await workflow.start_child_workflow(
                DocumentLoad.run,
                load,
                id=event.workflow_id,
                # The load outlives its group, and is counted by itself.
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                memo={MEMO: load.origin.digest if load.origin else message_key(event)},
                search_attributes=attributes.at_start(
                    "batches", event.event_type, str(event.case_id)
                ),
                static_summary=f"Document {event.document_id} of {event.key}",
            )
        except WorkflowAlreadyStartedError:
            return False
        self._single.append(event.document_id)
        return True

    def _stop_when_cancelled(self) -> None:
        stop_if(workflow.cancellation_reason() is not None)

    @workflow.query(name="status")
    def status(self) -> GroupStatus:
        """Where the group stands."""
        return GroupStatus(
            messages=self._messages,
            done=self._done,
            single=tuple(self._single),
            waiting_for=self._waiting.dependency,
        )


def _failure(outcome: GroupOutcome) -> ApplicationError:
    """The outage that a message met, as a step of the run would have failed by it."""
    awaited = outcome.awaited
    assert awaited is not None
    details = (awaited.dependency.value, awaited.room)
    if awaited.name is not None:
        details = (*details, awaited.name)
    return ApplicationError(outcome.reason or "", *details, type=UNAVAILABLE)
