"""An import whose every activity is scripted."""

import uuid
from collections.abc import Iterable
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.imports.lifecycle import DeleteImports, ImportLifecycle, UploadImports
from activities.imports.rows import RowImports
from activities.imports.schedules import ScheduleImports
from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from tests.support.scripted import ScriptedActivities
from workflows.imports.findings import naming_unused_fields
from workflows.imports.messages import IMPORT_MESSAGE, ImportMessage
from workflows.imports.runs import (
    Closing,
    Counts,
    Handler,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportPlan,
    Preparation,
)
from workflows.imports.types import REGISTRY
from workflows.shared.contracts import BlobRef, Problem
from workflows.shared.errors import PERMANENT

CLASSES = (
    ImportLifecycle,
    RowImports,
    ScheduleImports,
    DeleteImports,
    UploadImports,
    Dependencies,
    NotificationSending,
)
_HANDLERS = tuple(handler.value.rpartition(".")[2] for handler in Handler)

OUTCOME = HandlerOutcome(
    counts=Counts(created=3, rejected=1),
    problem_count=1,
    problems=(Problem(line=4, column="Code", value="", reason="required"),),
    report=BlobRef(name="reports/p1/t.xlsx", size=6000),
)


def import_message(**fields: Any) -> ImportMessage:
    return IMPORT_MESSAGE.validate_python(
        {
            "document_type": "equipment",
            "task_id": f"t-{uuid.uuid4().hex}",
            "project_id": "p1",
            "blob_name": "uploads/equipment.csv",
            **fields,
        }
    )


class ScriptedImport(ScriptedActivities):
    """Activities of an import.

    Args:
        path: Where the handler runs, `local` or `remote`.
        skip: Why there is nothing to import.
        preparations: What the first step says, one per call, before it says the usual.
        unprepared: So often the first step is to be continued as a remote one.
        failures: Raised by the handler, one per call, before it succeeds.
        outcomes: What the handler returns, one per call; then the usual.
        finish_failures: Raised when a result is recorded, one per call, before it succeeds.
        block: The handler works until it is cancelled.
        block_finish: The first record takes until it is cancelled.
    """

    def __init__(
        self,
        path: str = "local",
        skip: str | None = None,
        preparations: Iterable[Preparation] = (),
        unprepared: int = 0,
        failures: Iterable[BaseException] = (),
        outcomes: Iterable[HandlerOutcome] = (),
        finish_failures: Iterable[BaseException] = (),
        block: bool = False,
        block_finish: bool = False,
    ) -> None:
        self._failures = list(failures)
        self._outcomes = list(outcomes)
        self.prepared: list[ImportMessage] = []
        self.handled: list[HandlerInput] = []
        """Every attempt."""
        self.closed: list[Closing] = []
        """What could be recorded."""
        self.handlers: list[str] = []
        """Names of the handlers' activities, every attempt."""
        preparation = Preparation(skip=skip) if skip else None
        first = [*preparations, *[Preparation(unfinished=True)] * unprepared]
        super().__init__(
            *CLASSES,
            results={
                "prepare": lambda order: (
                    first.pop(0) if first else preparation or _planned(order, path)
                ),
                "finish": self._close,
                **dict.fromkeys(_HANDLERS, lambda work: self._outcome()),
            },
            # The handlers share one list: a run has one of them.
            fails={"finish": finish_failures},
            held={*(_HANDLERS if block else ()), *(("finish",) if block_finish else ())},
        )
        self.fails |= dict.fromkeys(_HANDLERS, self._failures)

    def record(self, name: str, work: Any) -> None:
        """Record what is prepared and handled."""
        if name == "prepare":
            self.prepared.append(work.message)
        if name in _HANDLERS:
            self.handlers.append(f"imports.{name}")
            self.handled.append(work)
        super().record(name, work)

    async def wait(self, name: str) -> None:
        """Hold the record of a result once only."""
        try:
            await super().wait(name)
        finally:
            if name == "finish":
                self.held.discard(name)

    def _close(self, closing: Closing) -> HandlerOutcome:
        self.closed.append(closing)
        outcome = closing.outcome or HandlerOutcome(counts=Counts(created=2))
        return naming_unused_fields(closing.message, outcome)

    def _outcome(self) -> HandlerOutcome:
        return self._outcomes.pop(0) if self._outcomes else OUTCOME


def _planned(order: ImportInput, path: str) -> Preparation:
    facts = REGISTRY[order.message.document_type]
    return Preparation(plan=ImportPlan(facts=facts, path=path))


def planned() -> Preparation:
    """What the first step says of the usual message."""
    return _planned(ImportInput(message=import_message()), "local")


def done() -> Preparation:
    """What the first step says where it has imported a small table."""
    outcome = HandlerOutcome(counts=Counts(created=3), note="Columns not used: 'Colour'.")
    return planned().model_copy(update={"done": True, "outcome": outcome})


def permanent(text: str = "sheet 'Costs' is not in the workbook") -> ApplicationError:
    return ApplicationError(text, type=PERMANENT, non_retryable=True)
