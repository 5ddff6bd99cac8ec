"""Activities of schedules: extraction, listing of projects, bulk operations."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.imports.ports import HeldBy, ScheduleClaim
from activities.imports.rows import first_problems, write_report
from activities.imports.store import SqlImportStore
from activities.shared.failures import Heartbeater, WorkerThread, hands_over, translate_failures
from activities.shared.scratch import SeenKeys, fetched
from adapters.files.documents import FileDocuments
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.ports.blobs import Blobs
from adapters.ports.documents import ScheduleSource
from workflows.imports.messages import (
    BulkMessage,
    FileMessage,
    ScheduleExtractionMessage,
    ScheduleProjectExtractionMessage,
    Strategy,
)
from workflows.imports.runs import (
    PROBLEMS_IN_RESULT,
    Choice,
    Closing,
    Counts,
    Handler,
    HandlerInput,
    HandlerOutcome,
    ImportState,
    LoadMark,
    Question,
    TaskKey,
)
from workflows.imports.schedules import (
    REPORT_HEADER,
    ScheduleChunks,
    ScheduleMatch,
    ScheduleProject,
    resembling,
)
from workflows.shared.contracts import BlobRef, Contract, Problem
from workflows.shared.errors import InvalidDocument, RuleViolation

CODES_AT_ONCE: Final = 5_000
"""Task codes of one query."""


@dataclass(frozen=True, slots=True)
class Identified:
    """The schedule that a file is about."""

    schedule_id: str
    short_name: str
    """As the file has it."""
    names: Mapping[str, str]
    """Short names of the project's schedules, to their ids."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A load that has its schedule to itself."""

    schedule: Identified
    mark: LoadMark

    @property
    def earlier_date(self) -> datetime | None:
        """Data date that the schedule had before; None: it had none."""
        date = self.mark.header[-1] if self.mark.header else ""
        return datetime.fromisoformat(date) if date else None


async def begin_schedule_load(
    store: SqlImportStore,
    message: ScheduleExtractionMessage,
    wanted: str,
    source: ScheduleSource,
    thread: WorkerThread,
    work: Sequence[str],
) -> Begun | HandlerOutcome | HeldBy:
    """Begin to load the schedule that the message names, or its short name, or a new one.

    Args:
        store: Knows the schedules of the project.
        message: What to import.
        wanted: The project in the file, by short name or object id.
        source: The file.
        thread: Reads it.
        work: Distinguishes this work from that of a message which a person has corrected.

    What was found is remembered with the short name, so that the next file with it asks nothing.

    Returns:
        The load. Where the short name is new and most activities stand in schedules that are
        there, an outcome with the question; where another task is loading, that one.
    """
    key = TaskKey(message.project_id, message.task_id)
    while True:
        found = await _identified(store, message, wanted, source, thread)
        if isinstance(found, HandlerOutcome):
            return found
        claim = ScheduleClaim(found.short_name, found.schedule_id, found.names)
        mark = await store.begin_schedule(key, (*work, found.schedule_id), claim)
        if isinstance(mark, HeldBy):
            return mark
        if mark is not None:
            return Begun(found, mark)


async def _identified(
    store: SqlImportStore,
    message: ScheduleExtractionMessage,
    wanted: str,
    source: ScheduleSource,
    thread: WorkerThread,
) -> Identified | HandlerOutcome:
    project_id = message.project_id
    short_name = await thread.run(lambda: source.short_name(wanted))
    names = await store.schedule_names(project_id)
    schedule_id = message.schedule_id or names.get(short_name)
    if schedule_id is None and names:
        total, held = await _compared(store, project_id, source.task_codes(wanted), thread)
        if alike := resembling(held, total):
            return _asked(short_name, alike, total)
    return Identified(schedule_id or short_name, short_name, names)


async def _compared(
    store: SqlImportStore, project_id: str, codes: Iterator[str], thread: WorkerThread
) -> tuple[int, Mapping[str, int]]:
    """How many codes there are, and how many of them each schedule holds."""
    total, held = 0, dict[str, int]()

    def some() -> Sequence[str]:
        return list(dict.fromkeys(islice(codes, CODES_AT_ONCE)))

    while page := await thread.run(some):
        total += len(page)
        for schedule_id, count in (await store.schedules_holding(project_id, page)).items():
            held[schedule_id] = held.get(schedule_id, 0) + count
    return total, held


