"""Documents of a batch, from their message to rows in the database."""

from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, StringConstraints, TypeAdapter

from contracts.base import Contract, WireContract, built_when_used
from contracts.batches.names import BatchKey, DocumentId, Id
from contracts.blobs import BlobName, BlobRef
from contracts.dependencies import Dependency
from contracts.origins import Origin, digest_of

RELATIONS_PER_MESSAGE: Final = 15_000
"""More than fit into a message of 256 KB."""
ATTACHMENTS_PER_MESSAGE: Final = 10_000
"""More than fit into one."""
TAGS_PER_DOCUMENT: Final = 100
FAMILY_DEPTH: Final = 8
"""Files within files that become documents."""
UNKNOWN_FIELDS: Final = 20
"""How many unknown fields of a message are named."""
UNKNOWN_CHARACTERS: Final = 64
_SHORT: Final = 16
"""Characters of a message's key in the id of its load."""

Filename = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
Reason = Annotated[str, StringConstraints(max_length=2000)]


class RelationKind(StrEnum):
    """How one document belongs to another."""

    ATTACHMENT = "attachment"
    REPLY = "reply"
    FAMILY = "family"
    VERSION = "version"
    RELATED = "related"


class Relation(WireContract):
    """The document of the message belongs to another."""

    related_id: DocumentId
    kind: RelationKind = RelationKind.RELATED


class AttachedFile(WireContract):
    """A file that belongs to a document."""

    blob_name: BlobName
    filename: Filename


class FoundIn(WireContract):
    """Where a document was found that its sender did not announce; docflow says so itself."""

    parent_id: DocumentId
    """The document that holds it, or that it belongs to."""
    family_id: DocumentId
    """The one that was sent."""
    depth: Annotated[int, Field(ge=1, le=FAMILY_DEPTH)] = 1
    """Documents around it."""


class _DocumentEvent(WireContract):
    case_id: Id
    batch_id: Id
    document_id: DocumentId
    unknown_fields: tuple[Annotated[str, Field(max_length=UNKNOWN_CHARACTERS)], ...] = Field(
        default=(), max_length=UNKNOWN_FIELDS
    )
    """Fields of the message that docflow does not use; the notes of the document name them."""

    @property
    def key(self) -> BatchKey:
        """The batch that it belongs to."""
        return BatchKey(case_id=self.case_id, batch_id=self.batch_id)


class DocumentProcessed(_DocumentEvent):
    """A document's file is in the blob store."""

    event_type: Literal["DOCUMENT_PROCESSED"] = "DOCUMENT_PROCESSED"
    blob_name: BlobName
    filename: Filename | None = None
    """The name its owner knows it by."""
    sent_at: AwareDatetime | None = None
    """When its sender sent it: of two messages of a document, the later one is current. Without it,
    the moment in which it was taken counts."""
    tags: tuple[Tag, ...] = Field(default=(), max_length=TAGS_PER_DOCUMENT)
    relations: tuple[Relation, ...] = Field(default=(), max_length=RELATIONS_PER_MESSAGE)
    found_in: FoundIn | None = None
    """None: its sender announced it."""

    @property
    def workflow_id(self) -> str:
        """Of its load; the messages of one document are loaded one after the other."""
        return f"{self.key.load_prefix}{self.document_id}"


class DocumentRelations(_DocumentEvent):
    """How a document of a batch belongs to others."""

    event_type: Literal["BATCH_DOCUMENT_RELATIONS"] = "BATCH_DOCUMENT_RELATIONS"
    relations: tuple[Relation, ...] = Field(min_length=1, max_length=RELATIONS_PER_MESSAGE)

    @property
    def workflow_id(self) -> str:
        """Of its load; each message has its own."""
        return f"{self.key.load_prefix}{self.document_id}/relations/{message_key(self)[:_SHORT]}"


