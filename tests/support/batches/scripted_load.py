"""A scripted world for the loads of documents."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from contracts.batches import (
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    GivenUp,
    GiveUp,
    LoadStep,
    StepOrder,
    StepOutcome,
)
from contracts.blobs import BlobRef
from contracts.errors import UNREADABLE_DOCUMENT

SOURCE = BlobRef(name="in/plan.pdf", size=9, sha256="ab" * 32, etag="1")
PROCESSED = DocumentProcessed(case_id=7, batch_id=3, document_id="DOC-1", blob_name=SOURCE.name)
RELATIONS = DocumentRelations.model_validate(
    {"case_id": 7, "batch_id": 3, "document_id": "DOC-1", "relations": [{"relatedId": "DOC-2"}]}
)
ATTACHMENTS = DocumentAttachments.model_validate(
    {
        "case_id": 7,
        "batch_id": 3,
        "document_id": "DOC-1",
        "attachments": [{"blobName": "in/photo.jpg", "filename": "photo.jpg"}],
    }
)


def unreadable(message: str = "the file is cut off") -> ApplicationError:
    """What a step says about a document that nobody can read."""
    return ApplicationError(message, type=UNREADABLE_DOCUMENT, non_retryable=True)


@dataclass
class ScriptedLoad:
    """Answers for every step of a load, with checkpoints, and a record of what was asked."""

    duplicate_of: str | None = None
    fails: dict[str, list[Exception]] = field(
        default_factory=lambda: defaultdict[str, list[Exception]](list)
    )
    """What a step raises the next times that it is called."""
    held: set[str] = field(default_factory=set[str])
    """Steps that do not end before they are cancelled."""
    stubborn: set[str] = field(default_factory=set[str])
    """Held steps that end as if nothing were when they are cancelled."""
    fails_when_cancelled: ApplicationError | None = None
    """What a held step raises instead."""
    is_final: bool = False
    done: set[LoadStep] = field(default_factory=set[LoadStep])
    calls: list[str] = field(default_factory=list[str])
    orders: list[StepOrder] = field(default_factory=list[StepOrder])
    given_up: list[GiveUp] = field(default_factory=list[GiveUp])
    working: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a held step has begun."""

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""

        @activity.defn(name="batches.give_up")
        async def give_up(lost: GiveUp) -> GivenUp:
            await self._begin("give_up")
            self.given_up.append(lost)
            return GivenUp(final=self.is_final)

        return [*(self._step(step) for step in LoadStep), give_up]

    def _step(self, step: LoadStep) -> Callable[..., Any]:
        async def take(order: StepOrder) -> StepOutcome:
            self.orders.append(order)
            await self._begin(step)
            resumed = step in self.done
            self.done.add(step)
            if step is not LoadStep.DEDUPE:
                return StepOutcome(resumed=resumed)
            return StepOutcome(source=SOURCE, duplicate_of=self.duplicate_of, resumed=resumed)

        return activity.defn(name=f"batches.{step}")(take)

    async def _begin(self, name: str) -> None:
        self.calls.append(name)
        if self.fails[name]:
            raise self.fails[name].pop(0)
        if name not in self.held:
            return
        self.working.set()
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            if self.fails_when_cancelled is not None:
                raise self.fails_when_cancelled from None
            if name not in self.stubborn:
                raise
