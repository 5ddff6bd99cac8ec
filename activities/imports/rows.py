"""Loads the rows of the seven table types."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from activities.imports.reports import first_problems, write_report
from activities.imports.spelling import CodeSpelling
from activities.imports.table_reader import CHUNK_ROWS, TableReader
from activities.scratch import fetched
from activities.threads import WorkerThread
from adapters.ports import Blobs, Documents, ImportStore, ReportWriter
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.imports import (
    NOTE_CHARACTERS,
    Counts,
    DocumentType,
    Handler,
    HandlerInput,
    HandlerOutcome,
    Strategy,
    TableMessage,
)
from domain.errors import RuleViolation
from domain.imports.chunks import LoadMark, RowChunk, TaskKey
from domain.imports.leading_zeros import code_fields
from domain.imports.tables import TABLES, TableSpec, scope_of

INLINE_BYTES: Final = 64 * 1024
"""A delimited text of this size is read and converted in a few milliseconds."""
_ROOM_BEHIND: Final = 200
"""Characters of a note that are left for what is said about the message."""

_LATER: Final = (
    *("unknown_fields", "map", "date_order"),
    *("decimal", "leading_zeros", "max_rejected_share"),
)
"""Fields of a message that earlier releases did not have."""


class RowsRead(Contract):
    """Heartbeat of a load: how far it is."""

    rows: int
    """Rows of the document that are done with."""
    counts: Counts


@dataclass(frozen=True, slots=True)
class _Load:
    """One import on its way through `RowImports`."""

    message: TableMessage
    kind: DocumentType
    spec: TableSpec
    key: TaskKey
    identity: str
    """First part of the load's header; the titles of the report follow."""

    def is_under_way(self, mark: LoadMark) -> bool:
        """Whether the mark is one of this very work, and not of what a person has corrected."""
        return mark.header[:1] == (self.identity,)

    def is_done(self, mark: LoadMark) -> bool:
        """Whether nothing is left to read; a closed import's mark is finished without header."""
        return mark.finished and (not mark.header or self.is_under_way(mark))

    @property
    def staged(self) -> bool:
        """Whether no row is seen before all are.

        `append` is staged as well: its rows get their numbers once, in the one transaction that
        finishes the load, so that no restart can append them again. So are rows of which one ends
        another: what becomes of them must not depend on where chunks end.
        """
        return self._needs_all or self.spec.period is not None

    @property
    def _needs_all(self) -> bool:
        return self.message.all_or_nothing or self.message.strategy in (
            Strategy.REPLACE,
            Strategy.APPEND,
        )

    def is_single(self, chunk: RowChunk, exhausted: bool) -> bool:
        """Whether one transaction is all that a document costs: it is small, without problems."""
        return exhausted and not chunk.rejected and not self._needs_all

    def held_back(self, mark: LoadMark) -> bool:
        """Whether rejected rows keep the whole document out."""
        return self.message.all_or_nothing and mark.counts.rejected > 0

    def refuse_to_append_again(self, mark: LoadMark) -> None:
        """An append that has gone in cannot be corrected by another one.

        Raises:
            RuleViolation: Rows of another version of this work are in.
        """
        appended = mark.finished and mark.counts.created > 0 and not self.is_done(mark)
        if appended and self.message.strategy is Strategy.APPEND:
            raise RuleViolation(
                f"{mark.counts.created} rows of this task were appended already; skip this run "
                "and send what is left as a new task"
            )

    def swap_strategy(self, mark: LoadMark, stored: Sequence[str]) -> Strategy:
        """What to do with the staged rows.

        A row that the file holds but that was rejected must not count as gone: with any rejected
        row, `replace` removes nothing. Nor does it where a row was left out that holds the key of
        a stored one.
        """
        if self.message.strategy is Strategy.REPLACE and (mark.counts.rejected or stored):
            return Strategy.MERGE
        return self.message.strategy


