"""Settles, chunk by chunk, whether codes that differ only in leading zeros are the same."""

from collections.abc import Sequence

from adapters.ports import ImportStore
from contracts.imports import DocumentType, TableMessage
from domain.imports.chunks import RowChunk, TaskKey
from domain.imports.leading_zeros import (
    DISTINCT,
    QUESTION,
    code_columns,
    code_fields,
    may_differ,
    settled,
    spellings,
)
from domain.imports.tables import TableSpec, scope_of
from domain.tabular.packed import PackedRows


class CodeSpelling:
    """Compares the codes of one load with those that its table holds.

    Args:
        store: Tables, and the answers that people gave.
        message: What to import.
        kind: Type of its document.
        spec: What the table holds.
    """

    def __init__(
        self, store: ImportStore, message: TableMessage, kind: DocumentType, spec: TableSpec
    ) -> None:
        self._store = store
        self._message = message
        self._spec = spec
        self._kind = kind
        self._names = code_fields(spec)
        self._key = TaskKey(message.project_id, message.task_id)
        self._answer: str | None = None
        self._lengths: Sequence[int] = ()

    async def begin(self) -> None:
        """Look up what is known; keep the answer that the message gives."""
        given = self._message.leading_zeros
        kind = self._kind
        if given is not None:
            await self._store.remember(self._key, kind, QUESTION, given)
            self._answer = given
        else:
            self._answer = await self._store.remembered(self._key.project_id, kind, QUESTION)
        if self._answer != DISTINCT:
            self._lengths = await self._store.zero_led_lengths(
                self._key, self._spec.table, scope_of(self._message), self._names
            )

    async def settle(self, chunk: RowChunk) -> RowChunk:
        """The chunk with its codes as they are known.

        Raises:
            InvalidDocument: Some differ from known ones in leading zeros only, and no person has
                said whether they are the same.
        """
        if self._answer == DISTINCT or not chunk.rows:
            return chunk
        rows = chunk.rows
        if isinstance(rows, PackedRows) and not rows.zero_led and not self._lengths:
            return chunk
        columns = code_columns(chunk, self._names)
        if not may_differ(columns, self._lengths):
            return chunk
        found = list(zip(*columns, strict=True))
        known = await self._store.known_codes(
            self._key,
            self._spec.table,
            scope_of(self._message),
            self._names,
            spellings(found, self._lengths),
        )
        return settled(chunk, self._names, known, self._answer)
