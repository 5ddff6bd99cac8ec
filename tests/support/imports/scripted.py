"""An import whose every activity is scripted."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from contracts.blobs import BlobRef
from contracts.errors import PERMANENT
from contracts.imports import (
    IMPORT_MESSAGE,
    Closing,
    Counts,
    Handler,
    HandlerInput,
    HandlerOutcome,
    ImportMessage,
    ImportOrder,
    ImportPlan,
    Preparation,
    Problem,
)
from domain.imports.registry import REGISTRY

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


@dataclass
class ScriptedImport:
    """Scripted activities that remember what they were asked."""

    path: str = "local"
    skip: str | None = None
    failures: list[BaseException] = field(default_factory=list[BaseException])
    """Raised by the handler, one per call, before it succeeds."""
    outcomes: list[HandlerOutcome] = field(default_factory=list[HandlerOutcome])
    """What the handler returns, one per call; then the usual."""
    finish_failures: list[BaseException] = field(default_factory=list[BaseException])
    block: bool = False
    """The handler works until it is cancelled."""
    block_finish: bool = False
    """The first record takes until it is cancelled."""
    working: asyncio.Event = field(default_factory=asyncio.Event)
    prepared: list[ImportMessage] = field(default_factory=list[ImportMessage])
    handled: list[HandlerInput] = field(default_factory=list[HandlerInput])
    closed: list[Closing] = field(default_factory=list[Closing])
    handlers: list[str] = field(default_factory=list[str])

    def activities(self) -> list[Callable[..., Any]]:
        @activity.defn(name="imports.prepare")
        async def prepare(order: ImportOrder) -> Preparation:
            self.prepared.append(order.message)
            if self.skip:
                return Preparation(skip=self.skip)
            return Preparation(
                plan=ImportPlan(facts=REGISTRY[order.message.document_type], path=self.path)
            )

        @activity.defn(name="imports.finish")
        async def finish(closing: Closing) -> HandlerOutcome:
            if self.block_finish:
                self.block_finish = False
                self.working.set()
                await asyncio.Event().wait()
            if self.finish_failures:
                raise self.finish_failures.pop(0)
            self.closed.append(closing)
            return closing.outcome or HandlerOutcome(counts=Counts(created=2))

        def handler(name: str) -> Callable[..., Any]:
            @activity.defn(name=name)
            async def handle(work: HandlerInput) -> HandlerOutcome:
                self.handlers.append(name)
                self.handled.append(work)
                if self.failures:
                    raise self.failures.pop(0)
                if self.block:
                    self.working.set()
                    while True:
                        activity.heartbeat()
                        await asyncio.sleep(0.1)
                return self.outcomes.pop(0) if self.outcomes else OUTCOME

            return handle

        return [prepare, finish, *(handler(name.value) for name in Handler)]


def permanent(text: str = "sheet 'Costs' is not in the workbook") -> ApplicationError:
    return ApplicationError(text, type=PERMANENT, non_retryable=True)
