"""Settles, chunk by chunk, whether rows of a file are stored ones that are written otherwise."""

from collections.abc import Sequence

from adapters.ports import ImportStore
from contracts.imports import DocumentType, Strategy, TableMessage
from domain.errors import InvalidDocument
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
from domain.imports.tables import SECTION, TableSpec, scope_of
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
        if not chunk.rows:
            return chunk
        await self._check_sections(chunk)
        if self._answer == DISTINCT:
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

    async def _check_sections(self, chunk: RowChunk) -> None:
        """See that no line with a section is stored without one: it would stand there twice.

        Raises:
            InvalidDocument: Lines were stored before headings gave them their sections.
        """
        if SECTION not in self._spec.key or self._message.strategy is Strategy.REPLACE:
            return
        places = [self._names.index(name) for name in (self._spec.key[0], SECTION)]
        columns = code_columns(chunk, self._names)
        found = list(zip(*(columns[place] for place in places), strict=True))
        within = sorted({item for item, section in found if section})
        if not within:
            return
        known = await self._store.known_codes(
            self._key, self._spec.table, scope_of(self._message), self._names, within
        )
        stored = {(codes[places[0]], codes[places[1]]): own for codes, own in known.items()}
        lines = {pair: line for pair, line in zip(found, chunk.lines, strict=True)}
        bare = [
            pair
            for pair in lines
            if pair[1]
            and pair not in stored
            and (pair[0], "") not in lines
            and stored.get((pair[0], "")) is False
        ]
        if bare:
            item, section = bare[0]
            raise InvalidDocument(
                f"item {item!r} on line {lines[bare[0]]} is in the section {section!r}, and is "
                "stored without one: send the file once with strategy 'replace', so that no line "
                "stands twice"
            )
