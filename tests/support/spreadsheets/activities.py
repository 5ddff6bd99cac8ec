"""A club with its database and blobs, and imports that go through real activities."""

import csv
import io
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from activities.spreadsheets.analysis import SpreadsheetAnalysis
from activities.spreadsheets.lifecycle import SpreadsheetLifecycle
from activities.spreadsheets.rows import SpreadsheetReports, SpreadsheetRows
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.staging import SpreadsheetStaging
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.values import SpreadsheetValues
from adapters.database.engine import Database, open_database
from adapters.database.models.base import metadata
from adapters.files.documents import FileDocuments
from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import XlsxReportWriter
from adapters.ports.blobs import Blobs
from tests.support.imports.activities import environment
from tests.support.memory.blobs import MemoryBlobs
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellRule,
    CellSummary,
    ColumnMapping,
    Layout,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    Analysis,
    AnalysisInput,
    CollectInput,
    DecideCells,
    Finishing,
    Processed,
    ProcessInput,
    RowCounts,
    SpreadsheetInput,
    SpreadsheetResult,
    Staged,
    StageInput,
    StatusRecord,
)

NOW = datetime(2025, 3, 4, 12, tzinfo=UTC)
ORGANISATION = 1
EVENT = 7
JUNIOR, SENIOR, MASTERS = 42, 43, 44
SHIRT = 5

_CLUB: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "events": [
        {"id": EVENT, "organisation_id": ORGANISATION, "name": "City Marathon"},
        {"id": 8, "organisation_id": 2, "name": "Somebody else's"},
    ],
    "event_categories": [
        {"id": id, "event_id": EVENT, "name": name, "spellings": "[]"}
        for id, name in (
            (JUNIOR, "Junior (U18)"),
            (SENIOR, "Senior (18+)"),
            (MASTERS, "Masters (40+)"),
        )
    ],
    "custom_lists": [
        {
            "id": SHIRT,
            "organisation_id": ORGANISATION,
            "key": "T_SHIRT",
            "name": "T-shirt",
            "open": True,
        }
    ],
    "custom_list_items": [
        {"id": id, "custom_list_id": SHIRT, "name": name} for id, name in ((51, "S"), (52, "M"))
    ],
}


HEADER = ("First name", "Last name", "Email", "Notes")
MIXED = (
    HEADER,
    ("Anna", "A", "anna@example.org", "=1+1"),
    ("Bob", "B", "no mail", "=HYPERLINK(1)"),
    ("Cleo", "C", "cleo@example.org", ""),
    ("Dan", "D", "dan@example.org", ""),
    ("", "", "neither", ""),
)
"""Three rows that are right, two that are not."""


