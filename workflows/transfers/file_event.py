"""One event: is it one, and which queue takes it."""

from datetime import timedelta
from types import MappingProxyType
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.common import Priority, TypedSearchAttributes
from temporalio.common import WorkflowIDReusePolicy as Reuse
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
)
from temporalio.workflow import ParentClosePolicy

from workflows.shared import attributes, policies
from workflows.shared.contracts import MEMO, Answer, Retry
from workflows.shared.errors import KEY_REUSED, TRANSFER_FAILED
from workflows.shared.failures import explain
from workflows.shared.fairness import fairness_key
from workflows.shared.notifications import NextStep, NotificationKind
from workflows.shared.parking import Answered, Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting
from workflows.transfers.events import (
    FILE_EVENT,
    FILE_JOB,
    FileNotice,
    TransferStatus,
    file_of,
    queue_task_queue,
)
from workflows.transfers.runs import (
    EventRoute,
    FileEventInput,
    FileJobInput,
    Reception,
    RouteInput,
    StatusInput,
    TransferAssign,
    TransferView,
    file_job_id,
    transfer_workflow_id,
    unrouted_reason,
)
from workflows.transfers.steps import Receiving

_MEANINGS: Final = MappingProxyType(
    {
        "retry": "look at the routing rules again",
        "assign": """name its queue, with --input '{"queue": "jobs"}'""",
        "skip": "leave it out",
        "fail": "give it up",
    }
)
_SUMMARY: Final = 200
_COMPARED: Final = "transfers-job-compared"
"""Change id: runs before it took the job that has their id for their own."""


class _LeftOut(Exception):
    """A person decided that nothing is to be done, or there was no answer in time."""

    def __init__(self, state: str, reason: str, by: str | None) -> None:
        super().__init__(reason)
        self.state, self.by = state, by


