"""Scripted activities of the loads of documents."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.batches.document_load import DocumentLoads
from activities.shared.dependencies import Dependencies
from tests.support.scripted import ScriptedActivities
from workflows.batches.loads import (
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    GivenUp,
    GiveUp,
    LoadStep,
    LoadStepInput,
    StepOutcome,
)
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import KEY_REUSED, UNREADABLE_DOCUMENT

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
    """What a step says about a document that cannot be read."""
    return ApplicationError(message, type=UNREADABLE_DOCUMENT, non_retryable=True)


def refused(digest: str = "first") -> ApplicationError:
    """What a step says about a document that is that of another message."""
    return ApplicationError(
        "DOC-1 is that of another message", digest, type=KEY_REUSED, non_retryable=True
    )


class ScriptedLoad(ScriptedActivities):
    """Every step of a load, with its checkpoint.

    Args:
        duplicate_of: The document that the first step finds this one to be a copy of.
        held: Steps that do not end before they are cancelled.
        stubborn: Held steps that end as if nothing were when they are cancelled.
        fails_when_cancelled: What a held step raises when it is cancelled.
        is_final: A document that is given up has no further try.
        done: Steps that an earlier run has done.
        superseded: A later message has the document.
    """

    def __init__(
        self,
        duplicate_of: str | None = None,
        held: Iterable[str] = (),
        stubborn: Iterable[str] = (),
        fails_when_cancelled: ApplicationError | None = None,
        is_final: bool = False,
        done: Iterable[LoadStep] = (),
        superseded: bool = False,
    ) -> None:
        self.orders: list[LoadStepInput] = []
        self._duplicate_of = duplicate_of
        self._superseded = superseded
        self._stubborn = set(stubborn)
        self._fails_when_cancelled = fails_when_cancelled
        self._done = set(done)
        super().__init__(
            DocumentLoads,
            Dependencies,
            results={
                "give_up": lambda lost: GivenUp(final=is_final),
                **{step: partial(self._take, step) for step in LoadStep},
            },
            held=held,
        )

    @property
    def given_up(self) -> list[GiveUp]:
        """Every attempt to give a document up."""
        return self.received["give_up"]

    def record(self, name: str, work: Any) -> None:
        """Record the orders of all steps in one list."""
        if name not in ("give_up", "wait"):
            self.orders.append(work)
        super().record(name, work)

    async def wait(self, name: str) -> None:
        """End as the test says when a held step is cancelled."""
        try:
            await super().wait(name)
        except asyncio.CancelledError:
            if self._fails_when_cancelled is not None:
                raise self._fails_when_cancelled from None
            if name not in self._stubborn:
                raise

    def _take(self, step: LoadStep, order: LoadStepInput) -> StepOutcome:
        resumed = step in self._done
        self._done.add(step)
        if step is not LoadStep.DEDUPE:
            return StepOutcome(resumed=resumed)
        return StepOutcome(
            source=SOURCE,
            duplicate_of=self._duplicate_of,
            superseded=self._superseded,
            resumed=resumed,
        )
