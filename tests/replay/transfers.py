"""Recorded cases of `transfers`, by workflow."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from activities.transfers.receipt import CopyRemoval
from activities.transfers.watches import KeyExpiry
from tests.replay import transfer_clocks
from tests.support.scripted import ScriptedActivities, scripted, unavailable
from tests.support.transfers.events import (
    FIRE,
    READ,
    SCAN,
    WRITE,
    a_job,
    a_job_order,
    an_event,
    an_event_order,
)
from tests.support.transfers.scripted import ScriptedTransfer, inline_step
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.shared.contracts import Answer, Contract, Retry
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import PERMANENT, UNAVAILABLE
from workflows.shared.notifications import NotificationReceipt
from workflows.transfers.events import TransferStatus, queue_task_queue, visit_of
from workflows.transfers.file_event import FileEvent
from workflows.transfers.file_job import FileJob
from workflows.transfers.routes import RouteRemark
from workflows.transfers.runs import (
    ActionResult,
    CopyRetentionInput,
    CopyRetentionResult,
    EventRoute,
    FileJobInput,
    KeyWarning,
    KeyWarnings,
    KeyWarningsInput,
    Manifest,
    Reception,
    SequencePosition,
    TransferAssign,
    TransferRetry,
    file_job_id,
    transfer_workflow_id,
)
from workflows.transfers.scheduled import PartnerKeyWarnings, TransferCopyRetention

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle, ScriptedTransfer], Awaitable[None]]
NO_ROUTE = EventRoute(rules=2, others=(RouteRemark(queue="jobs", rule="1", reason="source is a"),))
TO_JOBS = EventRoute(queue="jobs", rule="1", priority=3)


async def _nothing(handle: Handle, script: ScriptedTransfer) -> None:
    return


async def _parked(handle: Handle, workflow: Any) -> None:
    async def is_parked() -> bool:
        return (await handle.query(workflow.status)).since is not None

    await eventually(is_parked)


def _answers(*answers: tuple[str, Any], workflow: Any = FileJob) -> Act:
    """Answers of a person, each when the run is parked."""

    async def act(handle: Handle, script: ScriptedTransfer) -> None:
        for verb, answer in answers:
            await _parked(handle, workflow)
            await handle.execute_update(verb, answer)

    return act


async def _cancel(handle: Handle, script: ScriptedTransfer) -> None:
    await script.working.wait()
    await handle.execute_update("cancel", Answer(by="ann"))


async def _signal_assign(handle: Handle, script: ScriptedTransfer) -> None:
    await _parked(handle, FileEvent)
    await handle.signal("assign", TransferAssign(queue="jobs", by="ann"))


def _refused(text: str = "no such folder") -> ApplicationError:
    return ApplicationError(text, type=PERMANENT, non_retryable=True)


def _away() -> ApplicationError:
    details = (Dependency.PARTNER.value, 0, "store")
    return ApplicationError("no route to host", *details, type=UNAVAILABLE, non_retryable=True)


@dataclass
class EventCase:
    """One way an event can go; its job is carried out beside it."""

    script: ScriptedTransfer = field(default_factory=ScriptedTransfer)
    act: Act = _nothing
    has_job: bool = False
    """The job that has its id was started before."""
    _jobs: asyncio.Task[None] | None = None

    workflow = FileEvent

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the event, and a worker of its queue."""
        jobs = Worker(
            client,
            task_queue=queue_task_queue("jobs"),
            workflows=[FileJob],
            activities=self.script.activities(),
        )
        self._jobs = asyncio.create_task(jobs.run())
        # Its job is left open: that of another case must not meet it.
        order = an_event_order(an_event(id=f"event-{name}"), notices=True)
        if self.has_job:
            await client.start_workflow(
                FileJob.run,
                a_job_order(an_event(id=f"event-{name}")),
                id=file_job_id(order.transfer_id),
                task_queue="of-no-worker",
                search_attributes=attributes.at_start("transfers", "jobs", "TMS001"),
            )
        return await client.start_workflow(
            FileEvent.run,
            order,
            id=transfer_workflow_id(order.transfer_id),
            task_queue=task_queue,
            memo={"digest": order.digest},
            search_attributes=attributes.at_start("transfers", "event", "TMS001"),
        )

    async def go(self, handle: Handle) -> None:
        """Do what a person does, and wait for the end."""
        assert self._jobs is not None
        await self.act(handle, self.script)
        try:
            await handle.result()
        except WorkflowFailureError:
            return
        finally:
            self._jobs.cancel()
            await asyncio.gather(self._jobs, return_exceptions=True)