@workflow.defn(name=FILE_EVENT)
class FileEvent(Parkable, retry=Retry, skip=Answer, fail=Answer):
    """check -> find the route -> start the job on its queue.

    What is not an event ends here. What no rule matches waits until a person names a queue, or has
    the rules looked at again.
    """

    @workflow.init
    def __init__(self, order: FileEventInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        timeout = timedelta(seconds=order.park_for_seconds)
        super().__init__(Parking(timeout, self._notices, _MEANINGS))
        self._order = order
        self._event: FileNotice | None = None
        self._route: EventRoute | None = None
        self._assign: TransferAssign | None = None
        self._status: TransferStatus | None = None
        self._reason: str | None = None

    @workflow.run
    async def run(self, order: FileEventInput) -> TransferView:
        """Have an event carried out; the job outlives this run."""
        self._notices.begin()
        try:
            reception = await self._waiting.retried(self._receive, self._park)
            if reception.refused is not None:
                await self._refuse(reception)
            if reception.event is None:
                is_done = reception.status is TransferStatus.SUCCEEDED
                state = "skipped" if is_done else None
                return await self._end(reception.status, reception.reason or "", state=state)
            self._event, self._route = reception.event, reception.route
            queue = await self._assigned()
            met = await self._start_job(reception.event, queue)
        except _LeftOut as left_out:
            return await self._leave_out(left_out)
        if met is not None and met.refused is not None:
            await self._refuse(met)
        more = "" if met is None else f"; {met.reason}"
        return await self._end(TransferStatus.ASSIGNED, f"queue {queue.queue}{more}")

    async def _receive(self) -> Reception:
        return await workflow.execute_local_activity_method(
            Receiving.receive, self._order, summary="check and route", **policies.SHORT
        )

    async def _assigned(self) -> EventRoute:
        """The route, when there is one."""
        while self._route is None or self._route.queue is None:
            reason = (
                "its route is not known" if self._route is None else unrouted_reason(self._route)
            )
            self._status = TransferStatus.NO_ASSIGNED
            self._notices.facts["steps"] = self._ways_on()
            await self._ask("route", reason)
            self._route = await self._waiting.retried(self._routed, self._park)
        return self._route

    def _ways_on(self) -> tuple[NextStep, ...]:
        id = self._order.transfer_id[:12]
        return (
            NextStep(does="name its queue", command=f"docflow transfer assign {id} QUEUE"),
            NextStep(does="add a rule", command="docflow route add --help"),
            NextStep(does="use the new rule", command=f"docflow transfer assign {id}"),
        )

    async def _routed(self) -> EventRoute:
        assert self._event is not None
        assign = self._assign
        order = RouteInput(
            transfer_id=self._order.transfer_id,
            event=self._event,
            digest=self._order.digest,
            at=workflow.now(),
            queue=assign and assign.queue,
            by=assign and assign.by,
            reason=assign and (assign.reason or "assigned by a person"),
        )
        route = await workflow.execute_activity_method(
            Receiving.route, order, summary="find the route", **policies.ANSWER
        )
        self._assign = None
        return route

    async def _park(self, failure: FailureError) -> None:
        await self._ask("route", explain(failure))

    async def _ask(self, step: str, reason: str) -> None:
        """Wait until a person has it tried again.

        Raises:
            _LeftOut: Nothing more is to be done.
        """
        self._reason = reason
        answered = await self._parking.wait(step, reason)
        self._parking.resume()
        self._reason = None
        if answered.decision is Decision.RETRY:
            return
        state = "skipped" if answered.decision is Decision.SKIP else "failed"
        raise _LeftOut(state, answered.final_reason(reason), answered.by)

    async def _start_job(self, event: FileNotice, route: EventRoute) -> Reception | None:
        """Start the job; what is known of one that was started before."""
        assert route.queue is not None
        order = FileJobInput(
            transfer_id=self._order.transfer_id,
            queue=route.queue,
            event=event,
            digest=self._order.digest,
            arrived=self._order.arrived,
            way_in=self._order.way_in,
            park_for_seconds=self._order.park_for_seconds,
            notices=self._order.notices,
        )
        file = file_of(event)
        try:
            await workflow.start_child_workflow(
                FILE_JOB,
                order,
                id=file_job_id(order.transfer_id),
                task_queue=queue_task_queue(route.queue),
                id_reuse_policy=Reuse.ALLOW_DUPLICATE_FAILED_ONLY,
                parent_close_policy=ParentClosePolicy.ABANDON,
                search_attributes=_attributes(order),
                memo={MEMO: order.digest, **({} if file is None else {"filename": file})},
                priority=Priority(
                    priority_key=route.priority,
                    fairness_key=fairness_key(event.organisation_id, event.account_id),
                ),
                static_summary=f"{file or event.subject} for {event.account_id}"[:_SUMMARY],
            )
        except WorkflowAlreadyStartedError:
            workflow.logger.info("%s was started before", file_job_id(order.transfer_id))
            if workflow.patched(_COMPARED):
                return await self._waiting.retried(self._compared, self._park)
        return None

    async def _compared(self) -> Reception:
        """Whether the job that has the id is that of this event."""
        return await workflow.execute_activity_method(
            Receiving.compare_job, self._order, summary="compare the job", **policies.ANSWER
        )

    async def _leave_out(self, left_out: _LeftOut) -> TransferView:
        reason = str(left_out)
        order = StatusInput(
            transfer_id=self._order.transfer_id,
            status=TransferStatus.FAILED,
            at=workflow.now(),
            run=transfer_workflow_id(self._order.transfer_id),
            digest=self._order.digest,
            event=self._event,
            reason=reason[:500],
            by=left_out.by,
        )
        await self._waiting.retried_despite_cancel(
            lambda: self._record(order), self._parking.unrecorded
        )
        if left_out.state == "skipped":
            return await self._end(TransferStatus.FAILED, reason, state=left_out.state)
        view = await self._end(TransferStatus.FAILED, reason, NotificationKind.FAILED)
        raise ApplicationError(reason, view, type=TRANSFER_FAILED, non_retryable=True)

    async def _record(self, order: StatusInput) -> None:
        await workflow.execute_local_activity_method(
            Receiving.record, order, summary=f"record {order.status}", **policies.SHORT
        )

    async def _refuse(self, reception: Reception) -> NoReturn:
        """End without a row: that of this id is of the event that came first."""
        # A start that meets this run by its id compares with the event that has it.
        workflow.upsert_memo({MEMO: reception.digest})
        reason = reception.refused or ""
        view = await self._end(TransferStatus.FAILED, reason, NotificationKind.FAILED)
        raise ApplicationError(reason, view, type=KEY_REUSED, non_retryable=True)

    async def _end(
        self,
        status: TransferStatus,
        reason: str,
        kind: NotificationKind = NotificationKind.ENDED,
        state: str | None = None,
    ) -> TransferView:
        self._status, self._reason = status, reason[:500]
        shown = state or status.lower()
        workflow.upsert_search_attributes(attributes.not_waiting(shown))
        workflow.set_current_details("")
        await self._notices.end(kind, shown, reason)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    def _answered(self) -> TransferView:
        return self.status()

    @workflow.update(name="assign")
    async def assign(self, answer: TransferAssign) -> TransferView:
        """Name the queue of an event that no rule matches."""
        self._assign = answer
        self._parking.answer(Answered.by_person(Decision.RETRY, Retry(by=answer.by)))
        return self.status()

    @assign.validator
    def _validate_assign(self, answer: TransferAssign) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.signal(name="assign")
    def assign_signal(self, answer: TransferAssign) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        if self._parking.waits:
            self._assign = answer
            self._parking.answer(Answered.by_person(Decision.RETRY, Retry(by=answer.by)))

    @workflow.query(name="status")
    def status(self) -> TransferView:
        """Where the event stands."""
        return TransferView(
            transfer_id=self._order.transfer_id,
            status=self._status or TransferStatus.READ_MESSAGE,
            queue=self._route and self._route.queue,
            account_id=self._event and self._event.account_id,
            file=self._event and file_of(self._event),
            reason=(self._parking.reason or self._reason or "")[:500] or None,
            waiting_for=self._waiting.label,
            since=self._parking.since,
        )


def _attributes(order: FileJobInput) -> TypedSearchAttributes:
    event = order.event
    return attributes.at_start("transfers", order.queue, event.account_id, event.organisation_id)
