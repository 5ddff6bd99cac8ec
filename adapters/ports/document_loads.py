"""Documents of batches: their tables, and what is read out of their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from contracts.batches import (
    DocumentAttachments,
    DocumentEvent,
    DocumentId,
    DocumentProcessed,
    DocumentState,
    LoadStep,
    Relation,
)
from contracts.blobs import BlobRef
from domain.batches.families import Family


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """A file that was inside another one."""

    filename: str
    """Safe to show and to use as the last segment of a blob name."""
    path: Path
    """In the folder that was given."""
    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read out of a document."""

    media_type: str
    """`application/pdf`, `message/rfc822`, ... by what the file holds."""
    text: str
    truncated: bool = False
    """The document has more text than is kept."""
    title: str | None = None
    author: str | None = None
    created_at: datetime | None = None
    """UTC; naive times of a file are taken as UTC."""
    modified_at: datetime | None = None
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """All other metadata of the file, bounded."""
    thread: Sequence[str] = ()
    """Message ids of a mail: its own, then those that it answers."""
    files: Sequence[ExtractedFile] = ()
    notes: Sequence[str] = ()
    """What could not be read although the document as a whole could; never empty where the text
    is."""


class DocumentTexts(Protocol):
    """Reads text and metadata out of documents, by what they hold."""

    async def extract(self, path: Path, filename: str | None, folder: Path) -> Extracted:
        """Read a document by what it holds; the name is a hint.

        Time and memory are bounded, whatever the file.

        Args:
            path: The file.
            filename: The name its owner knows it by.
            folder: Empty; takes the files found inside.

        Raises:
            UnreadableDocument: It is empty, damaged, encrypted, hostile or too large; the message
                says which. One of a kind that is not read has no text, and a note says why.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """What the tables hold about a document."""

    state: DocumentState | None
    """None: not begun."""
    done: frozenset[LoadStep] = frozenset()
    """Checkpoints of this very message."""
    source: BlobRef | None = None
    duplicate_of: DocumentId | None = None
    superseded: bool = False
    """The document is that of a later message."""
    etag: str | None = None
    """Of the file that was read for this very message; None: none was, or it is not known."""


class Superseded(Exception):
    """A later message of the document was loaded meanwhile; the file is stored as a version."""


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """Everything about a document that is written at once."""

    source: BlobRef
    """With its sha256."""
    extracted: Extracted
    """It holds no files."""
    tags: Sequence[str]
    seen: LoadFacts
    """As they were before its file was read."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that belongs to a document, where it is now."""

    filename: str
    blob: BlobRef


class LoadStore(Protocol):
    """Tables of documents; every method raises `Unavailable` when the database is down.

    Each `save` writes its rows and the checkpoint of its step in one transaction, and does nothing
    when the checkpoint stands there already.
    """

    async def facts(self, event: DocumentEvent) -> LoadFacts:
        """How far a load is."""
        ...

    async def forget(self, event: DocumentProcessed) -> None:
        """Remove the checkpoints of a message, whose load begins anew; its bytes are free."""
        ...

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`: who else of the case has the same bytes?

        The first to come keeps them; a failed document keeps none, nor does one of an earlier
        batch that was never loaded. What the document was by another message is kept as a version,
        and a duplicate of that takes its place. A duplicate gets the tags and relations of its
        message.

        Args:
            event: The document.
            source: With its sha256.

        Returns:
            The document that has them; None: this one has them now.

        Raises:
            Superseded: A later message was loaded since the facts were read; see `save_version`.
        """
        ...

    async def save_whole(
        self, event: DocumentProcessed, whole: WholeDocument
    ) -> DocumentState | None:
        """The checkpoints of all steps, with their rows, in one transaction.

        What it leaves is what the steps leave one after the other.

        Returns:
            `loaded`, `duplicate` or `superseded`; None, and nothing is written: another load of the
            message wrote checkpoints after `whole.seen`, so that its file may be a newer one.
        """
        ...

    async def begun(self, events: Sequence[DocumentProcessed]) -> frozenset[DocumentId]:
        """Documents of which something is stored, or that a load has begun.

        Args:
            events: Messages of one batch.
        """
        ...

    async def save_new(
        self, found: Sequence[tuple[DocumentProcessed, WholeDocument]]
    ) -> Sequence[DocumentState | None]:
        """The checkpoints of all steps of new documents, with their rows, in one transaction.

        What it leaves is what `save_whole` leaves one after the other.

        Args:
            found: Of one batch, each with its message; no document twice.

        Returns:
            `loaded` for each; None, and nothing is stored of it: it is not new, or another
            document has its bytes, and it has to be saved by itself.
        """
        ...

    async def save_version(self, event: DocumentProcessed, source: BlobRef) -> None:
        """The checkpoint `dedupe` of a message whose document is that of a later one.

        Its file is kept as a version; its relations count.
        """
        ...

    async def save_text(self, event: DocumentProcessed, extracted: Extracted) -> None:
        """The checkpoint `extract`: document, text, and the mail's message ids."""
        ...

    async def save_tags(self, event: DocumentProcessed, tags: Sequence[str]) -> None:
        """The checkpoint `tags`; the same tag in other cases or spaces is the same tag."""
        ...

    async def save_relations(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        """The checkpoint `relations`; mails that answer each other are found by message id."""
        ...

    async def family(self, event: DocumentEvent) -> Family:
        """Where the document stands in its family, and how large that is without its own files."""
        ...

    async def save_attachments(
        self,
        event: DocumentProcessed | DocumentAttachments,
        files: Sequence[Attached],
        note: str | None = None,
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step.

        Args:
            event: The message.
            files: Those that it names, or that were found in its document.
            note: What is not read of them; added to those of the document.
        """
        ...

    async def keep_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """Record some of the files, as others of the message are missing; no checkpoint."""
        ...

    async def fail(self, event: DocumentEvent, reason: str, *, is_final: bool = True) -> None:
        """Record that a message could not be loaded, and keep it unless it is a dead letter.

        The document is `failed` until each message of it that failed has been loaded; one that
        is that of a later message stays as it is.

        Args:
            event: The message.
            reason: Why, for people.
            is_final: False: it becomes a dead letter, which keeps it for another pass.
        """
        ...
