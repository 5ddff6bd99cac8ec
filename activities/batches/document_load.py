"""The steps of one document: each may run twice, and continues where the one before it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.batches.extracts import load_extract, missing, save_extract, stat_all
from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from activities.scratch import scratch_folder, sweep
from adapters.ports import (
    Attached,
    BatchQueues,
    BatchStore,
    BlobNotFound,
    Blobs,
    Denied,
    DocumentTexts,
    LoadFacts,
    LoadStore,
    RejectedMessages,
)
from contracts.batches import (
    DocumentAttachments,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    GivenUp,
    GiveUp,
    LoadStep,
    StepOrder,
    StepOutcome,
    names_of,
)
from contracts.blobs import BlobRef
from contracts.errors import KEY_REUSED
from contracts.origins import body_of
from domain.errors import RuleViolation

_NOTE_CHARACTERS: Final = 500
_UNFINISHED: Final = (DocumentState.LOADING, DocumentState.TERMINATED)
_NOT_COMPARED: Final = "done before; whether by the same message is not known"


class DocumentLoads:
    """Loads documents of batches.

    Args:
        store: Tables of documents.
        batches: Tables of batches.
        blobs: Where documents are, and where the files go that are found in them.
        texts: Reads documents.
        queues: Where dead letters go.
        rejected: Keeps messages whose document another message has.
        prefix: Of the names of queues.
        scratch: Folder for temporary files.
    """

    def __init__(
        self,
        store: LoadStore,
        batches: BatchStore,
        blobs: Blobs,
        texts: DocumentTexts,
        queues: BatchQueues,
        rejected: RejectedMessages,
        prefix: str,
        scratch: Path,
    ) -> None:
        self._store = store
        self._batches = batches
        self._blobs = blobs
        self._texts = texts
        self._queues = queues
        self._rejected = rejected
        self._prefix = prefix
        self._scratch = scratch
        sweep(scratch)

    @activity.defn(name="batches.dedupe")
    @translate_failures
    async def dedupe(self, order: StepOrder) -> StepOutcome:
        """Hash the document's file, and ask who else of the case has the same bytes.

        Returns:
            The file, and the document that has its bytes already.

        Raises:
            ApplicationError: `MissingBlob` when the file is not there; `KeyReused` when the
                document was loaded by a message with other content.
        """
        event = _document(order)
        facts = await self._facts(order)
        if LoadStep.DEDUPE in facts.done and facts.source is not None:
            return _resumed(facts).model_copy(
                update={"source": facts.source, "duplicate_of": facts.duplicate_of}
            )
        async with Heartbeater():
            with scratch_folder(self._scratch) as folder:
                source = await self._download(event, folder / "document")
        first = await self._store.save_source(event, source)
        return StepOutcome(source=source, duplicate_of=first)

    @activity.defn(name="batches.extract")
    @translate_failures
    async def extract(self, order: StepOrder) -> StepOutcome:
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
                        " send the new file as a document of its own"
                    )
                extracted = await self._texts.extract(path, _filename(event), inside)
                await save_extract(self._blobs, event, source.sha256 or "", extracted, folder)
                await self._store.save_text(event, extracted)
        return StepOutcome(note="; ".join(extracted.notes)[:_NOTE_CHARACTERS] or None)

    @activity.defn(name="batches.tags")
    @translate_failures
    @hands_over(StepOutcome(unfinished=True))
    async def tags(self, order: StepOrder) -> StepOutcome:
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
    async def relations(self, order: StepOrder) -> StepOutcome:
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
    async def attachments(self, order: StepOrder) -> StepOutcome:
        """Note which files belong to the document.

        They are those that were found in it, or for BATCH_ATTACHMENTS those that are named.

        Raises:
            ApplicationError: `MissingBlob` when one that is named is not there; `Permanent` when
                the findings are no longer known.
        """
        event = order.event
        if isinstance(event, DocumentRelations):
            raise _wrong(order)
        if (done := await self._done(order)) is not None:
            return done
        async with Heartbeater():
            await self._store.save_attachments(event, await self._attached(event, order))
        return StepOutcome()

    @activity.defn(name="batches.give_up")
    @translate_failures
    async def give_up(self, lost: GiveUp) -> GivenUp:
        """Put a document that cannot be loaded among the dead letters, or record its failure.

        It is recorded permanently on the final pass over the dead letters, and when they are gone.
        A second run puts it there again, where each message is moved back once.
        """
        event = lost.event
        if not await self._batches.is_final_pass(event.key):
            try:
                await self._queues.dead_letter(
                    names_of(self._prefix, event.key),
                    event.model_dump_json(by_alias=True),
                    f"{lost.step}: {lost.reason}",
                    deduplication=event.workflow_id,
                )
                return GivenUp(final=False)
            except Denied as error:
                activity.logger.info("%s has no dead letters any more: %s", event.key, error)
        await self._store.fail(event, f"{lost.step}: {lost.reason}")
        return GivenUp(final=True)

    async def _attached(
        self, event: DocumentProcessed | DocumentAttachments, order: StepOrder
    ) -> Sequence[Attached]:
        if isinstance(event, DocumentProcessed):
            record = await load_extract(self._blobs, event, _source(order), self._scratch)
            return [Attached(file.filename, file.blob) for file in record.files]
        named = {file.blob_name: file.filename for file in event.attachments}
        return await stat_all(self._blobs, named.items())

    async def _done(self, order: StepOrder) -> StepOutcome | None:
        """The outcome of a step that was done before; None: it was not."""
        facts = await self._facts(order)
        return _resumed(facts) if order.step in facts.done else None

    async def _facts(self, order: StepOrder) -> LoadFacts:
        """How far the load is.

        Raises:
            ApplicationError: `KeyReused` when another message did it, which Temporal has forgotten;
                its detail is the digest of that one. This one is recorded as rejected.
        """
        event, origin = order.event, order.origin
        facts = await self._store.facts(event)
        if origin is None or facts.digest in (None, origin.digest):
            return facts
        if isinstance(event, DocumentProcessed) and facts.state in _UNFINISHED:
            # Of a run that is over, as this one has its id.
            await self._store.forget(event)
            return await self._store.facts(event)
        refused = (
            f"{event.event_type}: document {event.document_id} of {event.key} is that of a message "
            "with other content: this message was not used; send it again under a document id that "
            "was not used before"
        )
        await self._rejected.record(
            origin.queue,
            # The record knows a message that comes twice by its id.
            origin.message_id or event.workflow_id,
            KEY_REUSED,
            refused,
            body_of(event),
        )
        raise ApplicationError(refused, facts.digest, type=KEY_REUSED, non_retryable=True)

    async def _download(self, event: DocumentProcessed, target: Path) -> BlobRef:
        try:
            return await self._blobs.download(event.blob_name, target)
        except BlobNotFound as error:
            raise BlobNotFound(missing(event.blob_name)) from error


def _resumed(facts: LoadFacts) -> StepOutcome:
    return StepOutcome(resumed=True, note=_NOT_COMPARED if facts.digest is None else None)


def _document(order: StepOrder) -> DocumentProcessed:
    if not isinstance(order.event, DocumentProcessed):
        raise _wrong(order)
    return order.event


def _wrong(order: StepOrder) -> RuleViolation:
    return RuleViolation(f"{order.step} is not a step of {order.event.event_type}")


def _source(order: StepOrder) -> BlobRef:
    if order.source is None:
        raise RuleViolation(f"{order.step} needs the file that {LoadStep.DEDUPE} found")
    return order.source


def _filename(event: DocumentProcessed) -> str:
    return event.filename or event.blob_name.rpartition("/")[2]
