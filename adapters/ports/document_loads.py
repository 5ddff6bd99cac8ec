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
    """What could not be read although the document as a whole could."""


class DocumentTexts(Protocol):
    """Reads text and metadata out of PDF, DOCX, EML, MSG and plain text."""

    async def extract(self, path: Path, filename: str | None, folder: Path) -> Extracted:
        """Read a document by what it holds; the name is a hint.

        Time and memory are bounded, whatever the file.

        Args:
            path: The file.
            filename: The name its owner knows it by.
            folder: Empty; takes the files found inside.

        Raises:
            UnreadableDocument: It is damaged, encrypted, hostile, too large or of no kind that
                is known; the message says which.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """What the tables hold about a document."""

    state: DocumentState | None
    """None: not begun."""
    done: frozenset[LoadStep] = frozenset()
    """Checkpoints of this event."""
    source: BlobRef | None = None
    duplicate_of: DocumentId | None = None
    digest: str | None = None
    """Of the message whose checkpoints they are; None: there are none, or a release that kept no
    digest wrote them."""


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

    async def forget(self, event: DocumentEvent) -> None:
        """Remove the checkpoints of an event, whose load begins anew; its bytes are free."""
        ...

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`: who else of the case has the same bytes?

        The first to come keeps them; a failed document keeps none, nor does one of an earlier
        batch that was never loaded.

        Args:
            event: The document.
            source: With its sha256.

        Returns:
            The document that has them; None: this one has them now.
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

    async def save_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step."""
        ...

    async def fail(self, event: DocumentEvent, reason: str) -> None:
        """Record that a document could not be loaded, permanently.

        A failure because of relations or attachments is removed once a message of
        that kind has been loaded.
        """
        ...
