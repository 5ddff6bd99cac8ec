"""The notices that runs of every pipeline send."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from tests.replay import (
    batches_cases,
    batches_parked_cases,
    imports_cases,
    outages,
    spreadsheets_cases,
)
from tests.support.imports.scripted import ScriptedImport, done, permanent
from tests.support.notifications import an_order
from tests.support.scripted import ScriptedActivities, scripted, still_down
from tests.support.spreadsheets.scripted import ScriptedSpreadsheet, scripted_undo, transient
from workers.shared.worker_factory import NotificationInterceptor
from workflows.shared.notifications import NotificationKind, NotificationReceipt, delivery_id
from workflows.shared.run_notifications import NoticeDelivery

Handle = WorkflowHandle[Any, Any]


def _all_wanted(workflow_id: str, kind: NotificationKind) -> bool:
    return True


class Notified:
    """A case of a workflow whose people want to know of everything.

    Args:
        case: The case.
        reminds: When a parked run reminds them.
    """

    interceptors = (NotificationInterceptor(_all_wanted),)

    def __init__(self, case: Any, reminds: NotificationReceipt | None = None) -> None:
        case.notices = True
        self._case = case
        self.workflows = [case.workflow, NoticeDelivery]
        if reminds is not None:
            case.script.results["send"] = reminds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._case, name)


@dataclass
class DeliveryCase:
    """One way a delivery can go."""

    script: ScriptedActivities

    workflow = NoticeDelivery

    def activities(self) -> Any:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the run."""
        order = an_order("import/p1/t1", NotificationKind.FAILED)
        return await client.start_workflow(
            NoticeDelivery.run, order, id=delivery_id(order.id), task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nobody has to do anything."""


def _parked_import() -> ScriptedImport:
    return ScriptedImport(failures=[permanent()])


def _unprepared() -> ScriptedImport:
    script = ScriptedImport()
    script.fails["prepare"] = [permanent()]
    return script


def _delivery(*failures: BaseException) -> DeliveryCase:
    return DeliveryCase(scripted(NotificationSending, fails={"send": failures}))


SOON = NotificationReceipt(remind_after=1, remind_every=1)
_RETRY = imports_cases.CASES["parked-and-retried"].act
_SKIP_IMPORT = imports_cases.CASES["parked-and-skipped-by-update"].act
_GIVE_UP = imports_cases.CASES["parked-and-failed-by-update"].act
_SKIP = batches_parked_cases.CASES["parked-then-skipped-by-signal"].act

CASES_OF: Mapping[str, Mapping[str, Any]] = {
    "DocumentImport": {
        "notified-of-the-end": Notified(imports_cases.Case(ScriptedImport())),
        "notified-of-the-end-of-one-step": Notified(
            imports_cases.Case(ScriptedImport(preparations=[done()]))
        ),
        "notified-while-parked-and-retried": Notified(
            imports_cases.Case(_parked_import(), act=_RETRY)
        ),
        "notified-and-reminded-until-it-failed": Notified(
            imports_cases.Case(_parked_import(), park=timedelta(seconds=3)), SOON
        ),
        "notified-that-its-first-step-failed": Notified(
            imports_cases.Case(_unprepared(), act=_SKIP_IMPORT)
        ),
        "notified-that-it-was-given-up": Notified(
            imports_cases.Case(_parked_import(), act=_GIVE_UP)
        ),
    },
    "SpreadsheetImport": {
        "notified-reminded-and-abandoned": Notified(
            spreadsheets_cases.Case(
                ScriptedSpreadsheet(), {"patience": spreadsheets_cases.IN_NO_TIME, "notices": True}
            )
        ),
        "notified-while-parked": Notified(
            spreadsheets_cases.Case(
                ScriptedSpreadsheet(fails={"process": [transient()]}),
                {**spreadsheets_cases.STRAIGHT, "notices": True},
                spreadsheets_cases.retry,
            )
        ),
    },
    "SpreadsheetUndo": {
        "notified-that-it-was-undone": Notified(spreadsheets_cases.UndoCase(scripted_undo())),
    },
    "BatchLifecycle": {
        "notified-while-parked-and-of-the-end": Notified(
            batches_cases.Case(batches_cases.failing("plan"), _SKIP)
        ),
    },
    "Outage": {
        "notified": Notified(
            outages.Case(
                scripted(
                    *(Dependencies, NotificationSending),
                    fails={"wait": [still_down(timedelta(minutes=20))]},
                ),
                timedelta(minutes=21),
            )
        ),
    },
    "NoticeDelivery": {"sent": _delivery(), "not-sent": _delivery(permanent("refused"))},
}
