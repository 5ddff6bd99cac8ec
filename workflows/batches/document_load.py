"""Documents of a batch, from their file to rows in the database: one, or a group of small ones."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NoReturn

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
)

from workflows.batches.loads import (
    STEPS,
    DocumentGroupInput,
    DocumentLoadInput,
    DocumentState,
    GivenUp,
    GiveUp,
    GroupEnd,
    GroupOutcome,
    GroupOutcomes,
    GroupStatus,
    LoadResult,
    LoadStep,
    LoadStepInput,
    StepOutcome,
    message_key,
)
from workflows.batches.names import DocumentId
from workflows.batches.steps import DocumentGroups, DocumentLoads
from workflows.shared import attributes, policies
from workflows.shared.contracts import MEMO, BlobRef
from workflows.shared.errors import DOCUMENT_FAILED, KEY_REUSED, UNAVAILABLE
from workflows.shared.failures import explain, failure_type, reraise_cancellation, stop_if
from workflows.shared.waiting import StepOutages, Waiting, begun_locally, done_remotely

Step = Callable[[Any, LoadStepInput], Awaitable[StepOutcome]]

_LONG: Final[Mapping[LoadStep, Step]] = MappingProxyType(
    {
        LoadStep.DEDUPE: DocumentLoads.dedupe,
        LoadStep.EXTRACT: DocumentLoads.extract,
    }
)
"""They move the document's bytes."""
_SHORT: Final[Mapping[LoadStep, Step]] = MappingProxyType(
    {
        LoadStep.TAGS: DocumentLoads.tags,
        LoadStep.RELATIONS: DocumentLoads.relations,
        LoadStep.ATTACHMENTS: DocumentLoads.attachments,
    }
)
"""They write some rows."""
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)
"""Between two attempts to give a document up; each pause is twice the one before, so that days of
them do not fill the history."""


