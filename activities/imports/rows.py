"""Loads the rows of the seven table types."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from activities.imports.loads import Load, begin
from activities.imports.reports import first_problems, no_rejected_rows, write_report
from activities.imports.spelling import CodeSpelling
from activities.imports.table_reader import CHUNK_ROWS, TableReader
from activities.scratch import fetched
from activities.threads import WorkerThread
from adapters.ports import Blobs, Documents, ImportStore, ReportWriter
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.imports import (
    NOTE_CHARACTERS,
    PROBLEMS_IN_RESULT,
    Choice,
    Counts,
    Handler,
    HandlerInput,
    HandlerOutcome,
    Problem,
    Question,
    Strategy,
)
from domain.imports.chunks import LoadMark, RowChunk
from domain.imports.findings import Findings
from domain.imports.leading_zeros import code_fields
from domain.imports.tables import scope_of
from domain.tabular.rows import RejectedRow

INLINE_BYTES: Final = 64 * 1024
"""A delimited text of this size is read and converted in a few milliseconds."""
LEFT_OUT: Final = Question(
    field="left_out",
    choices=(
        Choice(value="keep", meaning="keep these rows"),
        Choice(value="note", meaning="leave them out"),
    ),
)
_BEFORE_LEFT_OUT: Final = 3
"""Problems of rejected rows that come before rows that were left out."""
_ROOM_BEHIND: Final = 200
"""Characters of a note that are left for what is said about the message."""


class RowsRead(Contract):
    """Heartbeat of a load: how far it is."""

    rows: int
    """Rows of the document that are done with."""
    counts: Counts


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
        load = begin(work)
        async with Heartbeater() as heart:
            mark = await self._store.mark(load.key)
            load.refuse_to_append_again(mark)
            if load.is_done(mark) and not mark.header:
                return await self._outcome(load, mark, None)
            async with fetched(
                self._blobs, load.message.blob_name, self._scratch, expected=work.plan.source
            ) as path:
                reading = load.reader(self._documents, path, self._chunk_rows)
                quick = self._is_quick(path)
                if load.asks and not load.is_done(mark):
                    asked = await self._ask(load, reading, quick)
                    if asked is not None:
                        return asked
                    reading = load.reader(self._documents, path, self._chunk_rows)
                if load.is_done(mark):
                    # Nothing is left to write; what was left out shows only when it is read.
                    await self._reread(reading, mark, quick)
                else:
                    again = (
                        None
                        if load.staged
                        else load.reader(self._documents, path, self._chunk_rows)
                    )
                    spelling = CodeSpelling(self._store, load.message, load.kind, load.spec, again)
                    mark = await self._load(load, reading, spelling, mark, quick, heart)
            return await self._outcome(load, mark, reading)

    def _is_quick(self, path: Path) -> bool:
        return path.stat().st_size <= INLINE_BYTES and not self._documents.is_container(path)

    async def _load(
        self,
        load: Load,
        reading: TableReader,
        spelling: CodeSpelling,
        mark: LoadMark,
        quick: bool,
        heart: Heartbeater,
    ) -> LoadMark:
        fresh = mark == LoadMark()
        if not load.is_under_way(mark):
            mark = LoadMark()
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

    async def _ask(self, load: Load, reading: TableReader, quick: bool) -> HandlerOutcome | None:
        """Show a person the rows that are no data before any is written; None: there is no such
        row."""
        async with WorkerThread(inline=quick) as thread:
            try:
                await thread.run(reading.open)
                while await thread.run(reading.next_chunk) is not None:
                    pass
            finally:
                await thread.run(reading.close)
        is_answered = load.message.keep_lines or not reading.findings.skipped
        if is_answered and not reading.unmatched_lines:
            return None
        return HandlerOutcome(
            problems=_first(reading.findings, ()),
            problem_count=reading.findings.counts.total(),
            report=await self._report(load, reading, no_rejected_rows()),
            note=note_of(reading),
            held_back=_held_for(reading),
            question=LEFT_OUT,
        )

    async def _report(
        self, load: Load, reading: TableReader, rejected: AsyncIterator[Sequence[RejectedRow]]
    ) -> BlobRef:
        return await write_report(
            rejected,
            self._blobs,
            self._reports,
            self._scratch,
            load.key,
            reading.titles,
            reading.memory,
            reading.findings.skipped_tables(),
        )

    async def _reread(self, reading: TableReader, mark: LoadMark, quick: bool) -> None:
        async with WorkerThread(inline=quick) as thread:
            try:
                await thread.run(reading.open)
                await thread.run(lambda: reading.skip(mark.cursor))
            finally:
                await thread.run(reading.close)

    async def _put(self, load: Load, chunk: RowChunk) -> LoadMark:
        if load.staged:
            return await self._store.stage(load.key, chunk)
        return await self._store.write(load.key, chunk, load.message.strategy)

    async def _stored_among_left_out(self, load: Load, reading: TableReader) -> Sequence[str]:
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

    async def _complete(self, load: Load, stored: Sequence[str]) -> LoadMark:
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
        self, load: Load, mark: LoadMark, reading: TableReader | None
    ) -> HandlerOutcome:
        """What the load did; `reading` None: the import is closed.

        Then its rejected rows are gone and its report is written, which an attempt that comes late
        must leave alone.
        """
        report, problems, note = None, (), None
        count = mark.problem_count
        if reading is not None:
            stored = await self._stored_among_left_out(load, reading)
            note = _note(load, mark, reading, stored)
        if mark.counts.rejected and reading is not None:
            problems = await first_problems(self._store, load.key)
        if reading is not None:
            problems = _first(reading.findings, problems)
            count += reading.findings.counts.total()
        if reading is not None and (mark.counts.rejected or reading.findings.skipped):
            report = await self._report(load, reading, self._store.rejects(load.key))
        return HandlerOutcome(
            counts=mark.counts,
            problems=problems,
            problem_count=count,
            report=report,
            note=note,
            held_back=_held_back(load, mark),
        )


def _day_of_import() -> date:
    # When the step was first scheduled: the same day at every attempt.
    return activity.info().scheduled_time.date()


def _first(findings: Findings, rejected: Sequence[Problem]) -> tuple[Problem, ...]:
    """Problems that travel through history: of rejected rows, and rows that were left out."""
    skipped = [problem for row in findings.skipped for problem in row.problems]
    first, more = rejected[:_BEFORE_LEFT_OUT], rejected[_BEFORE_LEFT_OUT:]
    return (*first, *skipped, *more)[:PROBLEMS_IN_RESULT]


def _held_for(reading: TableReader) -> str:
    """What a person is asked about rows that are no data."""
    findings = reading.findings
    if unmatched := reading.unmatched_lines:
        return (
            f"keep_lines: on {unmatched[0]!r:.80} stands no row that would be left out; the report "
            "lists those that would; correct `keep_lines` (--keep-line 7) and retry; nothing was "
            "written yet"
        )
    count = findings.counts.total()
    rows = "1 row looks" if count == 1 else f"{count:,} rows look"
    first = findings.skipped[0]
    return (
        f"{rows} like totals, page footers or headings, the first on line {first.line}: retry with "
        "`left_out` 'note' to leave them out, 'keep' to keep all, or with `keep_lines` "
        "(--left-out note, --keep-line 7); the report lists them; nothing was written yet"
    )


def _held_back(load: Load, mark: LoadMark) -> str | None:
    if not load.held_back(mark):
        return _too_many_rejected(load, mark)
    return (
        f"nothing was written: all_or_nothing, and {_rows(mark.counts.rejected)} rejected; "
        "correct the rows that the report names, upload the document again and retry"
    )


def _too_many_rejected(load: Load, mark: LoadMark) -> str | None:
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


def _note(load: Load, mark: LoadMark, reading: TableReader, stored: Sequence[str]) -> str | None:
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
    if lines := reading.unmatched_lines:
        shown = ", ".join(map(repr, lines[:3]))
        notes.append(f"No row that would be left out stands on these `keep_lines`: {shown:.200}.")
    if reading.guessed_encoding:
        notes.append(
            f"Read as {reading.guessed_encoding}, a guess: name the encoding if letters are wrong."
        )
    room = NOTE_CHARACTERS - _ROOM_BEHIND - len(" ".join(notes))
    notes.extend(reading.findings.sentences(room))
    return " ".join(notes)[:NOTE_CHARACTERS] or None


def _rows(count: int) -> str:
    return "1 row was" if count == 1 else f"{count} rows were"
