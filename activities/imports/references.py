"""Cells that refer to rows of another table: found, made, refused, or asked about."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from activities.imports.store import SqlImportStore
from activities.imports.table_reader import TableReader
from activities.shared.failures import WorkerThread
from adapters.types.references import Referred
from workflows.imports.runs import RowChunk, TaskKey
from workflows.imports.types import TableSpec
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import Problem
from workflows.shared.errors import InvalidDocument

_NAMED: Final = 5
"""Unknown values that a question lists."""
_SHOWN: Final = 60


class References:
    """Settles the references of one load.

    Args:
        store: Tables.
        key: The import.
        spec: What its table holds.
        scope: Values of the columns that its rows share.
        referred: What each field of kind reference refers to, by name.
        again: Reads the document once more, for rows that refer to others of the same file.
    """

    def __init__(
        self,
        store: SqlImportStore,
        key: TaskKey,
        spec: TableSpec,
        scope: Mapping[str, str],
        referred: Mapping[str, Referred],
        again: Callable[[], TableReader],
    ) -> None:
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
        if missing and referred.table == self._spec.table:
            own = await self._keys_of_file()
            known.update((each, each) for each in missing if each in own)
            missing = [each for each in missing if each not in known]
        if missing and referred.unknown == "create":
            lines = {cell: line for cell, line in zip(cells, chunk.lines, strict=True) if cell}
            made = [(each, lines[each]) for each in missing]
            await self._store.make_referred(self._key, referred, self._scope, made)
            known.update((each, each) for each in missing)
            missing = []
        if missing and referred.unknown == "ask":
            raise InvalidDocument(_question(name, missing, several, referred))
        return _replaced(
            *(chunk, place, known),
            lambda line, cell: _problem(name, line, cell, several, referred),
        )

    async def _keys_of_file(self) -> frozenset[str]:
        """The keys of the document itself."""
        if self._own is None:
            found: set[str] = set()
            async with WorkerThread() as thread:
                with closing(self._again()) as reading:
                    await thread.run(reading.open)
                    while (chunk := await thread.run(reading.next_chunk)) is not None:
                        place = chunk.columns.index(self._spec.key[0])
                        found.update(str(row[place]) for row in chunk.rows)
            self._own = frozenset(found)
        return self._own


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
    name: str, line: int, cell: str, several: Mapping[str, Sequence[str]], referred: Referred
) -> Problem:
    keys = several.get(cell)
    reason = f"is not in {referred.title}" if keys is None else _unclear(keys, referred)
    return Problem(line=line, column=name, value=cell[:200], reason=reason[:500])


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
