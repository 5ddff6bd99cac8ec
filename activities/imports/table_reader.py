"""A table file from its first byte to its last chunk of converted rows; blocking."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from typing import Final

from activities.seen_keys import SeenKeys
from adapters.ports import Documents
from contracts.imports import Strategy, TableMessage
from domain.errors import InvalidDocument
from domain.imports.chunks import RowChunk
from domain.imports.header import HEADER_WITHIN, find_header
from domain.imports.tables import TableSpec, scope_of
from domain.imports.validation import RowValidator
from domain.tabular.rows import Cell

CHUNK_ROWS: Final = 5_000
"""Rows of one transaction."""
HEAD_ROWS: Final = 1_000
"""Rows that settle how the columns of a document write numbers and dates."""

_REFUSING: Final = frozenset({Strategy.UPDATE_ONLY, Strategy.APPEND})
"""Strategies under which the store refuses rows, and needs their cells for the report."""


class TableReader:
    """Reads the table that a message names, chunk by chunk.

    The same file gives the same chunks whenever it is read.

    Attributes:
        titles: Header of the report of rejected rows.
        ignored: Titles of columns that mean nothing for the table.
        guessed_encoding: The text's encoding, where neither message nor file gives it.
        rows_read: Rows below the header consumed so far.
        exhausted: There are no rows any more.

    Args:
        documents: Opens files.
        path: The file.
        message: What to import.
        spec: What the table holds.
        chunk_rows: Rows of a chunk.
    """

    def __init__(
        self,
        documents: Documents,
        path: Path,
        message: TableMessage,
        spec: TableSpec,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._documents = documents
        self._path = path
        self._message = message
        self._spec = spec
        self._chunk_rows = chunk_rows
        self._held = ExitStack()
        self._rows: Iterator[tuple[int, list[Cell]]] = iter(())
        self.titles: tuple[str, ...] = ()
        self.ignored: tuple[str, ...] = ()
        self.guessed_encoding: str | None = None
        self.rows_read = 0
        self.exhausted = False

    def open(self) -> None:
        """Open the file, find its header and settle how it is written.

        Raises:
            UnreadableDocument: No table can be read from it.
            InvalidDocument: It has no header with the required columns, or, under `replace`,
                no rows.
        """
        message, spec = self._message, self._spec
        source = self._held.enter_context(
            self._documents.open_table(
                self._path,
                filename=message.filename,
                sheet=message.sheet,
                encoding=message.encoding,
            )
        )
        if message.encoding is None and not (source.encoding or "utf-8").startswith("utf"):
            self.guessed_encoding = source.encoding
        rows = source.rows()
        top = list(islice(rows, HEADER_WITHIN))
        header = find_header(top, spec, source.sheet)
        below = chain((row for row in top if row[0] > header.line), rows)
        head = list(islice(below, HEAD_ROWS))
        self._rows = chain(head, below)
        self.exhausted = not head
        if self.exhausted and message.strategy is Strategy.REPLACE:
            raise InvalidDocument(
                f"there are no rows below the header on line {header.line}; "
                "an empty document must not replace everything"
            )
        self._validator = RowValidator(
            spec,
            scope_of(message),
            header,
            head,
            self._held.enter_context(closing(SeenKeys(self._path.parent))),
            keep_cells=message.strategy in _REFUSING,
        )
        self.titles, self.ignored = self._validator.titles, header.ignored

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def skip(self, rows: int) -> None:
        """Pass rows that went in before; their keys are known afterwards."""
        while self.rows_read < rows and self._next(rows - self.rows_read) is not None:
            pass

    def next_chunk(self) -> RowChunk | None:
        """The next rows, or None when there are none.

        Raises:
            UnreadableDocument: The file turned out damaged on the way.
        """
        return self._next(self._chunk_rows)

    def _next(self, most: int) -> RowChunk | None:
        wanted = min(most, self._chunk_rows)
        rows = list(islice(self._rows, wanted))
        self.exhausted = len(rows) < wanted
        if not rows:
            return None
        self.rows_read += len(rows)
        validated = self._validator.validate(rows)
        return RowChunk(
            table=self._spec.table,
            columns=self._validator.columns,
            rows=validated.rows,
            lines=validated.lines,
            cells=validated.cells,
            rejected=validated.rejected,
            cursor=self.rows_read,
        )
