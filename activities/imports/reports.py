"""The report of rejected rows: the user's own rows, each with what is wrong with it."""

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

from activities.scratch import scratch_folder
from activities.threads import WorkerThread, from_thread
from adapters.ports import Blobs, ImportStore, ReportWriter
from contracts.blobs import BlobRef
from contracts.imports import PROBLEMS_IN_RESULT, Problem, encoded
from domain.imports.chunks import TaskKey
from domain.imports.memory import ReportMemory
from domain.tabular.rows import RejectedRow, SkippedTable


def report_name(key: TaskKey) -> str:
    """Where the report of an import stands in the blob store."""
    return f"reports/{encoded(key.project_id)}/{encoded(key.task_id)}.xlsx"


async def first_problems(store: ImportStore, key: TaskKey) -> tuple[Problem, ...]:
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
    reports: ReportWriter,
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
