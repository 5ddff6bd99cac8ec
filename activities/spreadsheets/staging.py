"""Puts the rows of a spreadsheet aside, once, in a form that can be read from any row on."""

import hashlib
import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from datetime import date
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.scratch import fetched, scratch_folder
from activities.spreadsheets.staged_rows import StagedRows, is_blank, staged_line
from activities.threads import WorkerThread
from adapters.ports import BlobNotFound, Blobs, Documents, SpreadsheetStore
from contracts.base import Contract
from contracts.blobs import BlobRef
from contracts.spreadsheets import Layout, Staged, StageInput
from domain.errors import RuleViolation
from domain.spreadsheets.records import SkippedRow
from domain.spreadsheets.skipped_rows import SkippedRows
from domain.tabular.line_ranges import listed_lines
from domain.tabular.merged import filled_down, merged_down
from domain.tabular.rows import Cell

STEP_SECONDS: Final = 0.3
"""Rows are read for this long at a time: a cancellation request waits no longer."""
SAVE_SECONDS: Final = 1.0
"""Between two notes of how many rows there are."""
_ROWS_BETWEEN_LOOKS: Final = 200


class RowsStaged(Contract):
    """Heartbeat of `spreadsheets.stage`."""

    rows: int


def staged_name(uuid: str, layout: Layout) -> str:
    """Where the rows of an import stand in the blob store, as this layout reads them."""
    digest = hashlib.sha256(layout.model_dump_json().encode()).hexdigest()[:16]
    return f"spreadsheets/{uuid}/rows-{digest}"


@asynccontextmanager
async def fetched_rows(blobs: Blobs, staged: Staged, scratch: Path) -> AsyncGenerator[Path]:
    """Download staged rows for the length of the block.

    A late attempt may put the same bytes in the same place again, so the bytes count and not the
    version of the blob.

    Raises:
        BlobNotFound: They are not there.
        RuleViolation: They are not what was staged.
    """
    with scratch_folder(scratch) as folder:
        path = folder / "rows"
        try:
            found = await blobs.download(staged.rows.name, path)
        except BlobNotFound as error:
            raise BlobNotFound(
                "the rows that were read from the file are not in the blob store any more; "
                "upload the file again"
            ) from error
        if (found.size, found.sha256) != (staged.rows.size, staged.rows.sha256):
            raise RuleViolation(
                "the rows in the blob store have changed since the file was read; "
                "upload the file again"
            )
        yield path


class SpreadsheetStaging:
    """Reads the whole of an uploaded file.

    Args:
        store: Tables.
        blobs: Where files are.
        documents: Opens files.
        scratch: Folder for temporary files.
    """

    def __init__(
        self, store: SpreadsheetStore, blobs: Blobs, documents: Documents, scratch: Path
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._documents = documents
        self._scratch = scratch

    @activity.defn(name="spreadsheets.stage")
    @translate_failures
    async def stage(self, work: StageInput) -> Staged:
        """Put every row below the header aside that holds anything.

        A second run reads the file again and writes the same bytes to the same place.

        Raises:
            ApplicationError: `UnreadableDocument` when the file turns out damaged on the way;
                see `activities.failures` for the others.
        """
        order = work.order
        async with (
            Heartbeater() as heart,
            fetched(self._blobs, order.source.name, self._scratch, expected=order.source) as path,
        ):
            target = path.with_name("rows")
            writing = await self._write(work, path, target, heart)
            await self._store.save_total(order.uuid, writing.rows)
            await self._store.save_skipped_rows(order.uuid, writing.skipped)
            if writing.hidden:
                await self._store.save_hidden_rows(
                    order.uuid, len(writing.hidden), listed_lines(writing.hidden)
                )
            name = staged_name(order.uuid, work.layout)
            # Noted first: a blob without a record would outlive every purge.
            noted = BlobRef(name=name, size=target.stat().st_size)
            await self._store.save_file(order.uuid, noted)
            rows = await self._blobs.upload(target, name)
        return Staged(
            rows=rows,
            total=writing.rows,
            hidden_rows=len(writing.hidden),
            hidden_lines=listed_lines(writing.hidden),
            skipped_rows=sum(row.is_skipped for row in writing.skipped),
        )

    async def _write(
        self, work: StageInput, path: Path, target: Path, heart: Heartbeater
    ) -> "_Writing":
        uuid = work.order.uuid
        async with WorkerThread() as thread:
            writing = _Writing(self._documents, work, path, target)
            try:
                await thread.run(writing.open)
                saved = time.monotonic()
                while not await thread.run(writing.step):
                    heart.beat(RowsStaged(rows=writing.rows))
                    if time.monotonic() - saved > SAVE_SECONDS:
                        await self._store.save_total(uuid, writing.rows)
                        saved = time.monotonic()
            finally:
                await thread.run(writing.close)
        return writing


class _Writing:
    """A file on its way from its reader into another file; blocking.

    Attributes:
        rows: Rows staged so far.
        hidden: Lines of rows among them that the owner's program does not show, once all are read.
        skipped: Rows that are no people, or may be none, once all are read.
    """

    def __init__(self, documents: Documents, work: StageInput, path: Path, target: Path) -> None:
        self._documents = documents
        self._work = work
        self._path = path
        self._target = target
        self._held = ExitStack()
        self._source: Iterator[tuple[int, list[Cell]]] = iter(())
        self._is_filled = False
        self.rows = 0
        self.hidden: Sequence[int] = ()
        self.skipped: Sequence[SkippedRow] = ()
        self._no_people = SkippedRows(work.columns)

    def open(self) -> None:
        layout = self._work.layout
        source = self._held.enter_context(
            self._documents.open_table(
                self._path,
                filename=self._work.order.filename,
                sheet=layout.sheet,
                encoding=layout.encoding,
                delimiter=layout.delimiter,
            )
        )
        self._file = self._held.enter_context(self._target.open("wb"))
        self._table = source
        self._source = source.rows()

    def step(self) -> bool:
        """Work for a moment; return whether everything is done."""
        header = self._work.layout.header_line or 0
        ends = time.monotonic() + STEP_SECONDS
        write = self._file.write
        for seen, (line, cells) in enumerate(self._source, start=1):
            if line > header and not is_blank(cells):
                write(staged_line(line, cells))
                self._no_people.add(line, cells)
                self.rows += 1
            if seen % _ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > ends:
                return False
        if not self._is_filled and self._begin_filled(header):
            return False
        hidden = self._table.hidden_rows
        self.hidden = hidden[bisect_right(hidden, header) :]
        self._file.flush()
        with closing(StagedRows(self._target)) as staged:
            rows = ((row.line, row.cells) for row in staged.read())
            self.skipped = self._no_people.found(rows)
        return True

    def _begin_filled(self, header: int) -> bool:
        """Begin anew where cells are merged down, which stands behind the rows of a sheet."""
        begins = merged_down(self._table.merges, header)
        if not begins:
            return False
        self._file.seek(0)
        self._file.truncate()
        self._is_filled, self.rows = True, 0
        self._no_people = SkippedRows(self._work.columns)
        self._source = filled_down(self._table.rows(), begins, _fills)
        return True

    def close(self) -> None:
        self._held.close()


def _fills(place: int, value: Cell) -> bool:
    return isinstance(value, str | date)
