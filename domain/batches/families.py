"""Families of documents: one that was sent, the files found in it, the files found in those."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contracts.batches import (
    FAMILY_DEPTH,
    BatchKey,
    DocumentId,
    DocumentProcessed,
    FoundIn,
    Relation,
    RelationKind,
)
from contracts.blobs import BlobRef

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
