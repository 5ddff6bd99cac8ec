"""The report: the user's own rows that did not go in, with comments on the cells that are wrong."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.spreadsheets.staged_rows import StagedRows
from activities.spreadsheets.staging import fetched_rows
from activities.threads import WorkerThread, from_thread
from adapters.ports import Blobs, ReportWriter, SpreadsheetStore
from contracts.blobs import BlobRef
from contracts.problems import Problem
from contracts.spreadsheets import ColumnMapping, ReportInput
from domain.spreadsheets.edits import Edits
from domain.tabular.rows import RejectedRow
from domain.tabular.values import storable

_Errors = Iterator[tuple[int, Sequence[Problem]]]


def report_name(uuid: str) -> str:
    """Where the report of an import stands in the blob store."""
    return f"spreadsheets/{uuid}/report.xlsx"


class SpreadsheetReports:
    """Writes reports.

    Args:
        store: Tables.
        blobs: Where files are.
        reports: Writes the spreadsheet.
        scratch: Folder for temporary files.
    """

    def __init__(
        self, store: SpreadsheetStore, blobs: Blobs, reports: ReportWriter, scratch: Path
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._reports = reports
        self._scratch = scratch

    @activity.defn(name="spreadsheets.write_report")
    @translate_failures
    async def write_report(self, work: ReportInput) -> BlobRef | None:
        """Write every row with outcome ERROR, or that docflow skipped, into a spreadsheet.

        Rows are streamed: memory stays bounded. A second run writes the same rows to the same
        place.

        Returns:
            The report; None when there is no such row.
        """
        uuid = work.order.uuid
        edits = Edits(work.columns, await self._store.reviews.operations(uuid))
        skipped = [
            (line, [Problem(line=line, reason=f"skipped: it {reason}")])
            for line, reason in sorted(edits.reasons.items())
        ]
        pages = self._store.errors(uuid)
        first = await anext(pages, None)
        if first is None and not skipped:
            return None
        async with (
            Heartbeater(),
            fetched_rows(self._blobs, work.staged, self._scratch) as path,
        ):
            target = path.with_name("report.xlsx")
            stopped = threading.Event()
            errors = chain(first or (), from_thread(pages, stopped))
            rows = merge(errors, skipped, key=itemgetter(0))
            async with WorkerThread() as thread:
                try:
                    await thread.run(lambda: self._write(path, target, edits, rows))
                finally:
                    stopped.set()
            # Noted first: a blob without a record would outlive every purge.
            noted = BlobRef(name=report_name(uuid), size=target.stat().st_size)
            await self._store.save_file(uuid, noted)
            return await self._blobs.upload(target, noted.name)

    def _write(self, path: Path, target: Path, edits: Edits, errors: _Errors) -> None:
        with closing(StagedRows(path)) as staged:
            rows = _rejected(staged, edits, errors)
            self._reports.write(target, titles_of(edits.columns), rows, comments=True)


def titles_of(columns: Sequence[ColumnMapping]) -> list[str]:
    """Headers by their places in the file; what was left out of the mapping has none."""
    titles = [""] * (1 + max((column.index for column in columns), default=-1))
    for column in columns:
        titles[column.index] = column.header
    return titles


def _rejected(staged: StagedRows, edits: Edits, errors: _Errors) -> Iterator[RejectedRow]:
    for row, problems in staged.pick(errors):
        cells = edits.cells(row.line, row.cells)
        yield RejectedRow(row.line, storable(cells), problems)