@dataclass
class JobCase:
    """One way a job can go."""

    script: ScriptedTransfer = field(default_factory=ScriptedTransfer)
    act: Act = _nothing
    order: FileJobInput = field(default_factory=lambda: a_job_order(notices=True))

    workflow = FileJob

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the job."""
        return await client.start_workflow(
            FileJob.run,
            self.order,
            id=file_job_id(self.order.transfer_id),
            task_queue=task_queue,
            search_attributes=attributes.at_start("transfers", "jobs", "TMS001"),
        )

    async def go(self, handle: Handle) -> None:
        """Do what a person does."""
        await self.act(handle, self.script)


@dataclass
class AssignedCase(JobCase):
    """A job that another queue takes: it continues on the task queue of that one."""

    _client: Client | None = None

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the job."""
        self._client = client
        return await super().start(client, name, task_queue)

    async def go(self, handle: Handle) -> None:
        """Do what a person does, and wait for the end on the other queue."""
        assert self._client is not None
        async with Worker(
            self._client,
            task_queue=queue_task_queue("jobs"),
            workflows=[FileJob],
            activities=self.script.activities(),
        ):
            await super().go(handle)
            await handle.result()


@dataclass
class ScheduledCase:
    """One way a run of a schedule can go."""

    workflow: Any
    order: Contract
    script: ScriptedActivities

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return list(self.script.activities())

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start it."""
        return await client.start_workflow(
            self.workflow.run, self.order, id=name, task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Wait for the end."""
        await handle.result()


def _key_warnings(*found: KeyWarning, fails: int = 0) -> ScheduledCase:
    """A look at the keys of partners."""
    script = scripted(
        KeyExpiry,
        NotificationSending,
        Dependencies,
        results={
            "expiring_keys": lambda order: KeyWarnings(warnings=found[order.skip :][:1]),
            "send": NotificationReceipt(),
        },
        fails={"expiring_keys": [unavailable() for _ in range(fails)]},
    )
    return ScheduledCase(PartnerKeyWarnings, KeyWarningsInput(), script)


def _round_trip() -> FileJobInput:
    """An event that its own job has led to."""
    order = a_job_order(notices=True)
    visited = (visit_of("jobs", "orders", order.event.subject),)
    event = order.event.model_copy(update={"depth": 1, "visited": visited})
    return order.model_copy(update={"event": event})


_EXPIRING = KeyWarning(
    partner="acme",
    key="host key SHA256:abc",
    ends=datetime(2026, 3, 9, tzinfo=UTC),
    step=7,
    sentence="host key SHA256:abc of acme expires on 2026-03-09",
)
_EXPIRED = _EXPIRING.model_copy(update={"partner": "store", "step": 0})
_SETTLED = a_job({**READ, "After": "delete"}, SCAN, WRITE, FIRE, KeepCopyDays=7)
_INFECTED = ActionResult(files=Manifest(files=1, bytes=1), infected="Eicar in orders.csv")
_RETRIES = a_job(retries={"RetryFailureDestination": 2, "RetryFailureDestinationDelay": 1})