def table(*rows: Sequence[Any], encoding: str = "utf-8", delimiter: str = ",") -> bytes:
    """A CSV file."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode(encoding)


@dataclass
class SpreadsheetSetup:
    """Everything that the activities of the pipeline ask for, in one folder."""

    folder: Path
    database: Database
    store: SqlSpreadsheetStore
    blobs: Blobs = field(default_factory=MemoryBlobs)
    documents: FileDocuments = field(default_factory=FileDocuments)
    types: SheetTypes = field(default_factory=SheetTypes)
    chunk_rows: int = 3

    @property
    def scratch(self) -> Path:
        """Folder for temporary files."""
        return self.folder / "scratch"

    @property
    def lifecycle(self) -> SpreadsheetLifecycle:
        """First and last steps."""
        return SpreadsheetLifecycle(self.store)

    @property
    def analysis(self) -> SpreadsheetAnalysis:
        """Looks at files."""
        return SpreadsheetAnalysis(self.store, self.blobs, self.documents, self.types, self.scratch)

    @property
    def staging(self) -> SpreadsheetStaging:
        """Puts rows aside."""
        return SpreadsheetStaging(self.store, self.blobs, self.documents, self.types, self.scratch)

    @property
    def values(self) -> SpreadsheetValues:
        """Collects and decides values."""
        return SpreadsheetValues(self.store, self.blobs, self.types, self.scratch)

    @property
    def rows(self) -> SpreadsheetRows:
        """Writes rows."""
        return SpreadsheetRows(self.store, self.blobs, self.types, self.scratch, self.chunk_rows)

    @property
    def reports(self) -> SpreadsheetReports:
        """Writes reports."""
        return SpreadsheetReports(self.store, self.blobs, XlsxReportWriter(), self.scratch)

    async def upload(self, content: bytes, **fields: Any) -> SpreadsheetInput:
        """Put a file into the blob store and open its import."""
        own = str(uuid.uuid4())
        path = self.folder / "upload"
        path.write_bytes(content)
        source = await self.blobs.upload(path, f"spreadsheets/{own}/source")
        given = {"filename": "registrations.csv", "by": "anna", "context_id": EVENT, **fields}
        order = SpreadsheetInput.model_validate(
            {
                "uuid": own,
                "organisation_id": ORGANISATION,
                "import_type": "EVENT_PARTICIPANT",
                "source": source,
                **given,
            }
        )
        await environment().run(self.lifecycle.begin, order)
        return order

    async def analyse(
        self, order: SpreadsheetInput, layout: Layout | None = None, version: int = 1
    ) -> Analysis:
        """Look at the top of a file."""
        work = AnalysisInput(order=order, layout=layout or order.layout, version=version)
        return await environment().run(self.analysis.analyse, work)

    async def stage(
        self, order: SpreadsheetInput, layout: Layout, columns: tuple[ColumnMapping, ...] = ()
    ) -> Staged:
        """Put the rows of a file aside."""
        work = StageInput(order=order, layout=layout, columns=columns)
        return await environment().run(self.staging.stage, work)

    async def prepare(self, content: bytes, **fields: Any) -> "StagedSpreadsheet":
        """Everything up to the values; columns as they matched by themselves."""
        order = await self.upload(content, **fields)
        analysis = await self.analyse(order)
        staged = await self.stage(order, analysis.layout, analysis.columns)
        return StagedSpreadsheet(self, order, analysis, staged)

    async def finished(self) -> "StagedSpreadsheet":
        """An import of `MIXED` that is completed."""
        prepared = await self.prepare(table(*MIXED))
        await prepared.process()
        await prepared.finish()
        return prepared

    async def select(self, name: str, columns: str) -> list[tuple[Any, ...]]:
        """These columns of every row of a table, by id."""
        target = metadata.tables[name]
        query = select(*(target.c[column] for column in columns.split())).order_by(
            *target.primary_key.columns
        )
        async with self.database.reading() as connection:
            return [tuple(row) for row in await connection.execute(query)]

    async def count(self, name: str) -> int:
        """How many rows a table holds."""
        query = select(func.count()).select_from(metadata.tables[name])
        async with self.database.reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def outcomes(self) -> dict[int, str]:
        """Outcome of each line, of every import there is."""
        rows = await self.select("spreadsheet_results", "line outcome")
        return dict(sorted(rows))

    async def read(self, name: str) -> list[list[Any]]:
        """Rows of a spreadsheet in the blob store."""
        path = self.folder / "read"
        await self.blobs.download(name, path)
        with open_table(path) as source:
            return [cells for _, cells in source.rows()]


@dataclass(frozen=True)
class StagedSpreadsheet:
    """An import whose rows are put aside and whose columns are known."""

    setup: SpreadsheetSetup
    order: SpreadsheetInput
    analysis: Analysis
    staged: Staged

    @property
    def columns(self) -> tuple[ColumnMapping, ...]:
        """What each column means."""
        return self.analysis.columns

    async def collect(self) -> CellSummary:
        """Collect the values."""
        work = CollectInput(order=self.order, staged=self.staged, columns=self.columns)
        return await environment().run(self.setup.values.collect_values, work)

    async def ids(self) -> dict[str, int]:
        """Id of each value's mapping."""
        pages = [page async for page in self.setup.store.mappings(self.order.uuid)]
        return {mapping.value: mapping.id for page in pages for mapping in page}

    async def decide(self, version: int = 2, *, confirm: bool = False, **said: Any) -> CellSummary:
        """Decide values: each is given as a target id, `ignore`, `create` or `confirm`."""
        ids = await self.ids()
        decisions = tuple(
            CellDecision(id=ids[value], target_id=what)
            if isinstance(what, int)
            else CellDecision.model_validate({"id": ids[value], what: True})
            for value, what in said.items()
        )
        return await self.decide_these(decisions, version, confirm=confirm)

    async def decide_these(
        self,
        decisions: tuple[CellDecision, ...],
        version: int = 2,
        *,
        rules: tuple[CellRule, ...] = (),
        confirm: bool = False,
    ) -> CellSummary:
        """Take decisions and rules as they are."""
        work = DecideCells(
            order=self.order,
            version=version,
            decisions=decisions,
            rules=rules,
            by="anna",
            at=NOW,
            confirm=confirm,
        )
        return await environment().run(self.setup.values.decide_cells, work)

    async def process(self, round: int = 0, *, counting: bool = False) -> Processed:
        """Go through the rows."""
        work = self.work(round).model_copy(update={"counting": counting})
        return await environment().run(self.setup.rows.process, work)

    def record(self, state: SpreadsheetState, sequence: int = 1) -> StatusRecord:
        """A transition."""
        return StatusRecord(
            uuid=self.order.uuid, sequence=sequence, state=state, assignee="anna", at=NOW
        )

    async def finish(self, state: SpreadsheetState = SpreadsheetState.COMPLETED) -> RowCounts:
        """Write the end of the import."""
        result = SpreadsheetResult(uuid=self.order.uuid, state=state)
        finishing = Finishing(result=result, record=self.record(state))
        return await environment().run(self.setup.lifecycle.finish, finishing)

    def work(self, round: int = 0) -> ProcessInput:
        """Input of `spreadsheets.process`."""
        return ProcessInput(order=self.order, staged=self.staged, columns=self.columns, round=round)


@asynccontextmanager
async def open_spreadsheet_setup(url: str, folder: Path) -> AsyncGenerator[SpreadsheetSetup]:
    """A club in a migrated, empty database."""
    async with open_database(url) as database:
        async with database.transaction() as connection:
            for name, rows in _CLUB.items():
                await connection.execute(metadata.tables[name].insert(), list(rows))
        store, types = SqlSpreadsheetStore(database), SheetTypes(database)
        yield SpreadsheetSetup(folder, database, store, types=types)


class FailingStore:
    """A store one of whose methods does something else before or after some of its calls.

    Args:
        store: The store.
        method: Name of the method.
        before: Called with the number of the call, from 1, before it is made.
        after: Called with the number of the call when it has returned.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        method: str,
        *,
        before: Callable[[int], None] = lambda call: None,
        after: Callable[[int], None] = lambda call: None,
    ) -> None:
        self._store = store
        self._method = method
        self._before = before
        self._after = after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name != self._method:
            return real

        async def wrapped(*args: Any, **named: Any) -> Any:
            self.calls += 1
            self._before(self.calls)
            result = await real(*args, **named)
            self._after(self.calls)
            return result

        return wrapped
