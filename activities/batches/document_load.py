"""The steps of one document: each may run twice, and continues where the one before it stopped."""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field
from temporalio import activity

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from activities.shared.failures import Heartbeater, all_of, hands_over, translate_failures
from activities.shared.scratch import scratch_folder, sweep
from adapters.aws.queues import AwsQueues
from adapters.files.texts.pool import FileTexts
from adapters.ports.blobs import Blobs
from adapters.ports.documents import Attached, Extracted, LoadInfo, Superseded
from adapters.ports.errors import BlobNotFound, Denied
from workflows.batches.loads import (
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    Filename,
    GivenUp,
    GiveUp,
    LoadStep,
    LoadStepInput,
    StepOutcome,
    Tag,
    members,
    message_key,
)
from workflows.batches.names import names_of
from workflows.shared.contracts import BlobName, BlobRef, Contract
from workflows.shared.errors import RuleViolation

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

    files = await all_of(
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
        " `docflow batch redrive --with-failed` tries it again"
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

    found = await all_of(stat(name, filename) for name, filename in files)
    absent = dict.fromkeys(each for each in found if isinstance(each, str))
    return [each for each in found if isinstance(each, Attached)], list(absent)


def missing(name: str) -> str:
    """Message about a missing blob."""
    return (
        f"{name} is not in the blob store; upload it there, and try again with "
        "`docflow batch redrive --with-failed`"
    )


def _name(event: DocumentProcessed, sha256: str) -> str:
    return f"{version_folder(event, sha256)}/{_RECORD}"


_NOTE_CHARACTERS: Final = 500
_RESUMED: Final = StepOutcome(resumed=True)
_SUPERSEDED: Final = "a later message of the document is loaded: this file is kept as a version"


class DocumentLoads:
    """Loads documents of batches.

    Args:
        store: Tables of documents.
        batches: Tables of batches.
        blobs: Where documents are, and where the files go that are found in them.
        texts: Reads documents.
        queues: Where dead letters go.
        prefix: Of the names of queues.
        scratch: Folder for temporary files.
    """

    def __init__(
        self,
        store: SqlLoadStore,
        batches: SqlBatchStore,
        blobs: Blobs,
        texts: FileTexts,
        queues: AwsQueues,
        prefix: str,
        scratch: Path,
    ) -> None:
        self._store = store
        self._batches = batches
        self._blobs = blobs
        self._texts = texts
        self._queues = queues
        self._prefix = prefix
        self._scratch = scratch
        sweep(scratch)

    @activity.defn(name="batches.dedupe")
    @translate_failures
    async def dedupe(self, order: LoadStepInput) -> StepOutcome:
        """Hash the document's file, and ask who else of the case has the same bytes.

        A file that was replaced since this step was done is loaded anew, what it was is kept as a
        version; and so is the file of a message that a later one came before.

        Returns:
            The file, and the document that has its bytes already.

        Raises:
            ApplicationError: `MissingBlob` when the file is not there.
        """
        event = _document(order)
        async with Heartbeater():
            facts = await self._store.facts(event)
            is_done = LoadStep.DEDUPE in facts.done
            if is_done and not await self._may_be_replaced(event, facts):
                return _resumed(facts)
            with scratch_folder(self._scratch) as folder:
                source = await self._download(event, folder / "document")
            if is_done and facts.source is not None:
                if source.sha256 == facts.source.sha256:
                    return _resumed(facts)
                await self._store.forget(event)
            if facts.superseded:
                await self._store.save_version(event, source)
                return StepOutcome(source=source, superseded=True, note=_SUPERSEDED)
            try:
                first = await self._store.save_source(event, source)
            except Superseded:
                return StepOutcome(source=source, superseded=True, note=_SUPERSEDED)
        return StepOutcome(source=source, duplicate_of=first)

    @activity.defn(name="batches.extract")
    @translate_failures
    async def extract(self, order: LoadStepInput) -> StepOutcome:
        """Read text and metadata, and take out the files that are inside.

        Raises:
            ApplicationError: `UnreadableDocument` when nothing can be read, `MissingBlob` when
                the file is gone, `Permanent` when it is not the one that was hashed.
        """
        event, source = _document(order), _source(order)
        if (done := await self._done(order)) is not None:
            return done
        with scratch_folder(self._scratch) as folder:
            path, inside = folder / "document", folder / "inside"
            inside.mkdir()
            async with Heartbeater():
                found = await self._download(event, path)
                if found.sha256 != source.sha256:
                    raise RuleViolation(
                        f"{event.blob_name} was replaced while its document was being loaded;"
                        " `docflow batch redrive --with-failed` loads the new file"
                    )
                extracted = await self._texts.extract(path, _filename(event), inside)
                await save_extract(self._blobs, event, source.sha256 or "", extracted, folder)
                await self._store.save_text(event, extracted)
        return StepOutcome(note="; ".join(extracted.notes)[:_NOTE_CHARACTERS] or None)

    @activity.defn(name="batches.tags")
    @translate_failures
    @hands_over(StepOutcome(unfinished=True))
    async def tags(self, order: LoadStepInput) -> StepOutcome:
        """Tag the document: as its message asks, and as follows from what it is.

        Raises:
            ApplicationError: `Permanent` when the record of what was found in it is lost.
        """
        event = _document(order)
        if (done := await self._done(order)) is not None:
            return done
        async with Heartbeater():
            record = await load_extract(self._blobs, event, _source(order), self._scratch)
            await self._store.save_tags(event, (*event.tags, *record.tags))
        return StepOutcome()

    @activity.defn(name="batches.relations")
    @translate_failures
    @hands_over(StepOutcome(unfinished=True))
    async def relations(self, order: LoadStepInput) -> StepOutcome:
        """Relate the document to others: as its message asks; mails that answer each other."""
        event = order.event
        if isinstance(event, DocumentAttachments):
            raise _wrong(order)
        if (done := await self._done(order)) is not None:
            return done
        async with Heartbeater():
            await self._store.save_relations(event, event.relations)
        return StepOutcome()

    @activity.defn(name="batches.attachments")
    @translate_failures
    @hands_over(StepOutcome(unfinished=True))
    async def attachments(self, order: LoadStepInput) -> StepOutcome:
        """Note which files belong to the document, and make documents of them.

        They are those that were found in it, or for BATCH_ATTACHMENTS those that are named. Each
        is announced to the batch as a document of the family.

        Raises:
            ApplicationError: `MissingBlob` when one that is named is not there; `Permanent` when
                the findings are no longer known, or the batch has no queue any more.
        """
        event = order.event
        if isinstance(event, DocumentRelations):
            raise _wrong(order)
        if (done := await self._done(order)) is not None:
            return done
        async with Heartbeater():
            if isinstance(event, DocumentProcessed):
                found = await load_extract(self._blobs, event, _source(order), self._scratch)
                files = [Attached(file.filename, file.blob) for file in found.files]
                note = await self._save_attachments(event, files)
            else:
                note = await self.attach(event)
        return StepOutcome(note=note)

    async def attach(self, event: DocumentAttachments) -> str | None:
        """Note the files that a message names, and make documents of them; why not of all.

        Raises:
            BlobNotFound: One of them is not there; the others are recorded.
        """
        named = dict.fromkeys((file.blob_name, file.filename) for file in event.attachments)
        found, absent = await stat_all(self._blobs, named)
        if absent:
            await self._store.keep_attachments(event, found)
            raise BlobNotFound("; ".join(missing(name) for name in absent))
        return await self._save_attachments(event, found)

    @activity.defn(name="batches.give_up")
    @translate_failures
    async def give_up(self, lost: GiveUp) -> GivenUp:
        """Show a document that cannot be loaded as failed, and make its message a dead letter.

        On the final pass over the dead letters, and when they are gone, the message is kept in the
        tables instead. A second run puts it among the dead letters again, where each message is
        moved back once.
        """
        event, reason = lost.event, f"{lost.step}: {lost.reason}"
        if not await self._batches.is_final_pass(event.key):
            # First: nothing loads the message again before it is a dead letter.
            await self._store.fail(event, reason, is_final=False)
            try:
                await self._queues.dead_letter(
                    names_of(self._prefix, event.key),
                    event.model_dump_json(by_alias=True),
                    reason,
                    deduplication=f"{event.workflow_id} {message_key(event)}",
                )
                return GivenUp(final=False)
            except Denied as error:
                activity.logger.info("%s has no dead letters any more: %s", event.key, error)
        await self._store.fail(event, reason)
        return GivenUp(final=True)

    async def _save_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> str | None:
        note = await self._announce(event, files)
        await self._store.save_attachments(event, files, note)
        return note

    async def _announce(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> str | None:
        """Send messages about files that become documents; why others do not."""
        if not files:
            return None
        family = await self._store.family(event)
        found = members(
            event.key, event.document_id, family, [(file.filename, file.blob) for file in files]
        )
        if found.messages:
            # Recorded first: they count when another document of the family is asked for room.
            await self._store.keep_attachments(event, files)
            await self._queues.send(
                names_of(self._prefix, event.key),
                [message.model_dump_json(by_alias=True) for message in found.messages],
            )
        return found.note

    async def _done(self, order: LoadStepInput) -> StepOutcome | None:
        """The outcome of a step that was done before; None: it was not."""
        facts = await self._store.facts(order.event)
        return _RESUMED if order.step in facts.done else None

    async def _may_be_replaced(self, event: DocumentProcessed, facts: LoadInfo) -> bool:
        """Whether the blob was written since it was read."""
        if facts.superseded or facts.source is None:
            return False
        try:
            return (await self._blobs.stat(event.blob_name)).etag != facts.source.etag
        except BlobNotFound:
            # A later step says so, if it needs the file.
            return False

    async def _download(self, event: DocumentProcessed, target: Path) -> BlobRef:
        try:
            return await self._blobs.download(event.blob_name, target)
        except BlobNotFound as error:
            raise BlobNotFound(missing(event.blob_name)) from error


def _resumed(facts: LoadInfo) -> StepOutcome:
    found = {
        "source": facts.source,
        "duplicate_of": facts.duplicate_of,
        "superseded": facts.superseded,
    }
    return _RESUMED.model_copy(update=found)


def _document(order: LoadStepInput) -> DocumentProcessed:
    if not isinstance(order.event, DocumentProcessed):
        raise _wrong(order)
    return order.event


def _wrong(order: LoadStepInput) -> RuleViolation:
    return RuleViolation(f"{order.step} is not a step of {order.event.event_type}")


def _source(order: LoadStepInput) -> BlobRef:
    if order.source is None:
        raise RuleViolation(f"{order.step} needs the file that {LoadStep.DEDUPE} found")
    return order.source


def _filename(event: DocumentProcessed) -> str:
    return event.filename or event.blob_name.rpartition("/")[2]