class RowImports:
    """Rows of a spreadsheet into their table.

    Args:
        store: Tables.
        blobs: Where documents are, and reports go.
        documents: Opens files.
        reports: Writes reports.
        scratch: Folder for temporary files.
        chunk_rows: Rows of one transaction.
    """

    def __init__(
        self,
        store: ImportStore,
        blobs: Blobs,
        documents: Documents,
        reports: ReportWriter,
        scratch: Path,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._documents = documents
        self._reports = reports
        self._scratch = scratch
        self._chunk_rows = chunk_rows

    @activity.defn(name=Handler.LOAD_ROWS)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def load_rows(self, work: HandlerInput) -> HandlerOutcome:
        """Validate every row; write the good ones by natural key, report the others.

        Chunks of rows and the progress mark share a transaction: a second run continues behind the
        last one that was written, and ends with the same rows and the same outcome.

        Raises:
            ApplicationError: See `activities.failures`.
        """
        load = _begin(work)
        async with Heartbeater() as heart:
            mark = await self._store.mark(load.key)
            load.refuse_to_append_again(mark)
            if load.is_done(mark) and not mark.header:
                return await self._outcome(load, mark, None)
            async with fetched(
                self._blobs, load.message.blob_name, self._scratch, expected=work.plan.source
            ) as path:
                reading = TableReader(
                    self._documents, path, load.message, load.spec, self._chunk_rows
                )
                quick = self._is_quick(path)
                if load.is_done(mark):
                    # Nothing is left to write; what was left out shows only when it is read.
                    await self._reread(reading, mark, quick)
                else:
                    mark = await self._load(load, reading, mark, quick, heart)
            return await self._outcome(load, mark, reading)

    def _is_quick(self, path: Path) -> bool:
        return path.stat().st_size <= INLINE_BYTES and not self._documents.is_container(path)

    async def _load(
        self, load: _Load, reading: TableReader, mark: LoadMark, quick: bool, heart: Heartbeater
    ) -> LoadMark:
        fresh = mark == LoadMark()
        if not load.is_under_way(mark):
            mark = LoadMark()
        spelling = CodeSpelling(self._store, load.message, load.kind, load.spec)
        await spelling.begin()
        async with WorkerThread(inline=quick) as thread:
            try:
                await thread.run(reading.open)
                await thread.run(lambda: reading.skip(mark.cursor))
                chunk = await thread.run(reading.next_chunk)
                header = (load.identity, *reading.titles)
                if fresh and chunk is not None and load.is_single(chunk, reading.exhausted):
                    # The mark that it leaves is as good as a finished one.
                    only = replace(await spelling.settle(chunk), header=header)
                    return await self._store.write(load.key, only, load.message.strategy)
                if mark.cursor == 0:
                    await self._store.restart(load.key, header)
                while chunk is not None:
                    ahead = thread.start(reading.next_chunk)
                    mark = await self._put(load, await spelling.settle(chunk))
                    heart.beat(RowsRead(rows=mark.cursor, counts=mark.counts))
                    chunk = await asyncio.shield(ahead)
            finally:
                await thread.run(reading.close)
        return await self._complete(load, await self._stored_among_left_out(load, reading))

    async def _reread(self, reading: TableReader, mark: LoadMark, quick: bool) -> None:
        async with WorkerThread(inline=quick) as thread:
            try:
                await thread.run(reading.open)
                await thread.run(lambda: reading.skip(mark.cursor))
            finally:
                await thread.run(reading.close)

    async def _put(self, load: _Load, chunk: RowChunk) -> LoadMark:
        if load.staged:
            return await self._store.stage(load.key, chunk)
        return await self._store.write(load.key, chunk, load.message.strategy)

    async def _stored_among_left_out(self, load: _Load, reading: TableReader) -> Sequence[str]:
        """Keys of stored rows, where a row that holds one was left out as no data.

        `replace` must not count them as gone: the row may be data after all.
        """
        left = sorted(reading.findings.left_keys)
        if load.message.strategy is not Strategy.REPLACE or not left:
            return ()
        known = await self._store.known_codes(
            load.key, load.spec.table, scope_of(load.message), code_fields(load.spec), left
        )
        return sorted({codes[0] for codes, is_own in known.items() if not is_own})

    async def _complete(self, load: _Load, stored: Sequence[str]) -> LoadMark:
        if not load.staged:
            return await self._store.finish(load.key)
        mark = await self._store.mark(load.key)
        if load.held_back(mark):
            # The staged rows go when the import is closed; no reader ever sees them.
            return await self._store.finish(load.key)
        return await self._store.swap(
            load.key,
            load.spec.table,
            scope_of(load.message),
            load.swap_strategy(mark, stored),
            _day_of_import(),
        )

    async def _outcome(
        self, load: _Load, mark: LoadMark, reading: TableReader | None
    ) -> HandlerOutcome:
        """What the load did; `reading` None: the import is closed.

        Then its rejected rows are gone and its report is written, which an attempt that comes late
        must leave alone.
        """
        report, problems, note = None, (), None
        if reading is not None:
            stored = await self._stored_among_left_out(load, reading)
            note = _note(load, mark, reading, stored)
        if mark.counts.rejected and reading is not None:
            problems = await first_problems(self._store, load.key)
            report = await write_report(
                self._store,
                self._blobs,
                self._reports,
                self._scratch,
                load.key,
                reading.titles,
                reading.memory,
            )
        return HandlerOutcome(
            counts=mark.counts,
            problems=problems,
            problem_count=mark.problem_count,
            report=report,
            note=note,
            held_back=_held_back(load, mark),
        )


def _begin(work: HandlerInput) -> _Load:
    message = work.message
    if not isinstance(message, TableMessage) or message.document_type not in TABLES:
        raise RuleViolation(f"{work.plan.facts.document_type} is not a table import")
    spec = TABLES[message.document_type]
    store_refuses = message.strategy is Strategy.UPDATE_ONLY or (
        message.strategy is Strategy.APPEND and not spec.numbered
    )
    if message.all_or_nothing and store_refuses:
        raise RuleViolation(
            f"all_or_nothing cannot be promised with strategy {message.strategy.value!r}: "
            "which rows are known shows only when they are written; leave one of them out"
        )
    key = TaskKey(message.project_id, message.task_id)
    return _Load(message, message.document_type, spec, key, _identity(message, work.plan.source))


def _identity(message: TableMessage, source: BlobRef | None) -> str:
    """Names the work that a mark belongs to: this message about this version of the file.

    The steps before a load may run again when a worker dies, and so may the first step after a
    person has corrected the message: only what is loaded shows whether progress still counts.
    """
    version = (source.etag or source.sha256 or "") if source is not None else ""
    fields = type(message).model_fields
    # So that a load which an earlier release began is the same work.
    later = {
        name
        for name in _LATER
        if getattr(message, name) == fields[name].get_default(call_default_factory=True)
    }
    content = message.model_dump_json(exclude=later)
    return hashlib.sha256(f"{content}\n{version}".encode()).hexdigest()


def _day_of_import() -> date:
    # When the step was first scheduled: the same day at every attempt.
    return activity.info().scheduled_time.date()


def _held_back(load: _Load, mark: LoadMark) -> str | None:
    if not load.held_back(mark):
        return _too_many_rejected(load, mark)
    return (
        f"nothing was written: all_or_nothing, and {_rows(mark.counts.rejected)} rejected; "
        "correct the rows that the report names, upload the document again and retry"
    )


def _too_many_rejected(load: _Load, mark: LoadMark) -> str | None:
    """Why so many rejected rows are for a person to look at; None: they are not too many."""
    counts = mark.counts
    rows = counts.created + counts.updated + counts.unchanged + counts.rejected
    allowed = load.message.max_rejected_share
    if not counts.rejected or (counts.rejected < rows and counts.rejected <= allowed * rows):
        return None
    share = "all" if counts.rejected == rows else f"{counts.rejected:,} of {rows:,}"
    return (
        f"{share} rows were rejected"
        + ("" if counts.rejected == rows else f", more than the share of {allowed:g} allowed")
        + "; correct what the report names, upload the document again and retry, or skip"
    )


def _note(load: _Load, mark: LoadMark, reading: TableReader, stored: Sequence[str]) -> str | None:
    sentences: list[str] = []
    rejected = mark.counts.rejected
    if rejected and load.message.strategy is Strategy.REPLACE:
        sentences.append(f"Nothing was removed, because {_rows(rejected)} rejected.")
    elif stored:
        more = f", as are {len(stored) - 1:,} more" if len(stored) > 1 else ""
        sentences.append(
            f"Nothing was removed, because {stored[0]!r:.80} is the key of a stored row and of one "
            f"that was left out{more}."
        )
    if mark.cursor == 0:
        sentences.append("There are no rows below the header.")
    return note_of(reading, sentences)


def note_of(reading: TableReader, sentences: Sequence[str] = ()) -> str | None:
    """What the person who reads a result has to know: `sentences`, and what the reading found."""
    notes = [*sentences]
    if reading.guessed_encoding:
        notes.append(
            f"Read as {reading.guessed_encoding}, a guess: name the encoding if letters are wrong."
        )
    room = NOTE_CHARACTERS - _ROOM_BEHIND - len(" ".join(notes))
    notes.extend(reading.findings.sentences(room))
    return " ".join(notes)[:NOTE_CHARACTERS] or None


def _rows(count: int) -> str:
    return "1 row was" if count == 1 else f"{count} rows were"
