"""Notices of runs, and what is logged and counted when a run ends."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.workflow import ParentClosePolicy

from workflows.shared import attributes, policies
from workflows.shared.failures import explain, finished_despite_cancel
from workflows.shared.notifications import (
    DELIVERY,
    REASON_CHARACTERS,
    WANTED,
    NotificationInput,
    NotificationKind,
    NotificationReceipt,
    Reminded,
    delivery_id,
    next_reminder,
    notice_id,
)
from workflows.shared.records import DOCUMENTS, DOCUMENTS_DESCRIPTION, IS_DOCUMENT
from workflows.shared.steps import NotificationSending

IsWanted = Callable[[str, NotificationKind], bool]
"""Whether a notice is wanted, by the id of a run; a worker provides it under `WANTED`."""

_PATCH: Final = "notice-of-the-end"


class Notifications:
    """The notices of one run.

    Args:
        enabled: Whether it sends any, as its order says. A patch where a person turns out to be
            needed would not replay: it may follow a local step of an earlier workflow task.

    Attributes:
        facts: What every notice of the run holds: `link`, `about`.
        problem: Why the last notice could not be sent.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.facts: dict[str, Any] = {}
        self.problem: str | None = None
        self._notifies_end = False

    def begin(self) -> None:
        """Decide whether an end that needs no person is notified; before any other step."""
        self._notifies_end = self.enabled and _is_wanted(NotificationKind.ENDED)

    def order(
        self, kind: NotificationKind, state: str, reason: str, **facts: Any
    ) -> NotificationInput:
        """What the run says of itself now; the rest of a long reason is left out."""
        info = workflow.info()
        identity: dict[str, Any] = {
            # The same in every replay, also in that of a run that was reset.
            "id": f"notice_{workflow.uuid4().hex}",
            "kind": kind,
            "workflow_id": info.workflow_id,
            "run_id": info.run_id,
            "at": workflow.now(),
            "state": state,
            "reason": reason[:REASON_CHARACTERS],
        }
        return NotificationInput(**{**identity, **self.facts, **facts})

    async def send(self, order: NotificationInput) -> NotificationReceipt | None:
        """Send a notice, as a task of its own; cancel it when it is no longer needed.

        Returns:
            None when it was not sent.
        """
        try:
            receipt = await send(order)
        except FailureError as error:
            if not is_cancelled_exception(error):
                self.problem = f"the notice `{order.kind}` was not sent: {explain(error)}"
                workflow.logger.warning("%s", self.problem)
            return None
        self.problem = None
        return receipt

    async def end(
        self, kind: NotificationKind, state: str, reason: str, *, once: bool = False, **facts: Any
    ) -> None:
        """Notify people of how the run has ended.

        A run of its own delivers it, which outlives this one; nothing stands in the history of a
        run that ends as it should, unless the policy asks for a notice.

        Args:
            kind: Of the notice.
            state: As people know it.
            reason: Why, in a sentence.
            once: The same end of a later run with this id is not notified again.
            facts: More fields of the notice.
        """
        if not (self._notifies_end if kind is NotificationKind.ENDED else self.enabled):
            return
        order = self.order(kind, state, reason, **facts)
        if once:
            same = notice_id(order.workflow_id, kind, state, reason)
            order = order.model_copy(update={"id": same})
        await self.once(order)

    async def once(self, order: NotificationInput) -> None:
        """Have a run of its own deliver a notice; one that was delivered before is not again."""
        if not self.enabled:
            return
        try:
            await finished_despite_cancel(_begin_delivery(order))
        except WorkflowAlreadyStartedError:
            workflow.logger.info("%s of %s was notified before", order.kind, order.workflow_id)


def _is_wanted(kind: NotificationKind) -> bool:
    """Whether the worker's settings ask for a notice, as they are when the run begins.

    A yes stands in the history as a patch, so that it is the same in every replay, whatever the
    settings are then.
    """
    if workflow.unsafe.is_replaying():
        return workflow.patched(_PATCH)
    ask = cast(Mapping[str, IsWanted], workflow.extern_functions()).get(WANTED)
    is_wanted = ask is not None and ask(workflow.info().workflow_id, kind)
    return is_wanted and workflow.patched(_PATCH)


async def _begin_delivery(order: NotificationInput) -> None:
    await workflow.start_child_workflow(
        DELIVERY,
        order,
        id=delivery_id(order.id),
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        parent_close_policy=ParentClosePolicy.ABANDON,
        static_summary=f"Notice: {order.kind}",
        static_details=f"About `{order.workflow_id}`",
    )


async def send(order: NotificationInput) -> NotificationReceipt:
    """Send a notice; the server repeats it for a day.

    Raises:
        FailureError: It could not be sent.
    """
    return await workflow.execute_activity_method(
        NotificationSending.send, order, summary=order.kind, **policies.SENDING
    )


