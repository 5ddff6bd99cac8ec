"""Settles, chunk by chunk, whether rows of a file are stored ones that are written otherwise."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from activities.imports.table_reader import TableReader
from activities.threads import WorkerThread
from adapters.ports import ImportStore
from contracts.imports import DocumentType, Strategy, TableMessage
from domain.errors import InvalidDocument
from domain.imports.chunks import RowChunk, TaskKey
from domain.imports.leading_zeros import (
    DISTINCT,
    QUESTION,
    code_columns,
    code_fields,
    codes_of,
    may_differ,
    settled,
    spellings,
)
from domain.imports.tables import SECTION, TableSpec, scope_of
from domain.tabular.packed import PackedRows

_ITEMS: Final = 200_000
"""Items of a file among which those that stand once are looked for."""


class CodeSpelling:
    """Compares the codes of one load with those that its table holds.

    Args:
        store: Tables, and the answers that people gave.
        message: What to import.
        kind: Type of its document.
        spec: What the table holds.
        again: Reads the document once more; None: stored rows are not to change before all of
            it is read.
    """

    def __init__(
        self,
        store: ImportStore,
        message: TableMessage,
        kind: DocumentType,
        spec: TableSpec,
        again: TableReader | None = None,
    ) -> None:
        self._again = again
        self._single: Mapping[str, str] | None = None
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

        A stored line whose item stands once in the table and once in the file gets its section.

        Raises:
            InvalidDocument: Other lines were stored before headings gave them their sections.
        """
        if SECTION not in self._spec.key or self._message.strategy is Strategy.REPLACE:
            return
        places = [self._names.index(name) for name in (self._spec.key[0], SECTION)]
        columns = code_columns(chunk, self._names)
        found = list(zip(*(columns[place] for place in places), strict=True))
        within = sorted({item for item, section in found if section})
        if not within:
            return
        lines = {pair: line for pair, line in zip(found, chunk.lines, strict=True)}
        bare = await self._without_section(lines, within)
        if bare and self._again is not None:
            if self._single is None:
                self._single = await _single_items(self._again)
            sections = {item: section for item, section in bare if item in self._single}
            table, scope = self._spec.table, scope_of(self._message)
            if sections:
                await self._store.give_sections(self._key, table, scope, sections)
            bare = await self._without_section(lines, within)
        if bare:
            item, section = bare[0]
            raise InvalidDocument(
                f"item {item!r} on line {lines[bare[0]]} is in the section {section!r}, and is "
                "stored without one: send the file once with strategy 'replace', so that no line "
                "stands twice"
            )

    async def _without_section(
        self, lines: Mapping[tuple[str, str], int], items: Sequence[str]
    ) -> Sequence[tuple[str, str]]:
        """Items and sections of a file, where the item is stored without a section alone."""
        known = await self._store.known_codes(
            self._key, self._spec.table, scope_of(self._message), self._names, items
        )
        places = [self._names.index(name) for name in (self._spec.key[0], SECTION)]
        stored = {(codes[places[0]], codes[places[1]]): own for codes, own in known.items()}
        return [
            pair
            for pair in lines
            if pair[1]
            and pair not in stored
            and (pair[0], "") not in lines
            and stored.get((pair[0], "")) is False
        ]


async def _single_items(reading: TableReader) -> Mapping[str, str]:
    """Items that stand once in a document, and their sections; none of a very long one."""
    found: dict[str, str | None] = {}
    async with WorkerThread() as thread:
        with closing(reading):
            await thread.run(reading.open)
            while (chunk := await thread.run(reading.next_chunk)) is not None:
                for item, section in codes_of(chunk, ("item_code", SECTION)):
                    found[item] = None if item in found else section
                if len(found) > _ITEMS:
                    return {}
    return {item: section for item, section in found.items() if section}