def _asked(short_name: str, alike: Sequence[ScheduleMatch], total: int) -> HandlerOutcome:
    shares = ", ".join(f"{each.share:.0%} in {each.schedule_id}" for each in alike)
    ids = " or ".join(each.schedule_id for each in alike)
    update = (
        Choice(
            value=each.schedule_id, meaning=f"an update, with {each.share:.0%} of its activities"
        )
        for each in alike
    )
    new = Choice(value=short_name, meaning="a new schedule")
    return HandlerOutcome(
        held_back=(
            f"no schedule is known as {short_name}, but of its {total:,} activities stand "
            f"{shares}: is it an update of {ids}, or new? Retry with schedule {ids}, or with "
            f"{short_name} for a new one"
        )[:500],
        question=Question(field="schedule_id", choices=(*update, new)),
    )


NOTE_CHARACTERS: Final = 500
INLINE_BYTES: Final = 64 * 1024
"""A file of this size is read within some 10 ms: less than what it takes to hand it over."""

_NOUNS: Final = {
    "schedule_activities": ("activity", "activities"),
    "schedule_relationships": ("relationship", "relationships"),
    "schedule_assignments": ("assignment", "assignments"),
    "schedule_activity_codes": ("activity code", "activity codes"),
    "schedule_udf_values": ("UDF value", "UDF values"),
    "schedule_wbs": ("WBS node", "WBS nodes"),
    "schedule_calendars": ("calendar", "calendars"),
    "schedule_resources": ("resource", "resources"),
}


class ScheduleCursor(Contract):
    """Heartbeat of an extraction."""

    table: str
    rows: int
    """Rows of the file consumed and committed, over all tables."""


