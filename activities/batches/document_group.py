"""Small documents of a batch, loaded together: the outcome of each is data."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.batches.document_load import DocumentLoads, derived_tags, missing
from activities.batches.document_store import SqlLoadStore
from activities.shared.failures import Heartbeater, translate_failures
from activities.shared.scratch import scratch_folder
from adapters.files.texts.pool import FileTexts
from adapters.ports.blobs import Blobs
from adapters.ports.documents import LoadInfo, WholeDocument
from adapters.ports.errors import BlobNotFound
from workflows.batches.loads import (
    STEPS,
    AwaitedByMessage,
    DocumentAttachments,
    DocumentEvent,
    DocumentGroupInput,
    DocumentProcessed,
    DocumentRelations,
    DocumentState,
    GroupEnd,
    GroupOutcome,
    GroupOutcomes,
    GroupProgress,
    LoadStep,
)
from workflows.batches.names import DocumentId
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import PERMANENT, THROTTLING, UNAVAILABLE

SMALL_BYTES: Final = 1 << 20
"""A larger document takes a load of its own."""
AT_ONCE: Final = 4
"""Documents of a group that are loaded side by side."""
_TRIES: Final = 3
"""So often a document is read again because another load of its message was faster."""
_LOST_TWICE: Final = 3
"""The attempt from which on nothing that is left is tried together."""
_LOST: Final = "the worker was lost while the document was being loaded"


class DocumentGroups:
    """Loads groups of messages.

    Args:
        store: Tables of documents.
        blobs: Where documents are.
        texts: Reads documents.
        loads: The steps of documents that have a load of their own.
        scratch: Folder for temporary files.
    """

    def __init__(
        self,
        store: SqlLoadStore,
        blobs: Blobs,
        texts: FileTexts,
        loads: DocumentLoads,
        scratch: Path,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._texts = texts
        self._loads = loads
        self._scratch = scratch

    @activity.defn(name="batches.load_group")
    @translate_failures
    async def load_group(self, order: DocumentGroupInput) -> GroupOutcomes:
        """Load messages: read up to four documents at once, and save those that are new together.

        The rows of a document and its checkpoints are in one transaction, which documents share.
        Its heartbeat carries the outcomes so far, and what is in progress. An attempt that follows
        a lost one continues with what is left; what was in progress takes a load of its own.
        """
        group = _Group(order)
        async with Heartbeater() as heart:
            room = asyncio.Semaphore(AT_ONCE)

            async def take(numbers: Sequence[int]) -> None:
                async with room:
                    for number in numbers:
                        group.begin(number)
                        heart.beat(group.progress)
                        event = order.loads[number].event
                        group.end(await self._outcome(number, event))
                        heart.beat(group.progress)

            async def read(number: int) -> None:
                async with room:
                    group.begin(number)
                    heart.beat(group.progress)
                    found = await self._first_read(number, order.loads[number].event)
                    if isinstance(found, GroupOutcome):
                        group.end(found)
                    else:
                        group.keep(number, found)
                    heart.beat(group.progress)

            try:
                new, others = await self._apart(order, group.by_document())
                async with asyncio.TaskGroup() as takers:
                    for number in new:
                        takers.create_task(read(number))
                    for numbers in others:
                        takers.create_task(take(numbers))
                await self._save(order, group)
            except asyncio.CancelledError:
                # The next attempt may try these again: their worker was not lost.
                group.in_progress.clear()
                heart.beat(group.progress)
                raise
        return GroupOutcomes(outcomes=group.progress.outcomes)

    async def _apart(
        self, order: DocumentGroupInput, by_document: Sequence[Sequence[int]]
    ) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
        """The only messages of documents that are new, and the others by document."""
        events = {
            number: event
            for number, *further in by_document
            if not further and isinstance(event := order.loads[number].event, DocumentProcessed)
        }
        try:
            begun = await self._begun(list(events.values()))
        except ApplicationError:
            # What is wrong is found again for each of them, and is its outcome.
            return (), by_document
        new = [number for number, event in events.items() if event.document_id not in begun]
        return new, [numbers for numbers in by_document if numbers[0] not in new]

    @translate_failures
    async def _begun(self, events: Sequence[DocumentProcessed]) -> frozenset[DocumentId]:
        return await self._store.begun(events) if events else frozenset()

    async def _first_read(self, number: int, event: DocumentEvent) -> GroupOutcome | WholeDocument:
        """A document that is new, or why it cannot be read."""
        try:
            return await self._read_new(event)
        except ApplicationError as failure:
            return _failed(number, failure)

    @translate_failures
    async def _read_new(self, event: DocumentEvent) -> WholeDocument:
        assert isinstance(event, DocumentProcessed)
        return await self._read(event, LoadInfo(None, frozenset()))

    async def _save(self, order: DocumentGroupInput, group: "_Group") -> None:
        """Save what was read together; what is not new after all, or is refused, by itself."""
        kept = sorted(group.kept.items())
        events = [order.loads[number].event for number, _ in kept]
        found = [
            (event, whole)
            for event, (_, whole) in zip(events, kept, strict=True)
            if isinstance(event, DocumentProcessed)
        ]
        try:
            states = await self._save_new(found)
        except ApplicationError:
            # It may be the fault of one of them: each has an outcome of its own.
            states = [None] * len(found)
        for (number, whole), (event, _), state in zip(kept, found, states, strict=True):
            if state is None:
                group.end(await self._outcome(number, event, whole))
            else:
                group.end(GroupOutcome(number=number, end=GroupEnd.DONE, state=state))

    @translate_failures
    async def _save_new(
        self, found: Sequence[tuple[DocumentProcessed, WholeDocument]]
    ) -> Sequence[DocumentState | None]:
        return await self._store.save_new(found) if found else ()

    async def _outcome(
        self, number: int, event: DocumentEvent, whole: WholeDocument | None = None
    ) -> GroupOutcome:
        """The outcome of one message, whatever happens; `whole`: it has been read before."""
        try:
            state = await self._load(event, whole)
        except ApplicationError as failure:
            return _failed(number, failure)
        return GroupOutcome(number=number, end=GroupEnd.DONE, state=state)

    @translate_failures
    async def _load(
        self, event: DocumentEvent, whole: WholeDocument | None = None
    ) -> DocumentState | None:
        """The state of a document that is loaded now; None: what was added to one."""
        if not isinstance(event, DocumentProcessed):
            return await self._add(event)
        if whole is not None and (state := await self._store.save_whole(event, whole)) is not None:
            return state
        for _ in range(_TRIES):
            if (state := await self._load_once(event)) is not None:
                return state
        raise _own_load("other loads of the message wrote at the same moment")

    async def _add(self, event: DocumentRelations | DocumentAttachments) -> None:
        facts = await self._store.facts(event)
        if set(STEPS[event.event_type]) <= facts.done:
            return
        if isinstance(event, DocumentRelations):
            await self._store.save_relations(event, event.relations)
        else:
            await self._loads.attach(event)

    async def _load_once(self, event: DocumentProcessed) -> DocumentState | None:
        """Load a document; None: another load of its message wrote meanwhile."""
        facts = await self._store.facts(event)
        if facts.done:
            state = _settled(facts)
            if state is None:
                raise _own_load("a load of its own has begun it")
            if state is DocumentState.SUPERSEDED or await self._is_as_it_was(event, facts):
                return state
        if facts.superseded:
            with scratch_folder(self._scratch) as folder:
                source = await self._download(event, folder / "document")
            await self._store.save_version(event, source)
            return DocumentState.SUPERSEDED
        return await self._store.save_whole(event, await self._read(event, facts))

    async def _read(self, event: DocumentProcessed, facts: LoadInfo) -> WholeDocument:
        """Read a document, as far as its message is loaded."""
        with scratch_folder(self._scratch) as folder:
            path, inside = folder / "document", folder / "inside"
            source = await self._download(event, path)
            inside.mkdir()
            name = event.filename or event.blob_name.rpartition("/")[2]
            extracted = await self._texts.extract(path, name, inside)
        if extracted.files:
            raise _own_load("files are inside it")
        tags = (*event.tags, *derived_tags(extracted))
        return WholeDocument(source, extracted, tags, facts)

    async def _is_as_it_was(self, event: DocumentProcessed, facts: LoadInfo) -> bool:
        """Whether the blob is the one that was read, or is gone."""
        read = facts.etag or (facts.source and facts.source.etag)
        try:
            return (await self._blobs.stat(event.blob_name)).etag == read
        except BlobNotFound:
            return True

    async def _download(self, event: DocumentProcessed, target: Path) -> BlobRef:
        try:
            source = await self._blobs.download(event.blob_name, target, _check_size)
        except BlobNotFound as error:
            raise BlobNotFound(missing(event.blob_name)) from error
        _check_size(source.size)
        return source


class _Group:
    """The outcomes of a group so far, and what is in progress."""

    def __init__(self, order: DocumentGroupInput) -> None:
        self._order = order
        self._outcomes: dict[int, GroupOutcome] = {}
        self.in_progress: set[int] = set()
        self.kept: dict[int, WholeDocument] = {}
        """What is read and not saved."""
        info = activity.info()
        for details in info.heartbeat_details[:1]:
            before = GroupProgress.model_validate(details)
            self._outcomes = {each.number: each for each in before.outcomes}
            self._give_up(before.in_progress)
        if info.attempt >= _LOST_TWICE:
            self._give_up(range(len(order.loads)))

    @property
    def progress(self) -> GroupProgress:
        """As the heartbeat carries it."""
        outcomes = tuple(self._outcomes[number] for number in sorted(self._outcomes))
        return GroupProgress(outcomes=outcomes, in_progress=tuple(sorted(self.in_progress)))

    def begin(self, number: int) -> None:
        """A message is being loaded."""
        self.in_progress.add(number)

    def keep(self, number: int, whole: WholeDocument) -> None:
        """A message is read; nothing that comes now is the fault of its document alone."""
        self.in_progress.remove(number)
        self.kept[number] = whole

    def end(self, outcome: GroupOutcome) -> None:
        """It is loaded, or not to be."""
        self.in_progress.discard(outcome.number)
        self._outcomes[outcome.number] = outcome

    def by_document(self) -> Sequence[Sequence[int]]:
        """What is left, by document, in the order in which it was sent."""
        documents = defaultdict[DocumentId, list[int]](list)
        for number, load in enumerate(self._order.loads):
            if number not in self._outcomes:
                documents[load.event.document_id].append(number)
        return [sorted(numbers, key=self._sent) for numbers in documents.values()]

    def _sent(self, number: int) -> tuple[bool, datetime]:
        event = self._order.loads[number].event
        sent_at = event.sent_at if isinstance(event, DocumentProcessed) else None
        return sent_at is None, sent_at or datetime.max.replace(tzinfo=UTC)

    def _give_up(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            lost = GroupOutcome(number=number, end=GroupEnd.SINGLE, reason=_LOST)
            self._outcomes.setdefault(number, lost)


def _settled(facts: LoadInfo) -> DocumentState | None:
    """The state of a document whose message was loaded before; None: it was not, or in part."""
    if facts.superseded and LoadStep.DEDUPE in facts.done:
        return DocumentState.SUPERSEDED
    if facts.duplicate_of is not None and LoadStep.DEDUPE in facts.done:
        return DocumentState.DUPLICATE
    return DocumentState.LOADED if facts.done == frozenset(LoadStep) else None


def _failed(number: int, failure: ApplicationError) -> GroupOutcome:
    awaited = _awaited(failure)
    end = GroupEnd.SINGLE if awaited is None else GroupEnd.OUTAGE
    return GroupOutcome(number=number, end=end, reason=failure.message, awaited=awaited)


def _check_size(size: int) -> None:
    if size > SMALL_BYTES:
        raise _own_load(f"it has more than {SMALL_BYTES >> 20} MB")


def _own_load(reason: str) -> ApplicationError:
    return ApplicationError(reason, type=PERMANENT, non_retryable=True)


def _awaited(failure: ApplicationError) -> AwaitedByMessage | None:
    """What did not answer; None: the document itself has failed."""
    if failure.type not in (UNAVAILABLE, THROTTLING) or not failure.details:
        return None
    dependency, room, *name = failure.details
    return AwaitedByMessage(dependency=dependency, room=room, name=next(iter(name), None))
