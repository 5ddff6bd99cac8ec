"""What the tables of documents shall hold, in dictionaries: the oracle of random lives."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapters.ports.documents import Attached, Extracted, LoadInfo
from workflows.batches.loads import (
    DocumentAttachments,
    DocumentEvent,
    DocumentProcessed,
    DocumentState,
    LoadStep,
    Relation,
    RelationKind,
    message_key,
)
from workflows.batches.names import BatchKey, DocumentId
from workflows.batches.runs import DocumentCounts
from workflows.shared.contracts import BlobRef

Place = tuple[int, str]
"""Case and document id."""


@dataclass
class ModelDocument:
    """What is known of a document."""

    batch_id: int
    state: DocumentState
    source: BlobRef | None = None
    extracted: Extracted | None = None
    duplicate_of: DocumentId | None = None
    reason: str | None = None
    failed_event: str | None = None
    message: str | None = None
    """Key of the message whose file it is."""


class LoadModel:
    """The rules of `SqlLoadStore` once more, written without a database.

    Attributes:
        documents: By case and document id, as are `tags` (as they are written) and `attachments`
            (these by the name of their blob).
        relations: Case, document, related document, kind.
    """

    def __init__(self) -> None:
        self.documents: dict[Place, ModelDocument] = {}
        self.tags: dict[Place, dict[str, str]] = {}
        self.relations: set[tuple[int, str, str, RelationKind]] = set()
        self.attachments: dict[Place, dict[str, Attached]] = defaultdict(dict)
        self._first: dict[tuple[BatchKey, str], str] = {}
        self._spelling: dict[tuple[BatchKey, str], str] = {}
        self._done = set[tuple[BatchKey, str, str, LoadStep]]()
        self._read: dict[tuple[BatchKey, str, str, LoadStep], str | None] = {}
        """The etag of the file that was read when a step was done first."""
        self._failed: dict[tuple[Place, str], dict[tuple[BatchKey, str], str]] = {}
        self._versions = set[tuple[Place, int]]()
        """Documents, and batches that brought a file of them which was replaced."""

    async def facts(self, event: DocumentEvent) -> LoadInfo:
        """How far a load is."""
        done = frozenset(step for step in LoadStep if _mark(event, step) in self._done)
        mark = _mark(event, LoadStep.DEDUPE)
        read = self._read.get(mark) if mark in self._done else None
        document = self.documents.get(_place(event))
        is_begun = isinstance(event, DocumentProcessed) and LoadStep.DEDUPE in done
        if is_begun and not self._has_document(event):
            return LoadInfo(None, done, superseded=True, etag=read)
        if document is None or document.batch_id != event.batch_id:
            return LoadInfo(None, done, etag=read)
        return LoadInfo(document.state, done, document.source, document.duplicate_of, etag=read)

    async def forget(self, event: DocumentProcessed) -> None:
        """Remove the checkpoints of an event; the bytes of its document are free."""
        for step in LoadStep:
            self._done.discard(_mark(event, step))
        self._release(event)

    def _release(self, event: DocumentEvent) -> None:
        mine = (event.key, event.document_id)
        self._first = {key: id for key, id in self._first.items() if (key[0], id) != mine}

    async def save_source(self, event: DocumentProcessed, source: BlobRef) -> DocumentId | None:
        """The checkpoint `dedupe`; the document of the case that has the same bytes, or None."""
        assert source.sha256 is not None
        if not self._begin(event, LoadStep.DEDUPE, source.etag):
            return self.documents[_place(event)].duplicate_of
        self._keep(event, source.sha256)
        self._hand_over(event, source.sha256)
        first = self._claim(event, source.sha256)
        document = self.documents.setdefault(
            _place(event), ModelDocument(event.batch_id, DocumentState.LOADING)
        )
        if document.batch_id != event.batch_id or document.failed_event == event.event_type:
            document.reason = document.failed_event = None
        document.batch_id, document.source = event.batch_id, source
        document.message = message_key(event)
        document.duplicate_of = first
        document.state = DocumentState.LOADING if first is None else DocumentState.DUPLICATE
        if first is not None:
            self._tag(event, event.tags)
            self._relate(event, event.relations)
        return first

    def _keep(self, event: DocumentProcessed, sha256: str) -> None:
        """Note the batch of a file that is replaced."""
        document = self.documents.get(_place(event))
        if document is None or document.source is None:
            return
        if (document.source.sha256, document.message) != (sha256, message_key(event)):
            self._versions.add((_place(event), document.batch_id))

    def _hand_over(self, event: DocumentProcessed, sha256: str) -> None:
        """A duplicate of bytes that are replaced has them now."""
        document = self.documents.get(_place(event))
        if document is None or document.source is None or document.source.sha256 == sha256:
            return
        former = document.source.sha256
        copies = sorted(
            id
            for (case, id), other in self.documents.items()
            if case == event.case_id
            and other.duplicate_of == event.document_id
            and other.source is not None
            and other.source.sha256 == former
        )
        heir = copies[0] if copies and document.extracted is not None else None
        claims = {
            claim
            for claim, first in self._first.items()
            if claim[0].case_id == event.case_id
            and (claim[1], first) == (former, event.document_id)
        }
        for claim in claims:
            if heir is None:
                del self._first[claim]
            else:
                self._first[claim] = heir
        if heir is None:
            for id in copies:
                self._leave_unread(event, id)
            return
        for id in copies:
            self.documents[event.case_id, id].duplicate_of = heir
        place = self.documents[event.case_id, heir]
        place.duplicate_of, place.state = None, DocumentState.LOADED
        place.extracted = document.extracted

    def _leave_unread(self, event: DocumentProcessed, id: DocumentId) -> None:
        """A duplicate of what was replaced before it was read has to be sent again."""
        copy = self.documents[event.case_id, id]
        copy.duplicate_of, copy.state = None, DocumentState.FAILED
        copy.failed_event = "DOCUMENT_PROCESSED"
        copy.reason = (
            f"it had the same bytes as {event.document_id}, which was replaced before these were"
            " read: send it again"
        )
        key = BatchKey(case_id=event.case_id, batch_id=copy.batch_id)
        assert copy.message is not None
        self._done.discard((key, id, copy.message, LoadStep.DEDUPE))

    async def save_text(self, event: DocumentProcessed, extracted: Extracted) -> None:
        """The checkpoint `extract`: document, text, and the mail's message ids."""
        if self._begin(event, LoadStep.EXTRACT) and self._has_document(event):
            self.documents[_place(event)].extracted = extracted

    async def save_tags(self, event: DocumentProcessed, tags: Sequence[str]) -> None:
        """The checkpoint `tags`; the same tag in other cases or spaces is the same tag."""
        if self._begin(event, LoadStep.TAGS) and self._has_document(event):
            self._tag(event, tags)

    def _has_document(self, event: DocumentProcessed) -> bool:
        """Whether a document is still that of this message; another one may have replaced it."""
        document = self.documents.get(_place(event))
        return document is None or document.message in (None, message_key(event))

    def _tag(self, event: DocumentEvent, tags: Sequence[str]) -> None:
        mine = self.tags[_place(event)] = {}
        for tag in tags:
            key = " ".join(unicodedata.normalize("NFKC", tag).casefold().split())
            mine[key] = self._spelling.setdefault((event.key, key), tag)

    async def save_relations(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        """The checkpoint `relations`; mails that answer each other are found by message id."""
        if self._begin(event, LoadStep.RELATIONS):
            self._relate(event, relations)
            self._recover(event)

    def _relate(self, event: DocumentEvent, relations: Sequence[Relation]) -> None:
        case, mine = _place(event)
        self.relations |= {(case, mine, one.related_id, one.kind) for one in relations}
        self.relations |= set(self._replies(case, mine))

    async def save_attachments(
        self, event: DocumentProcessed | DocumentAttachments, files: Sequence[Attached]
    ) -> None:
        """The checkpoint `attachments`; the document is `loaded` when it is its last step."""
        if not self._begin(event, LoadStep.ATTACHMENTS):
            return
        self.attachments[_place(event)] |= {file.blob.name: file for file in files}
        if isinstance(event, DocumentProcessed) and self._has_document(event):
            document = self.documents[_place(event)]
            failed = document.failed_event is not None
            document.state = DocumentState.FAILED if failed else DocumentState.LOADED
        self._recover(event)

    async def fail(self, event: DocumentEvent, reason: str) -> None:
        """Record that a document could not be loaded, for good."""
        self._done.discard(_mark(event, LoadStep.DEDUPE))
        self._release(event)
        failed = self._failed.setdefault((_place(event), event.event_type), {})
        failed[event.key, message_key(event)] = reason
        document = self.documents.setdefault(
            _place(event), ModelDocument(event.batch_id, DocumentState.FAILED)
        )
        document.batch_id, document.state = event.batch_id, DocumentState.FAILED
        document.reason, document.failed_event = reason, event.event_type

    def truncate(self, key: BatchKey) -> int:
        """Forget what is only needed while a batch loads; how much that was."""
        before = len(self._first) + len(self._spelling) + len(self._done)
        self._first = {claim: first for claim, first in self._first.items() if claim[0] != key}
        self._spelling = {tag: text for tag, text in self._spelling.items() if tag[0] != key}
        self._done = {mark for mark in self._done if mark[0] != key}
        return before - len(self._first) - len(self._spelling) - len(self._done)

    def counts(self, key: BatchKey) -> DocumentCounts:
        """Documents of a batch by state."""
        states = Counter(
            document.state.value
            for (case_id, _), document in self.documents.items()
            if (case_id, document.batch_id) == (key.case_id, key.batch_id)
        )
        superseded = {
            place
            for place, batch_id in self._versions
            if (place[0], batch_id) == (key.case_id, key.batch_id)
            and self.documents[place].batch_id != batch_id
        }
        return DocumentCounts(**states, superseded=len(superseded))

    def _begin(self, event: DocumentEvent, step: LoadStep, etag: str | None = None) -> bool:
        """Leave a checkpoint; False: it is there already."""
        known = _mark(event, step) in self._done
        if not known:
            self._read[_mark(event, step)] = etag
        self._done.add(_mark(event, step))
        return not known

    def _claim(self, event: DocumentProcessed, sha256: str) -> DocumentId | None:
        first = self._first.setdefault((event.key, sha256), event.document_id)
        if first != event.document_id:
            original = self.documents[event.case_id, first].duplicate_of or first
            return None if original == event.document_id else original
        loaded = [
            document_id
            for (case_id, document_id), other in self.documents.items()
            if case_id == event.case_id
            and document_id != event.document_id
            and other.state is DocumentState.LOADED
            and other.source is not None
            and other.source.sha256 == sha256
        ]
        return min(loaded, default=None)

    def _replies(self, case: int, mine: str) -> Iterator[tuple[int, str, str, RelationKind]]:
        """Who answers whom, as far as a document is part of it."""
        own, answered = self._thread(case, mine)
        for other_case, other in self.documents:
            if other_case != case or other == mine:
                continue
            theirs, answered_there = self._thread(case, other)
            if own in answered_there:
                yield case, other, mine, RelationKind.REPLY
            if theirs in answered:
                yield case, mine, other, RelationKind.REPLY

    def _thread(self, case: int, document_id: str) -> tuple[str | None, set[str]]:
        """The message id of a mail, and those that it answers; none answers its own."""
        document = self.documents.get((case, document_id))
        thread = document.extracted.thread if document and document.extracted else ()
        return (thread[0], set(thread[1:]) - {thread[0]}) if thread else (None, set())

    def _recover(self, event: DocumentEvent) -> None:
        """A document that failed because of its relations or attachments is no longer failed."""
        document = self.documents.get(_place(event))
        if isinstance(event, DocumentProcessed):
            return
        failed = self._failed.get((_place(event), event.event_type), {})
        failed.pop((event.key, message_key(event)), None)
        if document is None or document.failed_event != event.event_type:
            return
        if failed:
            document.reason = list(failed.values())[-1]
            return
        if document.state is DocumentState.FAILED:
            if document.duplicate_of is not None:
                document.state = DocumentState.DUPLICATE
            elif document.extracted is not None:
                document.state = DocumentState.LOADED
            else:
                return
        document.reason = document.failed_event = None


def _place(event: DocumentEvent) -> Place:
    return event.case_id, event.document_id


def _mark(event: DocumentEvent, step: LoadStep) -> tuple[BatchKey, str, str, LoadStep]:
    return event.key, event.document_id, message_key(event), step