class Reminders:
    """Notifies people at once that a run waits for them, and again before it gives up.

    Args:
        notices: Of the run.
        compose: Makes the notice of a kind.
        since: When the wait began.
        timeout: How long it lasts.
        show: Called when a notice was sent, or could not be.
    """

    def __init__(
        self,
        notices: Notifications,
        compose: Callable[[NotificationKind], NotificationInput],
        since: datetime,
        timeout: timedelta,
        show: Callable[[], object],
    ) -> None:
        self._notices, self._compose, self._show = notices, compose, show
        self._since, self._timeout = since, timeout
        self._reminded, self._receipt = Reminded(), NotificationReceipt()
        self._sending: asyncio.Task[None] | None = None

    def notify(self, kind: NotificationKind) -> None:
        """Send a notice in the background, in place of one that is still being sent."""
        self.stop()
        self._sending = asyncio.create_task(self._send(kind))

    async def _send(self, kind: NotificationKind) -> None:
        receipt = await self._notices.send(self._compose(kind))
        self._receipt = receipt or self._receipt
        self._show()

    async def until(self, answered: Callable[[], bool]) -> None:
        """Wait for an answer, and remind people of it.

        Raises:
            TimeoutError: None has come in time.
        """
        while not answered():
            receipt = self._receipt
            due = next_reminder(self._timeout, self._reminded, receipt)
            wakes_at = self._since + (self._timeout if due is None else due)
            try:
                await workflow.wait_condition(
                    lambda receipt=receipt: answered() or self._receipt != receipt,
                    timeout=wakes_at - workflow.now(),
                    timeout_summary="parked: waits for a person",
                )
            except TimeoutError:
                if due is None:
                    raise
                passed = workflow.now() - self._since
                self._reminded = Reminded(self._reminded.count + 1, passed)
                self.notify(NotificationKind.REMINDER)

    def stop(self) -> None:
        """Cancel a notice that is still being sent."""
        if self._sending is not None:
            self._sending.cancel()


@workflow.defn(name=DELIVERY)
class NoticeDelivery:
    """Sends one notice, and fails when it could not be sent within a day."""

    @workflow.run
    async def run(self, order: NotificationInput) -> None:
        """Send it."""
        await send(order)


_COUNTS: Final = ("counts", "documents")
"""Fields of results that say what became of rows or documents."""
_UNENDED: Final = ("", "running")
"""Values of `State` that say nothing about how a run has ended."""


class RunEnds(Interceptor):
    """Gives every workflow of a worker its end in the log, and those of documents one in metrics.

    Args:
        is_document: Of a workflow type: its runs stand for documents. Sweeps and outages do not.
    """

    def __init__(self, is_document: Callable[[str], bool]) -> None:
        self._is_document = is_document

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The interceptor of one run."""
        input.unsafe_extern_functions[IS_DOCUMENT] = self._is_document
        return _RunEnd


class _RunEnd(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Run to the end; neither log nor counter repeats it when the run is replayed."""
        try:
            result = await super().execute_workflow(input)
        except (asyncio.CancelledError, FailureError) as error:
            if not is_cancelled_exception(error):
                details = error.details if isinstance(error, ApplicationError) else ()
                _record("failed", next(iter(details), None))
            elif workflow.cancellation_reason() is not None:
                # Else it is not an end: the run leaves the cache.
                _record("cancelled", None)
            raise
        _record(_state_of_completed(), result)
        return result


def _state_of_completed() -> str:
    state = workflow.info().typed_search_attributes.get(attributes.STATE) or ""
    return "completed" if state in _UNENDED else state.lower()


def _record(state: str, result: object) -> None:
    run = workflow.info()
    known = run.typed_search_attributes
    pipeline = known.get(attributes.PIPELINE)
    if pipeline is None:
        return
    kind = known.get(attributes.DOCUMENT_TYPE) or run.workflow_type
    if workflow.extern_functions()[IS_DOCUMENT](run.workflow_type):
        counter = workflow.metric_meter().create_counter(DOCUMENTS, DOCUMENTS_DESCRIPTION)
        counter.add(1, {"pipeline": pipeline, "type": kind, "state": state})
    seconds = (workflow.now() - run.start_time).total_seconds()
    counts = "".join(f", {number:,} {name}" for name, number in _counts(result).items() if number)
    workflow.logger.info("%s %s after %.1f s%s", kind, state, seconds, counts)


def _counts(result: object) -> Mapping[str, int]:
    """What a result counts; nothing where it counts nothing."""
    if not isinstance(result, BaseModel):
        return {}
    found = (getattr(result, name, None) for name in _COUNTS)
    counts = next((each for each in found if isinstance(each, BaseModel)), None)
    if counts is None:
        return {}
    return {name: value for name, value in counts if isinstance(value, int)}
