"""What the activities of schedules need around them: a database, the samples, a report writer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import text

from activities.imports.schedules import ScheduleImports
from activities.imports.store import SqlImportStore
from activities.imports.views import ImportTaskRow, SqlImportTasks
from adapters.database.engine import Database, open_database
from adapters.files.documents import FileDocuments
from adapters.files.tables.source import open_table
from adapters.files.tables.workbooks import XlsxReportWriter
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import environment, message_of, work_of
from tests.support.memory.blobs import MemoryBlobs
from workflows.imports.runs import Closing, HandlerOutcome, ImportState
from workflows.shared.cells import Cell
from workflows.shared.contracts import BlobRef

SAMPLES = Path(__file__).parents[3] / "samples"


@dataclass
class ScheduleSetup:
    """A database, a blob store with the samples, and the activities over them."""

    database: Database
    blobs: MemoryBlobs
    scratch: Path

    def imports(self, store: SqlImportStore | None = None) -> ScheduleImports:
        store = store or SqlImportStore(self.database)
        return ScheduleImports(store, self.blobs, FileDocuments(), XlsxReportWriter(), self.scratch)

    async def load(
        self, blob: str, task: str = "T1", store: SqlImportStore | None = None, **fields: Any
    ) -> HandlerOutcome:
        asked: dict[str, Any] = {"extraction_id": task, "primavera_project_id": "UNIT100", **fields}
        message = message_of("schedule_extraction", blob_name=blob, task_id=task, **asked)
        source = await self.blobs.stat(blob)
        work = work_of(message, source)
        return await environment().run(self.imports(store).load_schedule, work)

    async def change(self, kind: str, **fields: Any) -> HandlerOutcome:
        work = work_of(message_of(kind, **{"task_id": uuid4().hex, **fields}))
        return await environment().run(self.imports().change_activities, work)

    async def put(self, blob: str, content: str) -> None:
        file = self.scratch.with_name(blob)
        file.write_text(content, encoding="utf-8-sig")
        await self.blobs.upload(file, blob)

    async def report(self, report: BlobRef | None) -> list[list[Cell]]:
        assert report is not None
        file = self.scratch.with_name("report.xlsx")
        await self.blobs.download(report.name, file)
        with open_table(file) as source:
            return [cells for _, cells in source.rows()]

    async def closed(self, blob: str, outcome: HandlerOutcome) -> ImportTaskRow:
        """The status row once the import of `load` is completed."""
        asked = {"extraction_id": "T1", "primavera_project_id": "P1"}
        message = message_of("schedule_extraction", blob_name=blob, task_id="T1", **asked)
        closing = Closing(message=message, state=ImportState.COMPLETED, outcome=outcome)
        await SqlImportStore(self.database).close(closing, "w")
        row = await SqlImportTasks(self.database).get("P1", "T1")
        assert row is not None
        return row

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        async with self.database.reading() as connection:
            return [tuple(row) for row in await connection.execute(text(query))]

    async def schedule(self) -> list[list[tuple[Any, ...]]]:
        """Every row of every table, without bookkeeping."""
        columns = "project_id, schedule_id, source_line, version"
        return [
            await self.rows(f"SELECT {columns}, {key} FROM {table} ORDER BY {key}")
            for table, key in (
                ("schedule_projects", "object_id"),
                ("schedule_wbs", "wbs_code"),
                ("schedule_activities", "task_code"),
                ("schedule_relationships", "predecessor_code, successor_code, type"),
                ("schedule_assignments", "task_code, resource_code, role, sequence"),
                ("schedule_udf_values", "entity, entity_code, udf"),
            )
        ]


@asynccontextmanager
async def open_schedule_setup(folder: Path) -> AsyncGenerator[ScheduleSetup]:
    url = fresh_url()
    blobs = MemoryBlobs()
    for path in (*SAMPLES.glob("*.xer"), *SAMPLES.glob("*.xml")):
        await blobs.upload(path, path.name)
    async with open_database(url) as database:
        yield ScheduleSetup(database, blobs, folder / "scratch")


def xer_of(tasks: Sequence[str], links: Sequence[str] = ()) -> str:
    """Activities (id, project, code, duration) and ties (successor, predecessor, projects, type).

    The first activity stands in line 7.
    """
    lines = (
        *("ERMHDR\t22.12", "%T\tPROJECT", "%F\tproj_id\tproj_short_name", "%R\t1\tP1"),
        *("%T\tTASK", "%F\ttask_id\tproj_id\ttask_code\ttarget_drtn_hr_cnt"),
        *(f"%R\t{task}" for task in tasks),
        *("%T\tTASKPRED", "%F\ttask_id\tpred_task_id\tproj_id\tpred_proj_id\tpred_type"),
        *(f"%R\t{link}" for link in links),
    )
    return "\n".join((*lines, "%E", ""))
