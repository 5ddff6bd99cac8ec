"""What cells and codes mean beside stored rows: found, made, refused, or asked about."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, Protocol

from activities.imports.store import SqlImportStore
from activities.imports.table_reader import TableReader
from activities.shared.failures import WorkerThread
from adapters.types.references import Referred, key_meant, row_made
from adapters.types.standing import ReadStored, broken_as_stored
from workflows.imports.messages import Strategy, TableMessage, TypeName
from workflows.imports.runs import RowChunk, TaskKey
from workflows.imports.types import TableSpec, scope_of
from workflows.imports.validation import (
    DISTINCT,
    QUESTION,
    code_columns,
    code_fields,
    codes_of,
    may_differ,
    settled,
    spellings,
)
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import standing_keys
from workflows.shared.errors import InvalidDocument
from workflows.shared.packed_rows import PackedRows
from workflows.shared.sections import SECTION

_NAMED: Final = 5
"""Unknown values that a question lists."""
_SHOWN: Final = 60


class ReferredRows(Protocol):
    """Rows that others refer to; see `SqlImportStore`."""

    async def referred(
        self, referred: Referred, scope: Mapping[str, Any], values: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """The keys that some values mean."""
        ...

    async def make_referred(
        self,
        key: TaskKey,
        referred: Referred,
        scope: Mapping[str, Any],
        values: Sequence[tuple[Any, int]],
    ) -> None:
        """Make rows that hold a key alone."""
        ...


class References:
    """Settles the references of one load.

    Args:
        store: Where the rows are.
        key: The import.
        spec: What its table holds.
        scope: Values of the columns that its rows share.
        referred: What each field of kind reference refers to, by name.
        title: The title of the column of a field.
        again: Reads the document once more, for rows that refer to others of the same file; None:
            no row of it is new.
    """

    def __init__(
        self,
        store: ReferredRows,
        key: TaskKey,
        spec: TableSpec,
        scope: Mapping[str, str],
        referred: Mapping[str, Referred],
        title: Callable[[str], str],
        again: Callable[[], TableReader] | None,
    ) -> None:
        self._title = title
        self._store = store
        self._key = key
        self._spec = spec
        self._scope = scope
        self._referred = referred
        self._again = again
        self._own: frozenset[str] | None = None

    async def settle(self, chunk: RowChunk) -> RowChunk:
        """The chunk with the keys that its cells mean, without rows that mean nothing known.

        Raises:
            InvalidDocument: A person has to decide about a value first.
        """
        for name, referred in self._referred.items():
            if name in chunk.columns and chunk.rows:
                chunk = await self._settle(chunk, name, referred)
        return chunk

    async def _settle(self, chunk: RowChunk, name: str, referred: Referred) -> RowChunk:
        place = chunk.columns.index(name)
        cells: list[str | None] = [row[place] for row in chunk.rows]
        wanted = sorted({cell for cell in cells if cell is not None})
        keys = await self._store.referred(referred, self._scope, wanted)
        several = {each: own for each, own in keys.items() if len(own) > 1}
        known = {each: own[0] for each, own in keys.items() if len(own) == 1}
        missing = [each for each in wanted if each not in known]
        if missing and referred.table == self._spec.table and self._again is not None:
            own = await self._keys_of_file(self._again)
            meant = ((each, key_meant(referred, each)) for each in missing)
            known.update((each, key) for each, key in meant if key in own)
            missing = [each for each in missing if each not in known]
        refused: dict[str, str] = {}
        if missing and referred.unknown == "create":
            lines = {cell: line for cell, line in zip(cells, chunk.lines, strict=True) if cell}
            made: dict[Any, int] = {}
            for each in missing:
                key, reason = row_made(referred, self._scope, each)
                if reason is None:
                    made.setdefault(key, lines[each])
                    known[each] = str(key)
                else:
                    refused[each] = reason
            await self._store.make_referred(self._key, referred, self._scope, [*made.items()])
        if missing and referred.unknown == "ask":
            raise InvalidDocument(_question(name, missing, several, referred))
        return _replaced(
            *(chunk, place, known),
            lambda line, cell: _problem(
                *(self._title(name), line, cell, several, referred), refused.get(cell)
            ),
        )

    async def _keys_of_file(self, again: Callable[[], TableReader]) -> frozenset[str]:
        """The keys of the rows of the document that go in."""
        if self._own is None:
            found: list[tuple[str, Sequence[str]]] = []
            async with WorkerThread() as thread:
                with closing(again()) as reading:
                    await thread.run(reading.open)
                    while (chunk := await thread.run(reading.next_chunk)) is not None:
                        found += await self._needs(chunk)
            self._own = standing_keys(found)
        return self._own

    async def _needs(self, chunk: RowChunk) -> list[tuple[str, Sequence[str]]]:
        """Key of each row that refers to no unknown row of another table, and what it needs."""
        place = chunk.columns.index(self._spec.key[0])
        rows = list(chunk.rows)
        needs: list[list[str]] = [[] for _ in rows]
        refused: set[int] = set()
        for name, referred in self._referred.items():
            if name not in chunk.columns or referred.unknown == "create":
                continue
            column = chunk.columns.index(name)
            wanted = sorted({row[column] for row in rows if row[column] is not None})
            keys = await self._store.referred(referred, self._scope, wanted)
            for i, row in enumerate(rows):
                if row[column] is None or len(keys.get(row[column], ())) == 1:
                    continue
                if referred.table == self._spec.table:
                    needs[i].append(key_meant(referred, row[column]))
                else:
                    refused.add(i)
        return [(str(row[place]), needs[i]) for i, row in enumerate(rows) if i not in refused]


def _question(
    name: str, missing: Sequence[str], several: Mapping[str, Sequence[str]], referred: Referred
) -> str:
    """What a person has to decide about values that mean no row, or several."""
    unclear = [each for each in missing if each in several]
    absent = [each for each in missing if each not in several]
    said: list[str] = []
    if absent:
        listed = ", ".join(map(repr, absent[:_NAMED]))
        more = f" and {len(absent) - _NAMED:,} more" if len(absent) > _NAMED else ""
        said.append(
            f"{name}: {listed}{more}: not in {referred.title}. Import these rows there and retry, "
            "or correct the file"
        )
    for each in unclear[:_NAMED]:
        said.append(f"{name}: {each!r} {_unclear(several[each], referred)}")
    if len(unclear) > _NAMED:
        said.append(f"{name}: and {len(unclear) - _NAMED:,} more that mean several rows")
    return "; ".join(said)


def _unclear(keys: Sequence[str], referred: Referred) -> str:
    """What is said of a value that several rows are called."""
    shown = " and ".join(each[:_SHOWN] for each in keys[:2])
    more = f" (and {len(keys) - 2:,} more)" if len(keys) > 2 else ""
    return (
        f"means {len(keys):,} rows of {referred.title}, whose {referred.key} is {shown}{more}; "
        f"write {referred.key} in its place"
    )


def _problem(
    title: str,
    line: int,
    cell: str,
    several: Mapping[str, Sequence[str]],
    referred: Referred,
    refused: str | None,
) -> Problem:
    keys = several.get(cell)
    reason = f"is not in {referred.title}" if keys is None else _unclear(keys, referred)
    if refused is not None:
        reason += f", and cannot be created there: {refused}"
    return Problem(line=line, column=title, value=cell[:200], reason=reason[:500])


def _replaced(
    chunk: RowChunk,
    place: int,
    known: Mapping[str, str],
    problem: Callable[[int, str], Problem],
) -> RowChunk:
    rows: list[tuple[Any, ...]] = []
    lines: list[int] = []
    cells: list[Sequence[Any]] = []
    rejected = list(chunk.rejected)
    for number, (row, line) in enumerate(zip(chunk.rows, chunk.lines, strict=True)):
        cell = row[place]
        read = chunk.cells[number] if chunk.cells else ()
        if cell is not None and cell not in known:
            rejected.append(RejectedRow(line, read, (problem(line, cell),)))
            continue
        value = None if cell is None else known[cell]
        rows.append((*row[:place], value, *row[place + 1 :]))
        lines.append(line)
        cells.append(read)
    kept = cells if chunk.cells else ()
    return replace(chunk, rows=rows, lines=lines, cells=kept, rejected=rejected)


class StoredRules:
    """Judges the rules of one load that need values which the file does not give.

    Args:
        read: Reads stored rows of the type; None: all rows are new.
        spec: What its table holds.
        strategy: How its rows meet stored ones.
        title: The title of the column of a field.
    """

    def __init__(
        self,
        read: ReadStored | None,
        spec: TableSpec,
        strategy: Strategy,
        title: Callable[[str], str],
    ) -> None:
        self._read = read or _no_rows
        self._spec = spec
        self._strategy = strategy
        self._title = title

    async def settle(self, chunk: RowChunk) -> RowChunk:
        """The chunk without the rows that break a rule as they would be stored."""
        declared = self._spec.declared
        if declared is None or not self._spec.kept_fields(self._strategy, chunk.columns):
            return chunk
        found = await broken_as_stored(
            *(self._read, declared, chunk.columns, chunk.rows, self._strategy.value),
            blanks_keep=False,
            title=self._title,
        )
        problems: dict[int, list[Problem]] = {}
        for place, name, value, reason in found:
            problem = Problem(
                line=chunk.lines[place],
                column=self._title(name),
                value=None if value is None else str(value)[:200],
                reason=reason[:500],
            )
            problems.setdefault(place, []).append(problem)
        return _without(chunk, problems)


async def _no_rows(keys: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Sequence[None]:
    return [None] * len(keys)


def _without(chunk: RowChunk, problems: Mapping[int, Sequence[Problem]]) -> RowChunk:
    """A chunk whose wrong rows, by place, are rejected."""
    if not problems:
        return chunk
    kept = [n for n in range(len(chunk.rows)) if n not in problems]
    rejected = [
        RejectedRow(chunk.lines[n], chunk.cells[n] if chunk.cells else (), tuple(found))
        for n, found in problems.items()
    ]
    return replace(
        chunk,
        rows=[chunk.rows[n] for n in kept],
        lines=[chunk.lines[n] for n in kept],
        cells=[chunk.cells[n] for n in kept] if chunk.cells else (),
        rejected=[*chunk.rejected, *rejected],
    )


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
        store: SqlImportStore,
        message: TableMessage,
        kind: TypeName,
        spec: TableSpec,
        again: TableReader | None = None,
    ) -> None:
        self._again = again
        self._single: Mapping[str, str] | None = None
        self._store = store
        self._message = message
        self._spec = spec
        self._kind = kind
        # Codes of other tables are what their owners say they are.
        self._names = () if spec.is_elsewhere else code_fields(spec)
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
                self._key, self._spec.table, scope_of(self._message, self._spec), self._names
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
        if self._answer == DISTINCT or not self._names:
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
            scope_of(self._message, self._spec),
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
        is_bare = SECTION not in self._spec.key or self._spec.is_elsewhere
        if is_bare or self._message.strategy is Strategy.REPLACE:
            return
        if (first := self._spec.item(self._spec.key)) not in self._names:
            place = chunk.columns.index(SECTION)
            if any(row[place] for row in chunk.rows):
                raise InvalidDocument(
                    f"headings give lines a section, and {first}, the first field of the key, is "
                    "no code, by which lines without a section could be found: declare it with "
                    "'kind: code', or send the file without headings"
                )
            return
        places = [self._names.index(name) for name in (first, SECTION)]
        columns = code_columns(chunk, self._names)
        found = list(zip(*(columns[place] for place in places), strict=True))
        within = sorted({item for item, section in found if section})
        if not within:
            return
        lines = {pair: line for pair, line in zip(found, chunk.lines, strict=True)}
        bare = await self._without_section(lines, within)
        if bare and self._again is not None:
            if self._single is None:
                self._single = await _single_items(self._again, first)
            sections = {item: section for item, section in bare if item in self._single}
            table, scope = self._spec.table, scope_of(self._message, self._spec)
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
            self._key, self._spec.table, scope_of(self._message, self._spec), self._names, items
        )
        places = [self._names.index(name) for name in (self._spec.item(self._names), SECTION)]
        stored = {(codes[places[0]], codes[places[1]]): own for codes, own in known.items()}
        return [
            pair
            for pair in lines
            if pair[1]
            and pair not in stored
            and (pair[0], "") not in lines
            and stored.get((pair[0], "")) is False
        ]


async def _single_items(reading: TableReader, key: str) -> Mapping[str, str]:
    """Items that stand once in a document, and their sections; none of a very long one."""
    found: dict[str, str | None] = {}
    async with WorkerThread() as thread:
        with closing(reading):
            await thread.run(reading.open)
            while (chunk := await thread.run(reading.next_chunk)) is not None:
                for item, section in codes_of(chunk, (key, SECTION)):
                    found[item] = None if item in found else section
                if len(found) > _ITEMS:
                    return {}
    return {item: section for item, section in found.items() if section}
