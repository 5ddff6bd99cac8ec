"""A store in memory, and what else the activities of the imports pipeline need around them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from temporalio.testing import ActivityEnvironment

from activities.imports.ports import EarlierImport, WholeImport
from activities.imports.tables import TableTypes, own_tables
from adapters.files.documents import FileDocuments
from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import XlsxReportWriter
from tests.support.memory.blobs import MemoryBlobs
from tests.support.memory.rejected import MemoryRejectedMessages
from workflows.imports.messages import IMPORT_MESSAGE, DocumentType, ImportMessage, Strategy
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerInput,
    HandlerOutcome,
    ImportPlan,
    ImportState,
    LoadMark,
    RowChunk,
    TaskKey,
)
from workflows.imports.types import REGISTRY, scope_of
from workflows.imports.validation import code_fields, codes_of, lookalikes
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import BlobRef, Problem

ESTIMATE = own_tables()[DocumentType.ESTIMATION_MASTER]

KEY = TaskKey("P1", "T1")


def message_of(document_type: str, **fields: Any) -> ImportMessage:
    return IMPORT_MESSAGE.validate_python(
        {"task_id": "T1", "project_id": "P1", "document_type": document_type, **fields}
    )


def work_of(message: ImportMessage, source: BlobRef | None = None) -> HandlerInput:
    facts = REGISTRY[message.document_type]
    return HandlerInput(message=message, plan=ImportPlan(facts=facts, path="local", source=source))


class Killed(BaseException):
    """The worker dies here."""


@dataclass
class MemoryStore:
    """Tables, marks and status rows in dictionaries; every call is one transaction."""

    tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    marks: dict[TaskKey, LoadMark] = field(default_factory=dict)
    rejected: dict[TaskKey, list[RejectedRow]] = field(default_factory=dict)
    staged: dict[TaskKey, list[RowChunk]] = field(default_factory=dict)
    tasks: dict[str, tuple[ImportState, str | None]] = field(default_factory=dict)
    guards: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)
    runs: dict[str, str | None] = field(default_factory=dict)
    """Task to the run that began it."""
    uploads: list[tuple[BlobRef, str | None]] = field(default_factory=list)
    answers: dict[tuple[str, str, str], str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    as_of: date | None = None
    before_call: Callable[[str], None] = lambda name: None
    after_call: Callable[[str], None] = lambda name: None
    types: TableTypes = field(default_factory=lambda: TableTypes(cast(Any, None)))
    """docflow's own types alone, which need no database."""

    async def mark(self, key: TaskKey) -> LoadMark:
        return self._called("mark", lambda: self.marks.get(key, LoadMark()))

    async def restart(self, key: TaskKey, header: Sequence[str]) -> None:
        def restart() -> None:
            self.marks[key] = LoadMark(header=tuple(header))
            self.rejected[key], self.staged[key] = [], []

        self._called("restart", restart)

    async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
        return self._called("write", lambda: self._take(key, chunk, strategy))

    async def stage(self, key: TaskKey, chunk: RowChunk) -> LoadMark:
        return self._called("stage", lambda: self._take(key, chunk, None))

    async def swap(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        strategy: Strategy,
        as_of: date,
    ) -> LoadMark:
        def swap() -> LoadMark:
            self.as_of = as_of
            mark = self.marks[key]
            if mark.finished:
                return mark
            counts, held = mark.counts, set[tuple[Any, ...]]()
            for chunk in self.staged[key]:
                counts = counts.plus(self._upsert(key, chunk, strategy))
                held.update(self._key(chunk, row) for row in chunk.rows)
            if strategy is Strategy.REPLACE:
                rows = self.tables[table]
                gone = [k for k, v in rows.items() if k not in held and scope.items() <= v.items()]
                for name in gone:
                    del rows[name]
                counts = counts.plus(Counts(deleted=len(gone)))
            self.marks[key] = replace(mark, counts=counts, finished=True)
            return self.marks[key]

        return self._called("swap", swap)

    async def remember(self, key: TaskKey, document_type: str, question: str, answer: str) -> None:
        self.answers[key.project_id, document_type, question] = answer

    async def remembered(self, project_id: str, document_type: str, question: str) -> str | None:
        return self.answers.get((project_id, document_type, question))

    async def zero_led_lengths(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], names: Sequence[str]
    ) -> Sequence[int]:
        found = self._codes(table, scope, names)
        return sorted({len(codes[0]) for codes in found if any(c.startswith("0") for c in codes)})

    async def known_codes(
        self,
        key: TaskKey,
        table: str,
        scope: Mapping[str, Any],
        names: Sequence[str],
        firsts: Sequence[str],
    ) -> Mapping[tuple[str, ...], bool]:
        found = self._codes(table, scope, names)
        return {codes: False for codes in found if codes[0] in firsts}

    async def give_sections(
        self, key: TaskKey, table: str, scope: Mapping[str, Any], sections: Mapping[str, str]
    ) -> None:
        rows = self.tables.get(table, {})
        for item, section in sections.items():
            bare = [k for k, v in rows.items() if (v["item_code"], v["section"]) == (item, "")]
            if len(bare) == 1:
                row = {**rows.pop(bare[0]), "section": section}
                rows[tuple(row[name] for name in ESTIMATE.natural_key)] = row

    def _codes(
        self, table: str, scope: Mapping[str, Any], names: Sequence[str]
    ) -> set[tuple[str, ...]]:
        return {
            tuple(row[name] for name in names)
            for row in self.tables.get(table, {}).values()
            if scope.items() <= row.items()
        }

    async def finish(self, key: TaskKey, table: str | None = None) -> LoadMark:
        def finish() -> LoadMark:
            self.marks[key] = replace(self.marks[key], finished=True)
            return self.marks[key]

        return self._called("finish", finish)

    async def rejects(self, key: TaskKey) -> AsyncIterator[Sequence[RejectedRow]]:
        rows = sorted(self.rejected.get(key, []), key=lambda row: row.line)
        for start in range(0, len(rows), 2):
            yield self._called("rejects", lambda start=start: rows[start : start + 2])

    async def begin(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        workflow_id: str,
        guard: str | None,
        digest: str | None = None,
        run_id: str | None = None,
    ) -> EarlierImport | None:
        state, _ = self.tasks.get(message.task_id, (ImportState.RUNNING, None))
        if state in (ImportState.COMPLETED, ImportState.FAILED):
            by_this_run = self.runs.get(message.task_id) == run_id
            known = self.digests.get(message.task_id)
            return EarlierImport(state, message.task_id, known, by_this_run)
        holder = self.guards.setdefault(guard, message.task_id) if guard else message.task_id
        if holder != message.task_id:
            return EarlierImport(self.tasks[holder][0], holder, self.digests.get(holder))
        self.tasks[message.task_id] = (ImportState.RUNNING, None)
        self.digests[message.task_id] = digest
        self.runs[message.task_id] = run_id
        return None

    async def complete(self, whole: WholeImport) -> HandlerOutcome | None:
        return self._called("complete", lambda: self._complete(whole))

    def _complete(self, whole: WholeImport) -> HandlerOutcome | None:
        message, chunk = whole.message, whole.chunk
        held = whole.guard is not None and whole.guard in self.guards
        if message.task_id in self.tasks or held:
            return None
        names = code_fields(whole.spec)
        known = self._codes(chunk.table, scope_of(message, whole.spec), names)
        if lookalikes(codes_of(chunk, names), dict.fromkeys(known, False)):
            return None
        if whole.guard is not None:
            self.guards[whole.guard] = message.task_id
        key = TaskKey(message.project_id, message.task_id)
        counts = self._upsert(key, chunk, message.strategy)
        self.tasks[message.task_id] = (ImportState.COMPLETED, None)
        self.digests[message.task_id] = whole.digest
        self.runs[message.task_id] = whole.run_id
        return HandlerOutcome(counts=counts, note=whole.note)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        task_id = id.rpartition("/")[2]
        self.tasks[task_id] = (ImportState.TERMINATED, reason)
        self.guards = {guard: holder for guard, holder in self.guards.items() if holder != task_id}
        return True

    async def close(self, closing: Closing, workflow_id: str) -> HandlerOutcome:
        self.tasks[closing.message.task_id] = (closing.state, closing.reason)
        return closing.outcome or HandlerOutcome()

    async def register_upload(
        self, key: TaskKey, blob: BlobRef, original_filename: str | None
    ) -> Counts:
        known = (blob, original_filename) in self.uploads
        if not known:
            self.uploads.append((blob, original_filename))
        return Counts(unchanged=1) if known else Counts(created=1)

    async def delete_service(self, key: TaskKey, table: str, service_id: str) -> Counts:
        if self.marks.get(key, LoadMark()).finished:
            return self.marks[key].counts
        rows = self.tables.get(table, {})
        gone = [k for k in rows if k[:2] == (key.project_id, service_id)]
        for row in gone:
            del rows[row]
        self.marks[key] = LoadMark(counts=Counts(deleted=len(gone)), finished=True)
        return self.marks[key].counts

    def _called(self, name: str, act: Callable[[], Any]) -> Any:
        self.before_call(name)
        self.calls.append(name)
        result = act()
        self.after_call(name)
        return result

    def _take(self, key: TaskKey, chunk: RowChunk, strategy: Strategy | None) -> LoadMark:
        mark = self.marks.get(key, LoadMark())
        if chunk.cursor <= mark.cursor:
            return mark
        self.rejected.setdefault(key, []).extend(chunk.rejected)
        counts = mark.counts.plus(Counts(rejected=len(chunk.rejected)))
        problems = sum(len(row.problems) for row in chunk.rejected)
        if strategy is None:
            self.staged[key].append(chunk)
        else:
            written = self._upsert(key, chunk, strategy)
            counts, problems = counts.plus(written), problems + written.rejected
        self.marks[key] = replace(
            mark,
            cursor=chunk.cursor,
            counts=counts,
            problem_count=mark.problem_count + problems,
            header=chunk.header or mark.header,
        )
        return self.marks[key]

    def _key(self, chunk: RowChunk, row: tuple[Any, ...]) -> tuple[Any, ...]:
        names = next(s.natural_key for s in own_tables().values() if s.table == chunk.table)
        return tuple(row[chunk.columns.index(name)] for name in names)

    def _upsert(self, task: TaskKey, chunk: RowChunk, strategy: Strategy) -> Counts:
        table, counts = self.tables.setdefault(chunk.table, {}), Counts()
        for i, row in enumerate(chunk.rows):
            key, values = self._key(chunk, row), dict(zip(chunk.columns, row, strict=True))
            old = table.get(key)
            if strategy is Strategy.UPDATE_ONLY and old is None:
                problem = Problem(line=chunk.lines[i], reason="is not known")
                self.rejected.setdefault(task, []).append(
                    RejectedRow(chunk.lines[i], chunk.cells[i], [problem])
                )
                counts = counts.plus(Counts(rejected=1))
            elif old is None:
                table[key] = values
                counts = counts.plus(Counts(created=1))
            elif strategy is Strategy.CREATE_ONLY or {**old, **values} == old:
                counts = counts.plus(Counts(unchanged=1))
            else:
                table[key] = {**old, **values}
                counts = counts.plus(Counts(updated=1))
        return counts


@dataclass
class ActivityPorts:
    """Everything that activities ask for, in one folder."""

    folder: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    documents: FileDocuments = field(default_factory=FileDocuments)
    reports: XlsxReportWriter = field(default_factory=XlsxReportWriter)
    rejected: MemoryRejectedMessages = field(default_factory=MemoryRejectedMessages)

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    async def put(self, name: str, content: bytes) -> BlobRef:
        file = self.folder / "put"
        file.write_bytes(content)
        return await self.blobs.upload(file, name)

    async def read(self, name: str) -> list[list[Any]]:
        file = self.folder / "read"
        await self.blobs.download(name, file)
        with open_table(file) as source:
            return [cells for _, cells in source.rows()]


def environment(**info: Any) -> ActivityEnvironment:
    env = ActivityEnvironment()
    env.info = replace(env.info, **{"scheduled_time": datetime(2025, 3, 4, 12, tzinfo=UTC), **info})
    return env
