"""What reading a document found beyond what the tables hold, kept for the steps that follow."""

import asyncio
import hashlib
import re
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field

from activities.scratch import scratch_folder
from adapters.ports import Attached, BlobNotFound, Blobs, Extracted
from contracts.base import Contract
from contracts.batches import DocumentProcessed, Filename, Tag
from contracts.blobs import BlobName, BlobRef
from domain.errors import RuleViolation

T = TypeVar("T")

_AT_ONCE: Final = 8
_VERSION: Final = 16
"""Characters of a file's hash that distinguish versions of one document."""
_RECORD: Final = "extract.json"
_HASHED: Final = "sha256-"
_PLAIN: Final = re.compile(rf"(?!{_HASHED})[A-Za-z0-9_-][A-Za-z0-9._-]{{0,99}}")
_TYPES: Final = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.ms-outlook": "mail",
    "message/rfc822": "mail",
    "application/msword": "word",
    "application/rtf": "word",
    "application/vnd.oasis.opendocument.text": "word",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "sheet",
    "application/vnd.ms-excel.sheet.binary.macroEnabled.12": "sheet",
    "application/vnd.ms-excel": "sheet",
    "application/vnd.oasis.opendocument.spreadsheet": "sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "application/vnd.ms-powerpoint": "slides",
    "application/vnd.oasis.opendocument.presentation": "slides",
    "application/zip": "archive",
    "text/html": "page",
    "text/plain": "text",
    "text/calendar": "text",
    "text/vcard": "text",
    "application/epub+zip": "text",
}
_PICTURE: Final = "image/"


class ExtractedBlob(Contract):
    """A file that was inside a document."""

    filename: Filename
    blob: BlobRef


class ExtractRecord(Contract):
    """What the steps after `extract` need to know."""

    sha256: Annotated[str, Field(max_length=64)]
    """Of the document that was read."""
    tags: tuple[Tag, ...] = ()
    """Derived from what it is."""
    files: tuple[ExtractedBlob, ...] = ()


def folder_of(event: DocumentProcessed) -> str:
    """Where the blobs go that are made of a document.

    An id that is not a plain name is replaced by its hash: blob stores and file systems do not
    agree about what else may be a name.
    """
    name = event.document_id
    if not _PLAIN.fullmatch(name):
        name = f"{_HASHED}{hashlib.sha256(name.encode()).hexdigest()}"
    return f"batches/{event.case_id}/{event.batch_id}/{name}"


def version_folder(event: DocumentProcessed, sha256: str) -> str:
    """Where the files go that are found in one version of a document."""
    return f"{folder_of(event)}/{sha256[:_VERSION]}"


def derived_tags(extracted: Extracted) -> tuple[str, ...]:
    """Tags that follow from what a document is.

    `type:` pdf, word, sheet, slides, mail, page, text, archive, picture or other; `year:` of its
    making, or else of its last change; `has:attachments`; `has:no text`, as scans have.
    """
    is_picture = extracted.media_type.startswith(_PICTURE)
    kind = _TYPES.get(extracted.media_type, "picture" if is_picture else "other")
    tags = [f"type:{kind}"]
    if moment := extracted.created_at or extracted.modified_at:
        tags.append(f"year:{moment.year}")
    if extracted.files:
        tags.append("has:attachments")
    if not extracted.text:
        tags.append("has:no text")
    return tuple(tags)


async def save_extract(
    blobs: Blobs, event: DocumentProcessed, sha256: str, extracted: Extracted, folder: Path
) -> None:
    """Put the files found inside a document, and then the record of them, into the blob store.

    Args:
        blobs: The store.
        event: The document.
        sha256: Of its bytes.
        extracted: What was found.
        folder: For the record's own file.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def upload(number: int, path: Path, filename: str) -> ExtractedBlob:
        async with room:
            blob = await blobs.upload(
                path, f"{version_folder(event, sha256)}/attachments/{number:04}-{filename}"
            )
        return ExtractedBlob(filename=filename, blob=blob)

    files = await _all_of(
        upload(number, file.path, file.filename)
        for number, file in enumerate(extracted.files, start=1)
    )
    record = ExtractRecord(sha256=sha256, tags=derived_tags(extracted), files=tuple(files))
    path = folder / "extract.json"
    await asyncio.to_thread(path.write_text, record.model_dump_json())
    await blobs.upload(path, _name(event, sha256))


async def load_extract(
    blobs: Blobs, event: DocumentProcessed, source: BlobRef, scratch: Path
) -> ExtractRecord:
    """What `extract` found.

    Raises:
        RuleViolation: The record is gone, or is of other bytes.
    """
    name = _name(event, source.sha256 or "")
    lost = (
        f"{name}, which says what was found in the document, is gone or was replaced;"
        " `docflow batches retry-failed` tries it again"
    )
    with scratch_folder(scratch) as folder:
        path = folder / "extract.json"
        try:
            await blobs.download(name, path)
        except BlobNotFound:
            # Releases that knew one version of a document kept the record beside its files.
            try:
                await blobs.download(f"{folder_of(event)}/{_RECORD}", path)
            except BlobNotFound as error:
                raise RuleViolation(lost) from error
        record = ExtractRecord.model_validate_json(await asyncio.to_thread(path.read_bytes))
    if record.sha256 != source.sha256:
        raise RuleViolation(lost)
    return record


async def stat_all(
    blobs: Blobs, files: Iterable[tuple[str, str]]
) -> tuple[list[Attached], list[str]]:
    """Find blobs that a message names.

    Args:
        blobs: The store.
        files: Blob name and filename of each.

    Returns:
        Those that are there, and the names of those that are not.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def stat(name: BlobName, filename: str) -> Attached | str:
        async with room:
            try:
                return Attached(filename, await blobs.stat(name))
            except BlobNotFound:
                return name

    found = await _all_of(stat(name, filename) for name, filename in files)
    absent = dict.fromkeys(each for each in found if isinstance(each, str))
    return [each for each in found if isinstance(each, Attached)], list(absent)


def missing(name: str) -> str:
    """Message about a missing blob."""
    return (
        f"{name} is not in the blob store; upload it there, and try again with "
        "`docflow batches retry-failed`"
    )


async def _all_of(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of calls made side by side; the first failure, when all of them have ended."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    results: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


def _name(event: DocumentProcessed, sha256: str) -> str:
    return f"{version_folder(event, sha256)}/{_RECORD}"
