"""Staged rows on their way into chunks; blocking."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from activities.seen_keys import SeenKeys
from activities.spreadsheets.staged_rows import StagedRows
from contracts.spreadsheets import ColumnMapping
from domain.spreadsheets.conversion import HEAD_ROWS
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.records import ParkedRow, SheetChunk, SheetMark
from domain.spreadsheets.types.base import SheetType
from domain.spreadsheets.validation import RowValidator, SourceRow
from domain.spreadsheets.value_book import ValueBook

CHUNK_ROWS: Final = 5_000
"""Rows of one transaction."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of an import are understood.

    Attributes:
        sheet_type: What they are.
        fields: Every field, for this organisation.
        columns: What each column means.
        context: Context of the import.
        book: The meaning of values.
    """

    sheet_type: SheetType
    fields: Sequence[SheetField]
    columns: Sequence[ColumnMapping]
    context: ImportContext
    book: ValueBook

    def validator(self, seen: SeenKeys | None, head: Sequence[SourceRow]) -> RowValidator:
        """A validator for these rows."""
        return RowValidator(
            self.sheet_type, self.fields, self.columns, self.context, self.book, seen, head
        )


class SheetReader:
    """Reads the rows of one round, chunk by chunk.

    In round 0 every row of the file, behind those that are in; later the rows that were parked.
    The same rows give the same chunks whenever they are read.

    Args:
        path: The staged file.
        plan: How rows are understood.
        mark: How far this round has come.
        parked: Rows to read; None: all of the file.
        chunk_rows: Rows of a chunk.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        mark: SheetMark,
        parked: Iterator[ParkedRow] | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._path = path
        self._plan = plan
        self._round = mark.round
        self._number = mark.chunk
        self._wanted = mark.cursor
        self._cursor = 0 if parked is None else mark.cursor
        self._parked = parked
        self._chunk_rows = chunk_rows
        self._held = ExitStack()
        self._rows: Iterator[SourceRow] = iter(())

    def open(self) -> None:
        """Open the file, and settle how it is written."""
        self._staged = self._held.enter_context(closing(StagedRows(self._path)))
        head = list(islice(self._staged.read(), HEAD_ROWS))
        # Of two parked rows of one key the second was refused when it was read first.
        seen = SeenKeys(self._path.parent) if self._parked is None else None
        if seen is not None:
            self._held.callback(seen.close)
        self._validator = self._plan.validator(seen, head)
        if self._parked is None:
            self._rows = self._staged.read()
        else:
            self._rows = self._staged.at(row.offset for row in self._parked)

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def pass_over(self) -> bool:
        """Pass some of the rows that went in before; whether there are none any more."""
        left = min(self._chunk_rows, self._wanted - self._cursor)
        rows = list(islice(self._rows, left))
        if rows:
            self._cursor += len(rows)
            self._validator.pass_over(rows)
        return self._cursor >= self._wanted or not rows

    def next_chunk(self) -> SheetChunk | None:
        """The next rows, or None when there are none."""
        rows = list(islice(self._rows, self._chunk_rows))
        if not rows:
            return None
        self._cursor += len(rows)
        validated = self._validator.validate(rows)
        chunk = SheetChunk(
            number=self._number,
            round=self._round,
            cursor=self._cursor,
            offset=self._staged.position if self._parked is None else rows[-1].line,
            lines=validated.lines,
            main=validated.main,
            targets=validated.targets,
            errors=validated.errors,
            skipped=validated.skipped,
            parked=validated.parked,
            found=validated.found,
        )
        self._number += 1
        return chunk
