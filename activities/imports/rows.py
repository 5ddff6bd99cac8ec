"""Loads the rows of the seven table types."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from temporalio import activity

from activities.imports.references import CodeSpelling, References, StoredRules
from activities.imports.store import SqlImportStore
from activities.imports.table_reader import CHUNK_ROWS, TableReader
from activities.imports.tables import TableTypes
from activities.shared.accepted_files import Accepted, AcceptedFiles
from activities.shared.failures import (
    Heartbeater,
    WorkerThread,
    day_of_step,
    from_thread,
    hands_over,
    translate_failures,
)
from activities.shared.scratch import fetched, scratch_folder
from adapters.files.documents import FileDocuments
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.ports.blobs import Blobs
from adapters.signed_webhook import SignedWebhook
from adapters.types.standing import ReadStored
from workflows.imports.findings import Findings, ReportMemory
from workflows.imports.messages import (
    AnyTableMessage,
    Strategy,
    TableMessage,
    TypeName,
    encoded,
    workflow_id,
)
from workflows.imports.runs import (
    NOTE_CHARACTERS,
    PROBLEMS_IN_RESULT,
    Choice,
    Counts,
    Handler,
    HandlerInput,
    HandlerOutcome,
    LoadMark,
    Question,
    RowChunk,
    TaskKey,
)
from workflows.imports.types import (
    TableSpec,
    scope_of,
    with_defaults,
)
from workflows.shared.cells import RejectedRow, SkippedTable
from workflows.shared.contracts import BlobRef, Contract, Problem
from workflows.shared.declared_types import refuse_strategy
from workflows.shared.errors import RuleViolation
from workflows.shared.row_rules import StoredRow

_LATER: Final = (
    *("unknown_fields", "map", "date_order"),
    *("decimal", "leading_zeros", "max_rejected_share", "left_out", "keep_lines"),
    "without_quantities",
)
"""Fields of a message that earlier releases did not have."""


@dataclass(frozen=True, slots=True)
class Load:
    """One import of rows on its way: the work that its progress mark belongs to."""

    message: AnyTableMessage
    kind: TypeName
    spec: TableSpec
    scope: Mapping[str, str]
    key: TaskKey
    identity: str
    """First part of the load's header; the titles of the report follow."""

    @property
    def asks(self) -> bool:
        """Whether a person is to be asked about rows that are no data."""
        return self.message.left_out == "ask"

    def is_under_way(self, mark: LoadMark) -> bool:
        """Whether the mark is one of this very work, and not of what a person has corrected."""
        return mark.header[:1] == (self.identity,)

    def is_done(self, mark: LoadMark) -> bool:
        """Whether nothing is left to read; a closed import's mark is finished without header."""
        return mark.finished and (not mark.header or self.is_under_way(mark))

    def reader(self, documents: FileDocuments, path: Path, chunk_rows: int) -> TableReader:
        """What reads the document."""
        today = day_of_step()
        return TableReader(documents, path, self.message, self.spec, chunk_rows, today=today)

    @property
    def staged(self) -> bool:
        """Whether no row is seen before all are.

        `append` is staged as well: its rows get their numbers once, in the one transaction that
        finishes the load, so that no restart can append them again. So are rows of which one ends
        another: what becomes of them must not depend on where chunks end.
        """
        return self._needs_all or self.spec.period is not None or self.file is not None

    @property
    def file(self) -> Accepted | None:
        """The file that rows go into; None: they go into a table."""
        declared, (project, task) = self.spec.declared, (self.key.project_id, self.key.task_id)
        if declared is None or declared.target is None or declared.target.file is None:
            return None
        return Accepted(
            run=workflow_id(project, task),
            place=f"accepted/{encoded(project)}/{encoded(task)}",
            declared=declared,
            fields=self.spec.fields,
            scope=self.scope,
            identity=self.identity,
            about={"project_id": project, "task_id": task},
        )

    @property
    def _needs_all(self) -> bool:
        return self.message.all_or_nothing or self.message.strategy in (
            Strategy.REPLACE,
            Strategy.APPEND,
        )

    def is_single(self, chunk: RowChunk, exhausted: bool) -> bool:
        """Whether one transaction is all that a document costs: it is small, without problems."""
        return (
            exhausted and not chunk.rejected and not self._needs_all and not self.spec.is_elsewhere
        )

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


