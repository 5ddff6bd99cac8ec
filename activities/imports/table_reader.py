"""A table document from its first byte to its last chunk of converted rows; blocking."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from activities.imports.column_table import TOGETHER, ColumnTable, may_be_packed, may_be_plain
from activities.imports.document_tables import DocumentTable, DocumentTables
from activities.shared.scratch import SeenKeys
from adapters.files.documents import FileDocuments
from workflows.imports.findings import Findings, ReportMemory
from workflows.imports.messages import Strategy, TableMessage
from workflows.imports.runs import RowChunk
from workflows.imports.types import TableSpec
from workflows.imports.validation import RowValidator
from workflows.shared.cells import Cell
from workflows.shared.errors import InvalidDocument
from workflows.shared.packed_rows import NotPlain

CHUNK_ROWS: Final = 5_000
"""Rows of one transaction."""

_REFUSING: Final = frozenset({Strategy.UPDATE_ONLY, Strategy.APPEND})
"""Strategies under which the store refuses rows, and needs their cells for the report."""


class TableReader:
    """Reads the tables that a message means, chunk by chunk.

    The same file gives the same chunks whenever it is read. All of it is looked at before the
    first chunk: only whole columns show how they are written.

    Attributes:
        titles: Header of the report of rejected rows.
        findings: What of the document did not become rows, as far as it was read.
        memory: What the report is to remember.
        guessed_encoding: The text's encoding, where neither message nor file gives it.
        rows_read: Rows below the headers consumed so far.
        exhausted: There are no rows any more.

    Args:
        documents: Opens files.
        content: The file; of a small text its bytes.
        message: What to import.
        spec: What the table holds.
        chunk_rows: Rows of a chunk.
        folder: Takes what does not fit into memory; None: that of the file.
        today: Day of the import; None: that of the clock.
    """

    def __init__(
        self,
        documents: FileDocuments,
        content: Path | bytes,
        message: TableMessage,
        spec: TableSpec,
        chunk_rows: int = CHUNK_ROWS,
        *,
        folder: Path | None = None,
        today: date | None = None,
    ) -> None:
        if folder is None:
            assert isinstance(content, Path)
            folder = content.parent
        self._documents = documents
        self._content = content
        self._folder = folder
        self._message = message
        self._today = today or datetime.now(UTC).date()
        self._spec = spec
        self._chunk_rows = chunk_rows
        self._held = ExitStack()
        self._tables: list[DocumentTable] = []
        self._rows: Iterator[tuple[int, list[Cell]]] = iter(())
        self.titles: tuple[str, ...] = ()
        self.findings = Findings()
        self.memory = ReportMemory()
        self.guessed_encoding: str | None = None
        self.rows_read = 0
        self.exhausted = False

    def title(self, name: str) -> str:
        """Return the title of the column of a field; its name if there is no column."""
        return self._validator.title(name)

    @property
    def unmatched_lines(self) -> Sequence[str]:
        """Lines that a person keeps, and on which no row was found that would be left out."""
        return sorted(set(self._message.keep_lines) - self.findings.kept_lines)

    def open(self) -> None:
        """Open the file, choose its tables and settle how they are written.

        Raises:
            UnreadableDocument: No table can be read from it.
            InvalidDocument: It has no header with the required columns, it is for a person to
                say which sheet or column counts, or, under `replace`, there are no rows.
        """
        message = self._message
        self._book = self._held.enter_context(
            self._documents.open_workbook(
                self._content, filename=message.document_name, encoding=message.encoding
            )
        )
        content = self._content
        self._open_tables(
            by_columns=isinstance(content, Path) and may_be_plain(message, self._spec, content)
        )
        encoding = self._tables[0].source.encoding
        if message.encoding is None and not (encoding or "utf-8").startswith("utf"):
            self.guessed_encoding = encoding
        self.exhausted = not any(table.surveyed.rows for table in self._tables)
        if self.exhausted and message.strategy is Strategy.REPLACE:
            raise InvalidDocument(
                f"there are no rows below the header on line {self._tables[0].header_line}; "
                "an empty document must not replace everything"
            )
        self._seen = self._held.enter_context(closing(SeenKeys(self._folder)))
        self._begin(self._tables.pop(0))
        self.titles = self._validator.titles

    def _open_tables(self, *, by_columns: bool) -> None:
        self.findings = Findings()
        tables = DocumentTables(
            *(self._book, self._message, self._spec, self._folder, self.findings),
            self._held,
            today=self._today,
            by_columns=by_columns,
        )
        self._tables = tables.tables()
        self.memory = tables.memory

    def _begin(self, table: DocumentTable) -> None:
        self._validator: RowValidator = table.validator(
            self._message,
            self._spec,
            self._seen,
            self.findings,
            keep_cells=self._message.strategy in _REFUSING or self._spec.has_references,
            pack=may_be_packed(self._message, self._spec),
        )
        self._columns = table.by_columns
        self._packed: Iterator[RowChunk] | None = None
        self._ahead: RowChunk | None = None
        self._rows_in_all = table.surveyed.rows
        self._rows = (
            iter(()) if self._columns else table.rows(self._spec, self.findings.filled_down)
        )

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def skip(self, rows: int) -> None:
        """Pass rows that went in before; their keys are known afterwards."""
        if self._columns is not None:
            self.rows_read = min(rows, self._rows_in_all)
            try:
                self._ahead = self._next_packed(self._columns)
            except NotPlain:
                self._read_row_by_row(self._columns)
            else:
                self.rows_read = min(rows, self._rows_in_all)
            return
        while self.rows_read < rows and self._next(rows - self.rows_read) is not None:
            pass

    def next_chunk(self) -> RowChunk | None:
        """The next rows, or None when there are none.

        Raises:
            UnreadableDocument: The file turned out damaged on the way.
        """
        if self._columns is None:
            return self._next(self._chunk_rows)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self.rows_read = ahead.cursor
            return ahead
        try:
            return self._next_packed(self._columns)
        except NotPlain:
            self._read_row_by_row(self._columns)
        return self._next(self._chunk_rows)

    def _next_packed(self, columns: ColumnTable) -> RowChunk | None:
        if self._packed is None:
            self._packed = columns.chunks(self.rows_read, TOGETHER * self._chunk_rows)
        chunk = next(self._packed, None)
        if chunk is not None:
            self.rows_read = chunk.cursor
        self.exhausted = self.rows_read == self._rows_in_all
        return chunk

    def _read_row_by_row(self, columns: ColumnTable) -> None:
        """Continue behind the rows that were plain, as another attempt would."""
        columns.close()
        done, self.rows_read = self.rows_read, 0
        self._open_tables(by_columns=False)
        self._begin(self._tables.pop(0))
        self.skip(done)

    def _next(self, most: int) -> RowChunk | None:
        wanted = min(most, self._chunk_rows)
        rows = self._take(wanted)
        self.exhausted = len(rows) < wanted and not self._tables
        if not rows:
            return None
        self.rows_read += len(rows)
        validated = self._validator.validate(rows)
        return RowChunk(
            table=self._spec.table,
            columns=validated.columns,
            rows=validated.rows,
            lines=validated.lines,
            cells=validated.cells,
            rejected=validated.rejected,
            cursor=self.rows_read,
        )

    def _take(self, wanted: int) -> Sequence[tuple[int, list[Cell]]]:
        """The next rows of one table; of the next table where it has none any more."""
        while not (rows := list(islice(self._rows, wanted))) and self._tables:
            self._begin(self._tables.pop(0))
        return rows