class DocumentAttachments(_DocumentEvent):
    """Which files belong to a document of a batch."""

    event_type: Literal["BATCH_ATTACHMENTS"] = "BATCH_ATTACHMENTS"
    attachments: tuple[AttachedFile, ...] = Field(min_length=1, max_length=ATTACHMENTS_PER_MESSAGE)

    @property
    def workflow_id(self) -> str:
        """Of its load; each message has its own."""
        return f"{self.key.load_prefix}{self.document_id}/attachments/{message_key(self)[:_SHORT]}"


DocumentEvent = Annotated[
    DocumentProcessed | DocumentRelations | DocumentAttachments, Field(discriminator="event_type")
]
DOCUMENT_EVENT: Final = TypeAdapter[DocumentProcessed | DocumentRelations | DocumentAttachments](
    DocumentEvent, config=built_when_used()
)
DOCUMENT_EVENT_TYPES: Final = (
    "DOCUMENT_PROCESSED",
    "BATCH_DOCUMENT_RELATIONS",
    "BATCH_ATTACHMENTS",
)


def message_key(event: DocumentProcessed | DocumentRelations | DocumentAttachments) -> str:
    """What distinguishes a message from others of its document: its content, without its time."""
    if isinstance(event, DocumentProcessed):
        event = event.model_copy(update={"sent_at": None})
    return digest_of(event)


CANARY: Final = "BATCH_CANARY"
"""Event type of the message that proves delivery; a loader settles it and does nothing."""


class LoadStep(StrEnum):
    """One step of the checkpoint pipeline; each leaves a row behind when it is done."""

    DEDUPE = "dedupe"
    EXTRACT = "extract"
    TAGS = "tags"
    RELATIONS = "relations"
    ATTACHMENTS = "attachments"


STEPS: Final = MappingProxyType(
    {
        "DOCUMENT_PROCESSED": tuple(LoadStep),
        "BATCH_DOCUMENT_RELATIONS": (LoadStep.RELATIONS,),
        "BATCH_ATTACHMENTS": (LoadStep.ATTACHMENTS,),
    }
)
"""What is done for each event, in this order."""


class DocumentState(StrEnum):
    """Where a document stands."""

    LOADING = "loading"
    LOADED = "loaded"
    DUPLICATE = "duplicate"
    """Another document of the case has the same bytes; no text of its own is kept."""
    SUPERSEDED = "superseded"
    """A later message of the document was loaded before: this file is kept as a version of it."""
    FAILED = "failed"
    TERMINATED = "terminated"
    """Its load was ended from outside; its message may be sent again."""
    CANCELLED = "cancelled"
    """Its batch ended early, while it was being loaded; its message may be sent again."""


class LoadOrder(Contract):
    """Input of a document's load."""

    event: DocumentEvent
    origin: Origin | None = None
    """Of its message; None: a release that kept none, or a person, started the run."""


class StepOrder(Contract):
    """What a step is given."""

    event: DocumentEvent
    step: LoadStep
    source: BlobRef | None = None
    """The file as the first step found it."""
    origin: Origin | None = None
    """Of the message."""


class StepOutcome(Contract):
    """What a step did."""

    source: BlobRef | None = None
    duplicate_of: DocumentId | None = None
    """There is nothing more to do."""
    superseded: bool = False
    """A later message has the document, and there is nothing more to do."""
    resumed: bool = False
    """It had been done before."""
    note: Annotated[str, Field(max_length=500)] | None = None
    unfinished: bool = False
    """The step is to be continued as a remote one; nothing else is said then."""


class GiveUp(Contract):
    """A document whose load has used up its retries."""

    event: DocumentEvent
    step: LoadStep
    reason: Reason


class GivenUp(Contract):
    """Its outcome."""

    final: bool
    """True: recorded as failed, and settled. False: it is a dead letter, to be tried again."""


class LoadResult(Contract):
    """Result of a document's load."""

    document_id: DocumentId
    state: DocumentState
    steps: tuple[LoadStep, ...] = Field(default=(), max_length=len(LoadStep))
    """Those that this run did."""
    duplicate_of: DocumentId | None = None
    reason: Reason | None = None
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""