async def begin(types: TableTypes, work: HandlerInput) -> Load:
    """Return the load that a step was given.

    Raises:
        RuleViolation: Its message is about no table, or promises what its strategy cannot keep.
    """
    message = work.message
    if not isinstance(message, AnyTableMessage):
        raise RuleViolation(f"{work.plan.facts.document_type} is not a table import")
    spec = await types.spec(message, work.plan.facts)
    message = with_defaults(message, spec)
    scope = scope_of(message, spec)
    if spec.declared is not None:
        refuse_strategy(spec.declared, message.strategy)
    store_refuses = message.strategy is Strategy.UPDATE_ONLY or (
        message.strategy is Strategy.APPEND and not spec.numbered
    )
    if message.all_or_nothing and store_refuses:
        raise RuleViolation(
            f"all_or_nothing cannot be promised with strategy {message.strategy.value!r}: "
            "which rows are known shows only when they are written; leave one of them out"
        )
    key = TaskKey(message.project_id, message.task_id)
    identity = _identity(message, work.plan.source)
    return Load(message, message.document_type, spec, scope, key, identity)


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
        if name in fields
        and getattr(message, name) == fields[name].get_default(call_default_factory=True)
    }
    content = message.model_dump_json(exclude=later)
    return hashlib.sha256(f"{content}\n{version}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Settled:
    """What is asked of the database about each chunk before it is written."""

    spelling: CodeSpelling
    references: References
    rules: StoredRules

    async def chunk(self, chunk: RowChunk) -> RowChunk:
        """The chunk as it can be written.

        Raises:
            InvalidDocument: A person has to decide about it first.
        """
        chunk = await self.references.settle(await self.spelling.settle(chunk))
        return await self.rules.settle(chunk)


def report_name(key: TaskKey) -> str:
    """Where the report of an import stands in the blob store."""
    return f"reports/{encoded(key.project_id)}/{encoded(key.task_id)}.xlsx"


async def first_problems(store: SqlImportStore, key: TaskKey) -> tuple[Problem, ...]:
    """As many problems as travel through history, by line."""
    problems: list[Problem] = []
    async for page in store.rejects(key):
        problems.extend(problem for row in page for problem in row.problems)
        if len(problems) >= PROBLEMS_IN_RESULT:
            break
    return tuple(problems[:PROBLEMS_IN_RESULT])


async def no_rejected_rows() -> AsyncGenerator[Sequence[RejectedRow]]:
    """Yield none: of a document that a person is asked about no row is rejected yet."""
    for page in ():
        yield page


async def write_report(
    rejected: AsyncIterator[Sequence[RejectedRow]],
    blobs: Blobs,
    reports: XlsxReportWriter,
    scratch: Path,
    key: TaskKey,
    header: Sequence[str],
    memory: ReportMemory | None = None,
    left_out: Sequence[SkippedTable] = (),
) -> BlobRef:
    """Write every rejected row of an import into a spreadsheet in the blob store.

    Rows are streamed from the store through a thread into the file: memory stays bounded. A
    second run writes the same report to the same place.

    Args:
        rejected: The rejected rows, page by page.
        blobs: Where the report goes.
        reports: Writes it.
        scratch: Folder for temporary files.
        key: The import.
        header: Titles of its columns.
        memory: What the report is to remember for the day it comes back.
        left_out: Rows that are no data, by sheet.
    """
    remembered = () if memory is None else memory.rows()
    with scratch_folder(scratch) as folder:
        target = folder / "report.xlsx"
        stopped = threading.Event()
        async with WorkerThread() as thread:
            rows = from_thread(rejected, stopped)
            try:
                await thread.run(
                    lambda: reports.write(
                        target, header, rows, memory=remembered, left_out=left_out
                    )
                )
            finally:
                stopped.set()
        return await blobs.upload(target, report_name(key))


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


class LoadProgress(Contract):
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
        receivers: Who is notified of files with accepted rows; None: no receiver, as in a dry run.
    """

    def __init__(
        self,
        store: SqlImportStore,
        blobs: Blobs,
        documents: FileDocuments,
        reports: XlsxReportWriter,
        scratch: Path,
        chunk_rows: int = CHUNK_ROWS,
        receivers: Mapping[str, SignedWebhook] | None = None,
    ) -> None:
        self._store = store
        self._files = AcceptedFiles(blobs, scratch, receivers)
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
            ApplicationError: See `activities.shared.failures`.
        """
        load = await begin(self._store.types, work)
        async with Heartbeater() as heart:
            mark = await self._store.mark(load.key)
            load.refuse_to_append_again(mark)
            if load.is_done(mark) and not mark.header:
                return await self._outcome(load, mark, None)
            async with fetched(
                self._blobs, load.message.blob_name, self._scratch, expected=work.plan.source
            ) as path:
                reading = load.reader(self._documents, path, self._chunk_rows)
                quick = self._is_quick(load, path)
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
                    is_update = load.message.strategy is Strategy.UPDATE_ONLY
                    references = References(
                        *(self._store, load.key, load.spec, load.scope),
                        await self._store.types.referred(load.spec),
                        reading.title,
                        None
                        if is_update
                        else lambda: load.reader(self._documents, path, self._chunk_rows),
                    )
                    rules = StoredRules(
                        self._stored(load), load.spec, load.message.strategy, reading.title
                    )
                    settled = _Settled(spelling, references, rules)
                    mark = await self._load(load, reading, settled, mark, quick, heart)
            return await self._outcome(load, mark, reading)

    def _stored(self, load: Load) -> ReadStored:
        async def read(
            keys: Sequence[tuple[Any, ...]], names: Sequence[str]
        ) -> Sequence[StoredRow | None]:
            assert load.spec.declared is not None
            return await self._store.stored_rows(load.spec.declared, load.spec.table, keys, names)

        return read

    def _is_quick(self, load: Load, path: Path) -> bool:
        is_small = path.stat().st_size <= INLINE_BYTES
        if not is_small or load.spec.checks:
            return False
        return not self._documents.is_container(path, load.message.document_name)

    async def _load(
        self,
        load: Load,
        reading: TableReader,
        settled: "_Settled",
        mark: LoadMark,
        quick: bool,
        heart: Heartbeater,
    ) -> LoadMark:
        fresh = mark == LoadMark()
        if not load.is_under_way(mark):
            mark = LoadMark()
        await settled.spelling.begin()
        async with WorkerThread(inline=quick) as thread:
            try:
                await thread.run(reading.open)
                await thread.run(lambda: reading.skip(mark.cursor))
                chunk = await thread.run(reading.next_chunk)
                header = (load.identity, *reading.titles)
                if fresh and chunk is not None and load.is_single(chunk, reading.exhausted):
                    # The mark that it leaves is as good as a finished one.
                    only = replace(await settled.chunk(chunk), header=header)
                    return await self._store.write(load.key, only, load.message.strategy)
                if mark.cursor == 0:
                    await self._store.restart(load.key, header)
                while chunk is not None:
                    ahead = thread.start(reading.next_chunk)
                    mark = await self._put(load, await settled.chunk(chunk))
                    heart.beat(LoadProgress(rows=mark.cursor, counts=mark.counts))
                    chunk = await asyncio.shield(ahead)
            finally:
                await thread.run(reading.close)
        if (file := load.file) is not None:
            return await self._hand_over(load, file, reading)
        return await self._complete(load, await self._stored_among_left_out(load, reading))

    async def _hand_over(self, load: Load, file: Accepted, reading: TableReader) -> LoadMark:
        """Write the accepted rows into a file, tell its receiver, and finish the load."""
        mark = await self._store.mark(load.key)
        if load.held_back(mark):
            return await self._store.finish(load.key)
        pages = self._store.staged(load.key, load.spec.table)
        blob, count = await self._files.write(file, pages)
        report = None
        if mark.counts.rejected or reading.findings.skipped:
            report = await self._report(load, reading, self._store.rejects(load.key))
        counts = {"accepted": count, "rejected": mark.counts.rejected}
        await self._files.tell(file, blob, counts, report)
        return await self._store.hand_over(load.key, count)

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
        if load.message.strategy is not Strategy.REPLACE or not left or load.file is not None:
            return ()
        known = await self._store.known_codes(
            load.key, load.spec.table, load.scope, load.spec.key[:1], left
        )
        return sorted({codes[0] for codes, is_own in known.items() if not is_own})

    async def _complete(self, load: Load, stored: Sequence[str]) -> LoadMark:
        if not load.staged:
            return await self._store.finish(load.key, load.spec.table)
        mark = await self._store.mark(load.key)
        if load.held_back(mark):
            # The staged rows go when the import is closed; no reader ever sees them.
            return await self._store.finish(load.key, load.spec.table)
        return await self._store.swap(
            load.key,
            load.spec.table,
            load.scope,
            load.swap_strategy(mark, stored),
            day_of_step(),
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
            superseded = await self._store.types.superseded(load.spec)
            note = _note(load, mark, reading, stored, superseded)
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
            "lists those that would; correct `keep_lines` (--keep-line LINE) and retry; nothing "
            "was written yet"
        )
    count = findings.counts.total()
    rows = "1 row looks" if count == 1 else f"{count:,} rows look"
    first = findings.skipped[0]
    return (
        f"{rows} like totals, page footers or headings, the first on line {first.line}: retry with "
        "`left_out` 'note' to leave them out, 'keep' to keep all, or with `keep_lines` "
        f"(--left-out note, --keep-line {first.line}); the report lists them; nothing was written "
        "yet"
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


def _note(
    load: Load,
    mark: LoadMark,
    reading: TableReader,
    stored: Sequence[str],
    superseded: Sequence[str],
) -> str | None:
    sentences = [*superseded]
    rejected = mark.counts.rejected
    if load.file is not None:
        if mark.finished and not load.held_back(mark):
            sentences.append(f"The rows are in {load.file.name}.")
    elif rejected and load.message.strategy is Strategy.REPLACE:
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
