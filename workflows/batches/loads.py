"""Documents of a batch, from their message to rows in the database, alone or in groups."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BeforeValidator, Field, StringConstraints, TypeAdapter

from workflows.batches.names import BatchKey, DocumentId, Id
from workflows.shared.contracts import (
    BlobName,
    BlobRef,
    Contract,
    Origin,
    WireContract,
    built_when_used,
    digest_of,
)
from workflows.shared.dependencies import Dependency, DependencyName

RELATIONS_PER_MESSAGE: Final = 15_000
"""More than fit into a message of 256 KB."""
ATTACHMENTS_PER_MESSAGE: Final = 10_000
"""More than fit into one."""
TAGS_PER_DOCUMENT: Final = 100
FAMILY_DEPTH: Final = 8
"""Files within files that become documents."""
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


class DocumentLoadInput(Contract):
    """Input of a document's load."""

    event: DocumentEvent
    origin: Origin | None = None
    """Of its message; None: a release that kept none, or a person, started the run."""


class LoadStepInput(Contract):
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


GROUP_MESSAGES: Final = 10
"""As many as SQS gives with one receive."""
GROUP_BYTES: Final = 256 << 10
"""Of the bodies of a group; a single message may have as many."""

Number = Annotated[int, Field(ge=0, lt=GROUP_MESSAGES)]
"""Of a message in its group."""

REASON_CHARACTERS: Final = 1_000
"""A group has as many reasons as messages; the load of its own has the whole text."""


def _cut(value: object) -> object:
    return value[:REASON_CHARACTERS] if isinstance(value, str) else value


GroupReason = Annotated[str, BeforeValidator(_cut), Field(max_length=REASON_CHARACTERS)]
"""Why a message is not done; what is longer is cut."""


class DocumentGroupInput(Contract):
    """Input of a group, and of each attempt to load what is left of it."""

    key: BatchKey
    loads: tuple[DocumentLoadInput, ...] = Field(min_length=1, max_length=GROUP_MESSAGES)


class GroupEnd(StrEnum):
    """What becomes of one message of a group."""

    DONE = "done"
    """It is loaded; by this group, or before."""
    SINGLE = "single"
    """It takes a load of its own: it is large, or failed, or its worker was lost with it."""
    OUTAGE = "outage"
    """Something that docflow itself needs did not answer."""


class AwaitedByMessage(Contract):
    """What did not answer when a message was loaded."""

    dependency: Dependency
    name: DependencyName | None = None
    """Which one, where there are many."""
    room: int = Field(default=0, ge=0)
    """Bytes that the step needs on the scratch disk; 0: not known."""


class GroupOutcome(Contract):
    """The outcome of one message of a group."""

    number: Number
    end: GroupEnd
    state: DocumentState | None = None
    """Of its document, where this is known."""
    reason: GroupReason | None = None
    """Why it is not done."""
    awaited: AwaitedByMessage | None = None
    """What did not answer."""


class GroupProgress(Contract):
    """Heartbeat of a group."""

    outcomes: tuple[GroupOutcome, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    in_progress: tuple[Number, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    """Messages whose loading has begun and has not ended."""


class GroupOutcomes(Contract):
    """Result of one attempt: an outcome for each message of its order."""

    outcomes: tuple[GroupOutcome, ...] = Field(max_length=GROUP_MESSAGES)


class GroupStatus(Contract):
    """Where a group stands; its result."""

    messages: int
    done: int = 0
    single: tuple[DocumentId, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    """Documents of the messages that were given to loads of their own."""
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""


FAMILY_DOCUMENTS: Final = 5_000
"""Files of one family that become documents."""
FAMILY_BYTES: Final = 8 << 30
"""All of these."""
_ID_CHARACTERS: Final = 160
"""Of a parent's id, at the beginning of those of its files."""
_HASH_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class Family:
    """Where a document stands in its family, and how large that is without its own files."""

    family_id: DocumentId
    """Id of the document that was sent."""
    depth: int
    """0 for that one."""
    documents: int = 0
    size: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Members:
    """What becomes of the files of a document."""

    messages: Sequence[DocumentProcessed]
    """One for each that becomes a document."""
    note: str | None = None
    """Why others do not."""


def members(
    key: BatchKey, parent: DocumentId, family: Family, files: Sequence[tuple[str, BlobRef]]
) -> Members:
    """The messages that make documents of the files of a document.

    Args:
        key: Of the batch.
        parent: The document.
        family: Of the document.
        files: Filename and blob of each; the same files give the same messages.
    """
    if family.depth >= FAMILY_DEPTH:
        note = f"its {len(files):,} files are not read: they are nested {family.depth + 1} deep"
        return Members((), note if files else None)
    place = FoundIn(parent_id=parent, family_id=family.family_id, depth=family.depth + 1)
    messages: list[DocumentProcessed] = []
    documents, size, left_out = family.documents, family.size, 0
    for filename, blob in dict.fromkeys(files):
        if not blob.size:
            # The list of files has it, and the notes of the document name it.
            continue
        if documents >= FAMILY_DOCUMENTS or size + blob.size > FAMILY_BYTES:
            left_out += 1
        else:
            documents, size = documents + 1, size + blob.size
            messages.append(_message(key, place, filename, blob))
    note = (
        f"{left_out:,} of its files are not read: a family has at most {FAMILY_DOCUMENTS:,}"
        f" files of together {FAMILY_BYTES >> 30} GB"
    )
    return Members(messages, note if left_out else None)


def _message(key: BatchKey, place: FoundIn, filename: str, blob: BlobRef) -> DocumentProcessed:
    return DocumentProcessed(
        case_id=key.case_id,
        batch_id=key.batch_id,
        document_id=member_id(place.parent_id, blob.name, filename),
        blob_name=blob.name,
        filename=filename,
        relations=(Relation(related_id=place.parent_id, kind=RelationKind.ATTACHMENT),),
        found_in=place,
    )


def member_id(parent: DocumentId, blob_name: str, filename: str) -> DocumentId:
    """Id of the document that is made of a file; the same for the same file."""
    named = f"{parent}\n{blob_name}\n{filename}".encode()
    digest = hashlib.sha256(named).hexdigest()[:_HASH_CHARACTERS]
    return f"{parent[:_ID_CHARACTERS].rstrip()}.{digest}"
