"""One document of a batch, from its file to rows in the database."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from activities.batches.document_load import DocumentLoads
from contracts.batches import (
    STEPS,
    DocumentId,
    DocumentState,
    GivenUp,
    GiveUp,
    LoadOrder,
    LoadResult,
    LoadStep,
    StepOrder,
    StepOutcome,
)
from contracts.blobs import BlobRef
from contracts.errors import DOCUMENT_FAILED, KEY_REUSED
from contracts.origins import MEMO
from workflows import attributes, policies
from workflows.cancellation import stop_if
from workflows.failures import explain, failure_type, reraise_cancellation
from workflows.short_steps import begun_locally, done_remotely
from workflows.waiting import Waiting

Step = Callable[[Any, StepOrder], Awaitable[StepOutcome]]

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
    def __init__(self, order: LoadOrder) -> None:
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
    async def run(self, order: LoadOrder) -> LoadResult:
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
        order = StepOrder(event=self._event, step=step, source=self._source, origin=self._origin)
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