CASES_OF: dict[str, dict[str, Any]] = {
    **transfer_clocks.CASES_OF,
    "FileEvent": {
        "happy": EventCase(),
        "garbage": EventCase(
            ScriptedTransfer(
                results={"receive": Reception(status=TransferStatus.GARBAGE, reason="no subject")}
            )
        ),
        "refused": EventCase(
            ScriptedTransfer(
                results={
                    "receive": Reception(
                        status=TransferStatus.SUCCEEDED, refused="another came", digest="d"
                    )
                }
            )
        ),
        "no-route-then-assigned": EventCase(
            ScriptedTransfer([NO_ROUTE, TO_JOBS]),
            _answers(("assign", TransferAssign(queue="jobs", by="ann")), workflow=FileEvent),
        ),
        "no-route-then-assigned-by-signal": EventCase(
            ScriptedTransfer([NO_ROUTE, TO_JOBS]), _signal_assign
        ),
        "no-route-then-rerouted": EventCase(
            ScriptedTransfer([NO_ROUTE, NO_ROUTE, TO_JOBS]),
            _answers(("retry", Retry(by="ann")), ("retry", Retry(by="ann")), workflow=FileEvent),
        ),
        "no-route-then-given-up": EventCase(
            ScriptedTransfer([NO_ROUTE]), _answers(("fail", Answer(by="ann")), workflow=FileEvent)
        ),
        "no-route-then-left-out": EventCase(
            ScriptedTransfer([NO_ROUTE]), _answers(("skip", Answer(by="ann")), workflow=FileEvent)
        ),
        "job-of-another-event": EventCase(
            ScriptedTransfer(
                results={
                    "compare_job": Reception(
                        status=TransferStatus.FAILED, refused="another has its job", digest="d"
                    )
                }
            ),
            has_job=True,
        ),
        "outage": EventCase(ScriptedTransfer(fails={"receive": [unavailable()]})),
    },
    "FileJob": {
        "happy": JobCase(),
        "settled-and-kept": JobCase(ScriptedTransfer(job=_SETTLED)),
        "parked-then-retried-from-action-3": JobCase(
            ScriptedTransfer(fails={"write_file": [_refused()]}),
            _answers(("retry", TransferRetry(action={"Path": "fixed/{name}"}, by="ann"))),
        ),
        "parked-then-left-out": JobCase(
            ScriptedTransfer(fails={"write_file": [_refused()]}),
            _answers(("skip", Answer(by="ann"))),
        ),
        "parked-then-retried-and-recorded": JobCase(
            ScriptedTransfer(fails={"write_file": [_refused(), _refused()]}),
            _answers(("retry", TransferRetry(by="ann")), ("skip", Answer(by="ann"))),
        ),
        "parked-then-given-up": JobCase(
            ScriptedTransfer(fails={"write_file": [_refused()]}),
            _answers(("fail", Answer(by="ann"))),
        ),
        "retried": JobCase(
            ScriptedTransfer(job=_RETRIES, fails={"write_file": [_refused(), _refused()]})
        ),
        "infected": JobCase(ScriptedTransfer(results={"scan": _INFECTED})),
        "loop": JobCase(order=_round_trip()),
        "partner-away": JobCase(ScriptedTransfer(fails={"write_file": [_away()]})),
        "outage": JobCase(
            ScriptedTransfer(
                fails={name: [unavailable()] for name in ("load_plan", "scan", "close")}
            )
        ),
        "sequence": JobCase(
            ScriptedTransfer(
                job=a_job(SequenceKey="ftp/{accountId}"),
                turns=[
                    SequencePosition(position=1, behind="transfer/a/job"),
                    SequencePosition(position=0),
                ],
            )
        ),
        "wrong-settings": JobCase(
            ScriptedTransfer(fails={"load_plan": [_refused("there is no partner acme")]}),
            _answers(("retry", TransferRetry(by="ann"))),
        ),
        "wrong-settings-then-assigned-anew": AssignedCase(
            ScriptedTransfer(fails={"load_plan": [_refused("no job takes it")]}),
            _answers(("assign", TransferAssign(queue="jobs", by="ann"))),
        ),
        "left-out-in-receipt": JobCase(
            ScriptedTransfer(
                job=a_job(READ, SCAN, WRITE, FIRE), fails={"write_file": [_refused()]}
            ),
            _answers(("skip", Answer(by="ann"))),
        ),
        "failed-at-first-action": JobCase(
            ScriptedTransfer(fails={"read_file": [_refused()]}),
            _answers(("fail", Answer(by="ann"))),
        ),
        "inline-receipt": JobCase(ScriptedTransfer(results={"scan": inline_step})),
        "redriven": JobCase(
            order=a_job_order(
                notices=True, redriven_from="5eed" * 16, done_before=((2, "WriteFile"),)
            )
        ),
        "cancelled": JobCase(ScriptedTransfer(held={"scan"}), _cancel),
    },
    "TransferCopyRetention": {
        "removed": ScheduledCase(
            TransferCopyRetention,
            CopyRetentionInput(),
            scripted(CopyRemoval, results={"remove_copies": CopyRetentionResult(removed=2)}),
        ),
    },
    "PartnerKeyWarnings": {
        "none": _key_warnings(),
        "two-pages": _key_warnings(_EXPIRING, _EXPIRED),
        "outage": _key_warnings(_EXPIRING, fails=1),
    },
}