class ScheduleImports:
    """Activities of the schedule types.

    Args:
        store: Where rows go.
        blobs: Where files come from, and reports go.
        documents: Reads files.
        reports: Writes reports.
        scratch: Folder for temporary files.
    """

    def __init__(
        self,
        store: SqlImportStore,
        blobs: Blobs,
        documents: FileDocuments,
        reports: XlsxReportWriter,
        scratch: Path,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._documents = documents
        self._reports = reports
        self._scratch = scratch

    @activity.defn(name=Handler.LOAD_SCHEDULE)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def load_schedule(self, work: HandlerInput) -> HandlerOutcome:
        """Bring one Primavera project of a file into the tables, by natural key.

        Chunks are committed one by one; another attempt reads the file again and continues behind
        the last one. Activities that the file does not hold any more are flagged.

        Rows that are left out stand in the report, all of them. A value that was emptied or cut
        stands in no row of its own: all of those are counted in `problem_count`, and for the first
        few there is room among the problems of the outcome, which the status row keeps.
        """
        message = work.message
        if not isinstance(message, ScheduleExtractionMessage):
            raise RuleViolation(f"{message.document_type} is not a schedule extraction")
        key = TaskKey(message.project_id, message.task_id)
        closed = await self._store.mark(key)
        if closed.finished and not closed.header:
            # The mark of a closed import: its document is gone, and its row has the outcome.
            return HandlerOutcome(counts=closed.counts, problem_count=closed.problem_count)
        async with (
            Heartbeater() as heart,
            self._opened(message, work.plan.source) as (source, thread, folder),
        ):
            wanted = message.primavera_project_id
            if wanted is None:
                wanted = await thread.run(lambda: _only_project(source.projects()))
            work_id = _identity(message, work.plan.source)
            begun = await begin_schedule_load(self._store, message, wanted, source, thread, work_id)
            if isinstance(begun, HeldBy):
                return await self._held(work, begun)
            if isinstance(begun, HandlerOutcome):
                return begun
            identified, mark = begun.schedule, begun.mark
            items = source.read(wanted)
            seen = partial(SeenKeys, folder)
            schedule = ScheduleChunks(
                items, key.project_id, identified.schedule_id, identified.names, seen, mark.cursor
            )
            with closing(schedule) as chunks:
                await self._write(key, chunks, mark.cursor, thread, heart)
            retired = await self._store.retire(key, identified.schedule_id)
            mark = await self._store.finish(key)
            return await self._outcome(key, mark, retired, chunks, begun, source.guessed_encoding)

    @activity.defn(name=Handler.LIST_SCHEDULE_PROJECTS)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def list_schedule_projects(self, work: HandlerInput) -> HandlerOutcome:
        """Register which projects and data dates a file holds."""
        message = work.message
        if not isinstance(message, ScheduleProjectExtractionMessage):
            raise RuleViolation(f"{message.document_type} does not list schedule projects")
        key = TaskKey(message.project_id, message.task_id)
        blob = work.plan.source or await self._blobs.stat(message.blob_name)
        async with Heartbeater(), self._opened(message, blob) as (source, thread, _):
            projects: Sequence[ScheduleProject] = await thread.run(source.projects)
        wanted = message.primavera_project_id
        if wanted is not None:
            projects = [_choose(projects, wanted)]
        counts = await self._store.record_schedule_projects(key, blob, projects)
        return HandlerOutcome(counts=counts, note=_listed(projects, source.guessed_encoding))

    @activity.defn(name=Handler.CHANGE_ACTIVITIES)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def change_activities(self, work: HandlerInput) -> HandlerOutcome:
        """Apply a bulk operation to activities; doing it twice changes nothing more."""
        message = work.message
        if not isinstance(message, BulkMessage):
            raise RuleViolation(f"{message.document_type} is not a bulk operation on activities")
        async with Heartbeater():
            counts = await self._store.change_activities(message)
        if isinstance(counts, HeldBy):
            return await self._held(work, counts)
        note = _changed(counts)
        if message.activity_ids == ():
            note += "; activity_ids was empty, which selects nothing by itself: " + (
                "the filters alone counted" if message.filters else "every activity was meant"
            )
        return HandlerOutcome(counts=counts, note=note)

    async def _held(self, work: HandlerInput, by: HeldBy) -> HandlerOutcome:
        """Show that work on schedules waits for the end of another task."""
        message = work.message
        loading = f"task {by.task_id} is loading a schedule of the project"
        reason = f"{loading}: this one waits for its end"
        closing = Closing(message=message, plan=work.plan, state=ImportState.RUNNING, reason=reason)
        await self._store.close(closing, activity.info().workflow_id or message.workflow_id)
        return HandlerOutcome(waits=reason)

    @asynccontextmanager
    async def _opened(
        self, message: FileMessage, blob: BlobRef | None
    ) -> AsyncGenerator[tuple[ScheduleSource, WorkerThread, Path]]:
        """The message's open file, the thread that alone may read it, and their folder."""
        name = blob.name if blob else message.blob_name
        async with fetched(self._blobs, name, self._scratch, expected=blob) as path:
            inline = path.stat().st_size <= INLINE_BYTES
            opening = self._documents.open_schedule(
                path, filename=message.filename, encoding=_encoding(message)
            )
            with ExitStack() as stack:
                async with WorkerThread(inline=inline) as thread:
                    source = await thread.run(lambda: stack.enter_context(opening))
                    yield source, thread, path.parent

    async def _write(
        self,
        key: TaskKey,
        chunks: ScheduleChunks,
        written: int,
        thread: WorkerThread,
        heart: Heartbeater,
    ) -> None:
        """Write what lies behind the mark, reading one chunk ahead."""
        chunk = await thread.run(chunks.next)
        while chunk is not None:
            ahead = thread.start(chunks.next)
            if chunk.cursor > written:
                await self._store.write(key, chunk, Strategy.MERGE)
            heart.beat(ScheduleCursor(table=chunk.table, rows=chunk.cursor))
            chunk = await asyncio.shield(ahead)

    async def _outcome(
        self,
        key: TaskKey,
        mark: LoadMark,
        retired: Counts,
        chunks: ScheduleChunks,
        begun: Begun,
        guessed: str | None,
    ) -> HandlerOutcome:
        report, rejected = None, ()
        if mark.counts.rejected:
            rejected = await first_problems(self._store, key)
            report = await write_report(
                *(self._store.rejects(key), self._blobs, self._reports, self._scratch),
                *(key, REPORT_HEADER),
            )
        counts = mark.counts.plus(retired)
        reported = (*chunks.remarks, *rejected)[:PROBLEMS_IN_RESULT]
        return HandlerOutcome(
            counts=counts,
            problems=tuple(sorted(reported, key=_line)),
            problem_count=mark.problem_count + chunks.remark_count,
            report=report,
            note=_loaded(chunks, counts, begun, guessed),
        )


def _encoding(message: FileMessage) -> str | None:
    config = (
        message.schedule_config
        if isinstance(message, ScheduleExtractionMessage | ScheduleProjectExtractionMessage)
        else None
    )
    return (config.encoding if config else None) or message.encoding


def _identity(message: ScheduleExtractionMessage, blob: BlobRef | None) -> tuple[str, ...]:
    """What a cursor counts: this project of this version of the file, read in this way.

    A person may answer a parked run with another project or code page: then it counts other rows.
    """
    version = (blob.sha256 or blob.etag or "") if blob else ""
    wanted = message.primavera_project_id or ""
    return (message.blob_name, version, wanted, _encoding(message) or "")


def _line(problem: Problem) -> int:
    return problem.line or 0


def _only_project(projects: Sequence[ScheduleProject]) -> str:
    """The project of a file that holds one."""
    if len(projects) == 1:
        return projects[0].primavera_project_id
    names = ", ".join(project.primavera_project_id for project in projects[:20])
    raise InvalidDocument(
        f"the file holds {len(projects):,} projects; name one as primavera_project_id: {names}"
        if projects
        else "the file holds no project"
    )


def _choose(projects: Sequence[ScheduleProject], wanted: str) -> ScheduleProject:
    """The project of that short name, or else of that object id."""
    for project in projects:
        if project.primavera_project_id == wanted:
            return project
    for project in projects:
        if project.object_id == wanted:
            return project
    names = ", ".join(project.primavera_project_id for project in projects[:20])
    raise InvalidDocument(f"the file holds no project {wanted!r}; it holds {names}")


def _count(number: int, nouns: tuple[str, str]) -> str:
    return f"{number:,} {nouns[0] if number == 1 else nouns[1]}"


def _loaded(chunks: ScheduleChunks, counts: Counts, begun: Begun, guessed: str | None) -> str:
    found, schedule = chunks.found, begun.schedule
    parts = [_count(found[table], nouns) for table, nouns in _NOUNS.items() if found.get(table)]
    note = ", ".join(parts) or "the project holds nothing"
    if schedule.short_name != schedule.schedule_id:
        note = f"{schedule.short_name} as schedule {schedule.schedule_id}: {note}"
    if counts.flagged:
        flagged = _count(counts.flagged, _NOUNS["schedule_activities"])
        note += f"; {flagged} flagged as missing"
    ending = _guess(guessed)
    before, now = begun.earlier_date, chunks.data_date
    if before is not None and now is not None and now < before:
        older = f"; older than what was there: its data date is {now:%Y-%m-%d}"
        ending = f"{older}, not {before:%Y-%m-%d}{ending}"
    return note[: NOTE_CHARACTERS - len(ending)] + ending


def _guess(encoding: str | None) -> str:
    return (
        f"; read as {encoding}, a guess: set schedule_config.encoding if letters are wrong"
        if encoding
        else ""
    )


def _listed(projects: Sequence[ScheduleProject], guessed: str | None) -> str:
    def describe(project: ScheduleProject) -> str:
        date = f"{project.data_date:%Y-%m-%d}" if project.data_date else "no data date"
        return f"{project.primavera_project_id} ({date}, {project.activities:,} activities)"

    note = ", ".join(describe(project) for project in projects)
    ending = _guess(guessed)
    if len(note) + len(ending) <= NOTE_CHARACTERS:
        return note + ending
    ending = f" ... {len(projects):,} projects{ending}"
    return note[: NOTE_CHARACTERS - len(ending)] + ending


def _changed(counts: Counts) -> str:
    nouns = _NOUNS["schedule_activities"]
    parts: list[str] = []
    if counts.updated:
        parts.append(f"{_count(counts.updated, nouns)} changed")
    if counts.deleted:
        parts.append(f"{_count(counts.deleted, nouns)} deleted")
    if counts.unchanged:
        parts.append(f"{_count(counts.unchanged, nouns)} left as they were")
    return ", ".join(parts) or "no activity matched"
