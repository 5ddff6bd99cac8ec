"""The rows behind outcomes: whom each is about, and its cells, as long as they are kept."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from activities.spreadsheets.staged_rows import rows_of
from activities.spreadsheets.staging import staged_name
from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.spreadsheets.views import SpreadsheetRow, SqlSpreadsheetViews
from adapters.ports import BlobNotFound, Blobs
from contracts.spreadsheets import MappingStatus
from domain.spreadsheets.checked_rows import SourceRow
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.types.people import EMAIL, FIRST_NAME, LAST_NAME
from domain.tabular.values import readable
from workers.services.spreadsheets.choices import Choices

_SHOWN: Final = 200
"""Characters of a cell."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell of a mapped column that is not blank."""

    column: str
    """Header, as it stands in the file."""
    field: str
    """Name of the field that the column fills."""
    title: str
    """What people call the field."""
    text: str


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row as it was imported, corrections of the review included."""

    name: str
    """Whom it is about, or else its first cell; "" where it is blank."""
    cells: Sequence[ShownCell]


class ResultRows:
    """Reads some rows of an import.

    Args:
        store: Tables, rows of reviews.
        views: Tables, columns.
        blobs: Where staged rows are.
        choices: Titles of fields.
    """

    def __init__(
        self,
        store: SqlSpreadsheetStore,
        views: SqlSpreadsheetViews,
        blobs: Blobs,
        choices: Choices,
    ) -> None:
        self._reviews, self._views, self._blobs = store.reviews, views, blobs
        self._choices = choices

    async def read(self, row: SpreadsheetRow, lines: Sequence[int]) -> Mapping[int, ShownRow]:
        """Rows by their numbers; none when the rows of the import are no longer kept."""
        if not lines:
            return {}
        wanted = frozenset(lines)
        is_reviewed = await self._reviews.state(row.uuid) is not None
        found = await (self._reviewed if is_reviewed else self._staged)(row, wanted)
        if not found:
            return {}
        operations = await self._reviews.operations(row.uuid) if is_reviewed else ()
        titles = {each.name: each.title for each in await self._choices.fields(row)}
        columns = (await self._views.columns(row.uuid)).mappings
        edits = Edits(columns, operations, titles)
        return {
            each.line: _shown(
                each._replace(cells=edits.cells(each.line, each.cells)), edits, titles
            )
            for each in found
        }

    async def _reviewed(self, row: SpreadsheetRow, wanted: Collection[int]) -> Sequence[SourceRow]:
        blocks = await self._reviews.blocks_with(row.uuid, sorted(wanted))
        return [each for block in blocks for each in rows_of(block) if each.line in wanted]

    async def _staged(self, row: SpreadsheetRow, wanted: Collection[int]) -> Sequence[SourceRow]:
        """Stream the staged rows up to the last that is wanted; memory stays bounded."""
        found: list[SourceRow] = []
        first, last = min(wanted), max(wanted)
        rest = b""
        try:
            async with aclosing(self._blobs.read(staged_name(row.uuid, row.layout))) as pieces:
                async for piece in pieces:
                    end = piece.rfind(b"\n") + 1
                    if not end:
                        rest += piece
                        continue
                    block, rest = rest + piece[:end], piece[end:]
                    reached = _last_line(block)
                    if reached < first:
                        continue
                    found += await asyncio.to_thread(_picked, block, wanted)
                    if reached >= last:
                        break
        except BlobNotFound:
            return ()
        return found


def _picked(block: bytes, wanted: Collection[int]) -> Sequence[SourceRow]:
    return [row for row in rows_of(block) if row.line in wanted]


def _last_line(block: bytes) -> int:
    begins = block.rfind(b"\n", 0, len(block) - 1) + 1
    return next(iter(rows_of(block[begins:]))).line


def _shown(row: SourceRow, edits: Edits, titles: Mapping[str, str]) -> ShownRow:
    cells: dict[str, ShownCell] = {}
    for column in edits.columns:
        if column.target is None or column.status is MappingStatus.IGNORED:
            continue
        cell = row.cells[column.index] if column.index < len(row.cells) else None
        if text := readable(cell, _SHOWN):
            title = titles.get(column.target, column.header)
            cells[column.target] = ShownCell(column.header, column.target, title, text)
    named = [cells[each.name].text for each in (FIRST_NAME, LAST_NAME) if each.name in cells]
    if not named:
        rest = [cells[EMAIL.name]] if EMAIL.name in cells else list(cells.values())
        named = [each.text for each in rest[:1]]
    return ShownRow(" ".join(named), list(cells.values()))