@workflow.defn(name="DocumentLoad")
class DocumentLoad:
    """dedupe -> extract -> tags -> relations -> attachments, as far as its event asks for them.

    Each step leaves a checkpoint behind, so a run that follows a failed one resumes where that
    stopped. A document that cannot be loaded becomes a dead letter of its batch, and this run
    fails; on the final pass over the dead letters its failure is recorded, and the run completes.
    """

    @workflow.init
    def __init__(self, order: DocumentLoadInput) -> None:
        self._event, self._origin = order.event, order.origin
        self._state = DocumentState.LOADING
        self._step = STEPS[order.event.event_type][0]
        self._source: BlobRef | None = None
        self._done: list[LoadStep] = []
        self._duplicate_of: DocumentId | None = None
        self._reason: str | None = None
        self._waiting = Waiting()
        self._next_pause = FIRST_PAUSE

    @workflow.run
    async def run(self, order: DocumentLoadInput) -> LoadResult:
        """Load the document.

        Raises:
            ApplicationError: `DocumentFailed` when it is a dead letter now; its details are a
                `LoadResult`. `KeyReused` when the document is that of another message.
        """
        try:
            await self._load()
        except FailureError as error:
            reraise_cancellation(error)
            self._stop_when_cancelled()
            if failure_type(error) == KEY_REUSED:
                self._refuse(error)
            await self._give_up(explain(error))
        workflow.upsert_search_attributes(attributes.not_waiting(self._state))
        workflow.set_current_details("")
        return self.status()

    async def _load(self) -> None:
        for step in STEPS[self._event.event_type]:
            self._stop_when_cancelled()
            self._step = step
            self._show()
            outcome = await self._waiting.done(partial(self._do, step))
            if not outcome.resumed:
                self._done.append(step)
            self._source = outcome.source or self._source
            if outcome.duplicate_of is not None:
                self._duplicate_of = outcome.duplicate_of
                self._state = DocumentState.DUPLICATE
                return
            if outcome.superseded:
                self._state = DocumentState.SUPERSEDED
                return
        self._state = DocumentState.LOADED

    async def _do(self, step: LoadStep) -> StepOutcome:
        order = LoadStepInput(
            event=self._event, step=step, source=self._source, origin=self._origin
        )
        summary = f"{step} {self._event.document_id}"
        if step in _LONG:
            return await done_remotely(_LONG[step], order, StepOutcome, summary)
        return await begun_locally(_SHORT[step], order, StepOutcome, summary)

    def _stop_when_cancelled(self) -> None:
        stop_if(workflow.cancellation_reason() is not None)

    def _refuse(self, failure: FailureError) -> NoReturn:
        """End without a dead letter: the message is recorded as rejected."""
        cause = failure.cause if isinstance(failure, ActivityError) else failure
        assert isinstance(cause, ApplicationError)
        # A start that meets this run by its id compares with the message that has the document.
        workflow.upsert_memo({MEMO: cause.details[0]})
        self._reason, self._state = explain(failure), DocumentState.FAILED
        workflow.upsert_search_attributes(attributes.not_waiting(self._state))
        workflow.set_current_details(self._reason)
        raise ApplicationError(self._reason, self.status(), type=KEY_REUSED, non_retryable=True)

    async def _give_up(self, reason: str) -> None:
        """Hand the document over to its batch; without that it would be lost."""
        self._reason = reason
        lost = GiveUp(event=self._event, step=self._step, reason=reason)

        async def record() -> GivenUp:
            return await workflow.execute_local_activity_method(
                DocumentLoads.give_up, lost, summary="give up", **policies.SHORT
            )

        given_up = await self._waiting.retried(record, self._pause)
        self._state = DocumentState.FAILED
        if not given_up.final:
            raise ApplicationError(reason, self.status(), type=DOCUMENT_FAILED, non_retryable=True)

    async def _pause(self, failure: FailureError) -> None:
        self._show(f"It cannot be made a dead letter, trying again: {explain(failure)}")
        await workflow.sleep(self._next_pause)
        self._next_pause = min(2 * self._next_pause, LONGEST_PAUSE)

    def _show(self, problem: str | None = None) -> None:
        lines = [f"`{self._step}` of {self._event.document_id} ({self._event.key})"]
        if self._reason is not None:
            lines.append(f"**Failed**: {self._reason}")
        if problem is not None:
            lines.append(problem)
        workflow.set_current_details("\n\n".join(lines))

    @workflow.query(name="status")
    def status(self) -> LoadResult:
        """Where the document stands."""
        return LoadResult(
            document_id=self._event.document_id,
            state=self._state,
            steps=tuple(self._done),
            duplicate_of=self._duplicate_of,
            reason=self._reason,
            waiting_for=self._waiting.dependency,
        )


FIRST_GROUP_PAUSE: Final = timedelta(seconds=5)
LONGEST_GROUP_PAUSE: Final = timedelta(minutes=10)
"""Between two attempts to load a message of a document that has another load."""


@workflow.defn(name="DocumentGroup")
class DocumentGroup:
    """Loads messages together; what is large, failed or suspect gets a load of its own.

    Its id protects nothing: the checkpoint of each message does, in the transaction of its rows.
    Any number of groups may hold the same message, and the one that comes last finds it loaded.
    """

    @workflow.init
    def __init__(self, order: DocumentGroupInput) -> None:
        self._messages = len(order.loads)
        self._done = 0
        self._single: list[DocumentId] = []
        self._waiting = Waiting()
        self._outages = StepOutages(self._waiting)

    @workflow.run
    async def run(self, order: DocumentGroupInput) -> GroupStatus:
        """Load the messages, or start loads of their own that will."""
        left, pause = order.loads, FIRST_GROUP_PAUSE
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
                pause = min(2 * pause, LONGEST_GROUP_PAUSE)

    async def _outcomes(self, order: DocumentGroupInput) -> Sequence[GroupOutcome]:
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
        self, loads: Sequence[DocumentLoadInput], outcomes: Sequence[GroupOutcome]
    ) -> tuple[Sequence[DocumentLoadInput], Sequence[DocumentLoadInput]]:
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

    async def _start_all(self, loads: Sequence[DocumentLoadInput]) -> Sequence[DocumentLoadInput]:
        """Start loads of their own; those whose document has another one at the moment."""
        started = await asyncio.gather(*map(self._start, loads))
        return [load for load, is_started in zip(loads, started, strict=True) if not is_started]

    async def _start(self, load: DocumentLoadInput) -> bool:
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
