"""Reads a small table whole, where nothing but its rows is to be written."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.imports.rows import INLINE_BYTES, note_of
from activities.imports.table_reader import TableReader
from activities.scratch import scratch_folder
from activities.threads import WorkerThread
from adapters.ports import Blobs, Documents, PortError
from contracts.imports import (
    AnyTableMessage,
    Handler,
    ImportMessage,
    ImportPlan,
    Strategy,
    TableMessage,
)
from domain.errors import InvalidDocument, RuleViolation
from domain.imports.chunks import RowChunk
from domain.imports.leading_zeros import code_columns
from domain.imports.tables import SECTION, TABLES

SMALL_BYTES: Final = INLINE_BYTES
"""Up to this size a document is read before its import begins: twice, where that takes steps."""
_ROW_BY_ROW: Final = frozenset({Strategy.MERGE, Strategy.CREATE_ONLY})
"""Strategies under which a row goes in for what it is, whatever the others are."""


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A table without problems.

    Attributes:
        message: What to import.
        chunk: All of its rows.
        note: What the person who reads the result has to know.
    """

    message: AnyTableMessage
    chunk: RowChunk
    note: str | None


class SmallTables:
    """Reads small tables.

    Args:
        blobs: Where documents are.
        documents: Opens files.
        scratch: Folder for temporary files; a text needs none.
    """

    def __init__(self, blobs: Blobs, documents: Documents, scratch: Path) -> None:
        self._blobs = blobs
        self._documents = documents
        self._scratch = scratch

    async def read(self, message: ImportMessage, plan: ImportPlan) -> SmallTable | None:
        """All rows of a document; None: its import takes the usual steps, which say why."""
        if not isinstance(message, TableMessage) or not _is_simple(message, plan):
            return None
        try:
            return await self._read(message, plan)
        except (PortError, RuleViolation, InvalidDocument):
            # The step that loads rows meets the same, and the run parks or waits there.
            return None

    async def _read(self, message: AnyTableMessage, plan: ImportPlan) -> SmallTable | None:
        etag = None if plan.source is None else plan.source.etag
        blocks = self._blobs.read(message.blob_name, etag=etag)
        content = b"".join([block async for block in blocks])
        if not self._documents.is_container(content):
            return await self._table(message, content, self._scratch)
        with scratch_folder(self._scratch) as folder:
            path = folder / "document"
            await asyncio.to_thread(path.write_bytes, content)
            return await self._table(message, path, folder)

    async def _table(
        self, message: AnyTableMessage, content: Path | bytes, folder: Path
    ) -> SmallTable | None:
        spec = TABLES[message.document_type]
        reading = TableReader(self._documents, content, message, spec, folder=folder)
        async with WorkerThread(inline=isinstance(content, bytes)) as thread:
            try:
                await thread.run(reading.open)
                chunk = await thread.run(reading.next_chunk)
            finally:
                await thread.run(reading.close)
        is_whole = chunk is not None and reading.exhausted and not reading.findings.skipped
        if chunk is None or not is_whole or chunk.rejected or not chunk.rows:
            return None
        if SECTION in chunk.columns and any(code_columns(chunk, [SECTION])[0]):
            # Whether its lines are stored without their sections is looked up by the usual step.
            return None
        return SmallTable(message, chunk, note_of(reading))


def _is_simple(message: AnyTableMessage, plan: ImportPlan) -> bool:
    """Whether a document may go in by a single transaction, as far as its message shows.

    Only the first attempt of a local step tries: a later one does what is known to work.
    """
    step = activity.info()
    return (
        step.is_local
        and step.attempt == 1
        and plan.facts.handler is Handler.LOAD_ROWS
        and plan.source is not None
        and plan.source.size <= SMALL_BYTES
        and message.strategy in _ROW_BY_ROW
        and not message.all_or_nothing
        and message.leading_zeros is None
    )
