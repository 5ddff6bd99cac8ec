"""Activities of transfers that answer as a test says, for both workflows."""

from typing import Any, Final

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from activities.transfers.archives import ArchiveSteps, Scanning
from activities.transfers.cloud_events import read_event
from activities.transfers.crypto import Checksums, Crypto
from activities.transfers.read_file import FileReading, SourceSettling
from activities.transfers.receipt import JobClosing, Receipts
from activities.transfers.reception import Firing, Planning, Receiving
from activities.transfers.write_file import FileWriting, HttpCalling
from tests.support.scripted import ScriptedActivities
from tests.support.transfers.events import a_job
from workflows.shared.contracts import BlobRef
from workflows.transfers.events import TransferStatus
from workflows.transfers.job_settings import corrected, plan_of
from workflows.transfers.receipts import ReceiptStep, canonical, seal_step
from workflows.transfers.runs import (
    ActionInput,
    ActionResult,
    EventRoute,
    FileEventInput,
    KeptCopy,
    Manifest,
    PlanInput,
    Reception,
    SequencePosition,
    SettleResult,
    StoredReceipt,
    TransferPlan,
)

ACTIVITIES: Final = (
    Receiving,
    Planning,
    JobClosing,
    FileReading,
    FileWriting,
    Scanning,
    Crypto,
    Firing,
    ArchiveSteps,
    Checksums,
    HttpCalling,
    SourceSettling,
    Receipts,
    Dependencies,
    NotificationSending,
)
"""Whatever the two workflows of a transfer call."""


class ScriptedTransfer(ScriptedActivities):
    """Events that go to the queue `jobs`, and actions that succeed, unless it is said otherwise.

    Args:
        routes: What the rules say, one look after the other; the last one stays.
        job: What the settings say.
        turns: Positions in line, one look after the other.
    """

    def __init__(
        self,
        routes: list[EventRoute] | None = None,
        job: Any = None,
        turns: list[SequencePosition] | None = None,
        results: dict[str, Any] | None = None,
        **script: Any,
    ) -> None:
        self.routes = routes or [EventRoute(queue="jobs", rule="1", priority=3)]
        self.job = a_job() if job is None else job
        self.turns = turns or [SequencePosition(position=0)]
        given = {
            "receive": self._receive,
            "compare_job": Reception(status=TransferStatus.ASSIGNED, reason="its job was started"),
            "route": lambda order: self._route(),
            "load_plan": self._plan,
            "take_turn": lambda order: self.turns.pop(0),
            "settle_source": SettleResult(),
            "keep": lambda order: KeptCopy(files=order.files, until="2027-01-01"),
            "receipt": StoredReceipt(blob=BlobRef(name="receipt.json", size=1), steps=1, sha256=""),
        }
        super().__init__(*ACTIVITIES, results={**given, **(results or {})}, **script)
        for name in self.returning(ActionResult):
            self.results.setdefault(name, _done)

    def _route(self) -> EventRoute:
        return self.routes.pop(0) if len(self.routes) > 1 else self.routes[0]

    def _receive(self, order: FileEventInput) -> Reception:
        route = self._route()
        status = TransferStatus.NO_ASSIGNED if route.queue is None else TransferStatus.ASSIGNED
        return Reception(status=status, event=read_event(order.body, order.arrived), route=route)

    def _plan(self, order: PlanInput) -> TransferPlan:
        if order.plan is not None and order.action is not None:
            return corrected(order.plan, order.job.event, order.index, order.action)
        return plan_of(self.job, order.job.event, None, has_files=order.job.resent_from is not None)


def _done(order: ActionInput) -> ActionResult:
    """One file of ten bytes, and a step of the receipt."""
    return ActionResult(
        files=Manifest(files=1, bytes=10, blob=BlobRef(name=f"staging/{order.index}", size=1)),
        step=BlobRef(name=f"step-{order.index}.json", size=1),
        step_sha256=f"{order.index:064x}",
    )


def inline_step(order: ActionInput) -> ActionResult:
    """The same with a step that is no blob."""
    step = seal_step(
        ReceiptStep(
            transfer_id=order.job.transfer_id,
            index=order.index,
            action=order.action.action,
            at=order.job.arrived,
            previous=order.previous,
            sha256="",
        )
    )
    text = canonical(step).decode()
    return _done(order).model_copy(
        update={"step": None, "inline_step": text, "step_sha256": step.sha256}
    )
