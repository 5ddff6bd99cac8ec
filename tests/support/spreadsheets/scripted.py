"""Scripted activities of the spreadsheets pipeline, for tests of its workflows."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from contracts.blobs import BlobRef
from contracts.errors import INVALID_DECISION, TRANSIENT, UNREADABLE_DOCUMENT
from contracts.spreadsheets import (
    FINAL,
    NEXT,
    Analysis,
    AnalysisInput,
    CellSummary,
    CollectInput,
    ColumnMapping,
    DecideCells,
    ExpiredInput,
    ExpiredPage,
    FieldFacts,
    Finishing,
    Layout,
    MappingStatus,
    Notice,
    OpenValue,
    Processed,
    ProcessInput,
    PurgeInput,
    PurgeResult,
    ReportInput,
    RowCounts,
    SaveColumns,
    SpreadsheetOrder,
    SpreadsheetState,
    Staged,
    StageInput,
    StatusRecord,
    UndoCounts,
    UndoOrder,
    UndoResult,
    UndoState,
)

FIELDS = (
    FieldFacts(name="LAST_NAME", required=True),
    FieldFacts(name="FIRST_NAME"),
    FieldFacts(name="EVENT_CATEGORY_NAME", resolver="event_categories", creates=True),
)
MATCHED = (
    ColumnMapping(
        id=1,
        index=0,
        header="Surname",
        target="LAST_NAME",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
    ColumnMapping(
        id=2,
        index=1,
        header="Class",
        target="EVENT_CATEGORY_NAME",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
)
UNMATCHED = (
    ColumnMapping(id=1, index=0, header="Who"),
    MATCHED[1],
    ColumnMapping(id=3, index=2, header="Shoe size"),
)
COUNTS = RowCounts(created=7, updated=2, skipped=1)


def spreadsheet_order(**fields: Any) -> SpreadsheetOrder:
    """An order like one of the gateway."""
    return SpreadsheetOrder.model_validate(
        {
            "uuid": str(uuid.uuid4()),
            "organisation_id": 1,
            "import_type": "EVENT_PARTICIPANT",
            "context_id": 5,
            "source": BlobRef(name="spreadsheets/x/y", size=10),
            "filename": "registrations.xlsx",
            "by": "ann",
            **fields,
        }
    )


def transient(message: str = "the database is unavailable") -> ApplicationError:
    """A failure whose retries are used up."""
    return ApplicationError(message, type=TRANSIENT, non_retryable=True)


def damaged(message: str = "the file is damaged") -> ApplicationError:
    """A file that nobody can read."""
    return ApplicationError(message, type=UNREADABLE_DOCUMENT, non_retryable=True)


@dataclass
class ScriptedSpreadsheet:
    """What the activities find, and what they were asked to do.

    Attributes:
        columns: What the analysis finds.
        values: Open values: those that collecting finds.
        late: Values that each round of rows finds, round by round.
        failures: Failure of the next call of an activity, by name; taken one by one.
        held: Activities that wait until `release` is set, by name.
    """

    columns: Sequence[ColumnMapping] = MATCHED
    values: Sequence[str] = ()
    known: int = 3
    late: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    failures: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    held: set[str] = field(default_factory=set[str])
    release: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[str] = field(default_factory=list[str])
    records: list[StatusRecord] = field(default_factory=list[StatusRecord])
    saved: list[SaveColumns] = field(default_factory=list[SaveColumns])
    decided: list[DecideCells] = field(default_factory=list[DecideCells])
    processed: list[ProcessInput] = field(default_factory=list[ProcessInput])
    finished: list[Finishing] = field(default_factory=list[Finishing])
    notices: list[Notice] = field(default_factory=list[Notice])
    layouts: list[Layout] = field(default_factory=list[Layout])
    errors: int = 0
    on_call: Callable[[str], None] = lambda name: None
    _open: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def states(self) -> list[SpreadsheetState]:
        """States in the order they were shown, each once in a row."""
        shown = [SpreadsheetState.UPLOADED]
        for record in [*self.records, *(f.record for f in self.finished)]:
            if record.state is not shown[-1]:
                shown.append(record.state)
        return shown

    def check_legal(self) -> None:
        """Every transition that was shown is one of the contract; sequences only rise."""
        for before, after in zip(self.states, self.states[1:], strict=False):
            assert after in NEXT[before], (before, after)
        numbers = [record.sequence for record in self.records]
        assert numbers == sorted(numbers)
        assert all(record.state not in FINAL for record in self.records)

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        self.on_call(name)
        if name in self.held:
            beating = asyncio.create_task(self._beat())
            try:
                await self.release.wait()
            finally:
                beating.cancel()
        if self.failures.get(name):
            raise self.failures[name].pop(0)

    async def _beat(self) -> None:
        while not activity.info().is_local:
            activity.heartbeat()
            await asyncio.sleep(0.05)

    def _summary(self) -> CellSummary:
        first = tuple(
            OpenValue(id=id, field="EVENT_CATEGORY_NAME", value=value, rows=1)
            for id, value in sorted(self._open.items())
        )
        return CellSummary(total=self.known + len(first), open=len(first), first_open=first[:50])

    def _find(self, values: Sequence[str]) -> None:
        for value in values:
            self._open[len(self._open) + 1 + 100 * len(self.processed)] = value

    @activity.defn(name="spreadsheets.begin")
    async def begin(self, order: SpreadsheetOrder) -> None:
        await self._called("begin")

    @activity.defn(name="spreadsheets.record")
    async def record(self, record: StatusRecord) -> None:
        await self._called("record")
        self.records.append(record)

    @activity.defn(name="spreadsheets.finish")
    async def finish(self, finishing: Finishing) -> RowCounts:
        await self._called("finish")
        self.finished.append(finishing)
        return finishing.result.counts

    @activity.defn(name="spreadsheets.save_columns")
    async def save_columns(self, save: SaveColumns) -> None:
        await self._called("save_columns")
        self.saved.append(save)

    @activity.defn(name="spreadsheets.analyse")
    async def analyse(self, work: AnalysisInput) -> Analysis:
        await self._called("analyse")
        layout = work.layout.model_copy(update={"header_line": work.layout.header_line or 1})
        return Analysis(layout=layout, columns=tuple(self.columns), fields=FIELDS)

    @activity.defn(name="spreadsheets.stage")
    async def stage(self, work: StageInput) -> Staged:
        await self._called("stage")
        self.layouts.append(work.layout)
        return Staged(rows=BlobRef(name="spreadsheets/x/rows", size=5), total=10)

    @activity.defn(name="spreadsheets.collect_values")
    async def collect_values(self, work: CollectInput) -> CellSummary:
        await self._called("collect_values")
        self._find(self.values)
        return self._summary()

    @activity.defn(name="spreadsheets.decide_cells")
    async def decide_cells(self, decide: DecideCells) -> CellSummary:
        await self._called("decide_cells")
        unknown = [d.id for d in decide.decisions if d.target_id == 404]
        if unknown:
            raise ApplicationError(
                f"value {unknown[0]}: there is no candidate 404",
                type=INVALID_DECISION,
                non_retryable=True,
            )
        for decision in decide.decisions:
            self._open.pop(decision.id, None)
        self.decided.append(decide)
        return self._summary()

    @activity.defn(name="spreadsheets.process")
    async def process(self, work: ProcessInput) -> Processed:
        await self._called("process")
        self.processed.append(work)
        late = self.late.pop(0) if self.late else ()
        self._find(late)
        counts = COUNTS.model_copy(update={"error": self.errors})
        return Processed(counts=counts, parked=len(self._open), cells=self._summary())

    @activity.defn(name="spreadsheets.write_report")
    async def write_report(self, work: ReportInput) -> BlobRef | None:
        await self._called("write_report")
        return BlobRef(name="spreadsheets/x/report.xlsx", size=3)

    @activity.defn(name="spreadsheets.notify")
    async def notify(self, notice: Notice) -> None:
        await self._called("notify")
        self.notices.append(notice)

    def activities(self) -> list[Callable[..., Any]]:
        """For a worker."""
        return [
            self.begin,
            self.record,
            self.finish,
            self.save_columns,
            self.analyse,
            self.stage,
            self.collect_values,
            self.decide_cells,
            self.process,
            self.write_report,
            self.notify,
        ]


@dataclass
class ScriptedUndo:
    """The undo activity."""

    failures: list[Exception] = field(default_factory=list[Exception])
    attempts: int = 0

    @activity.defn(name="spreadsheets.undo")
    async def undo(self, order: UndoOrder) -> UndoResult:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        counts = UndoCounts(deleted=7, restored=2, left_alone=1)
        return UndoResult(uuid=order.uuid, state=UndoState.UNDONE, counts=counts)


@dataclass
class ScriptedRetention:
    """The retention activities, over a list of imports that are due."""

    due: list[str]
    waiting: set[str] = field(default_factory=set[str])
    purged: list[str] = field(default_factory=list[str])
    nows: set[datetime] = field(default_factory=set[datetime])
    stuck: bool = False

    @activity.defn(name="spreadsheets.expired")
    async def expired(self, work: ExpiredInput) -> ExpiredPage:
        self.nows.add(work.now)
        page = tuple(self.due[: work.order.page])
        return ExpiredPage(uuids=page, waiting=tuple(u for u in page if u in self.waiting))

    @activity.defn(name="spreadsheets.purge")
    async def purge(self, work: PurgeInput) -> PurgeResult:
        if self.stuck:
            return PurgeResult()
        self.purged += work.uuids
        self.due = [uuid for uuid in self.due if uuid not in work.uuids]
        return PurgeResult(purged=len(work.uuids))

    @activity.defn(name="spreadsheets.purge_leftovers")
    async def purge_leftovers(self, work: ExpiredInput) -> PurgeResult:
        return PurgeResult(journals=2, uploads=1)

    def activities(self) -> list[Callable[..., Any]]:
        return [self.expired, self.purge, self.purge_leftovers]
