"""Random files, strategies, chunk sizes and redeliveries against a plain dictionary."""

import asyncio
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.imports.store import SqlImportStore
from adapters.database.engine import Database, open_database
from tests.support.chaos import examples
from tests.support.imports.store import stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, LoadMark, RowChunk, TaskKey

KEY = ("project_id", "service_id", "drawing", "commodity_code", "size", "sequence")
VALUES = ("spool", "unit")

Line = tuple[str, int]
"""What tells rows apart here: drawing and sequence."""


@dataclass
class File:
    """One import: rows by key, the columns it has, how it is sent."""

    rows: dict[Line, tuple[str | None, ...]]
    columns: tuple[str, ...]
    strategy: Strategy
    staged: bool
    size: int
    again: list[int]
    """How many chunks each redelivery goes back."""


@st.composite
def files(draw: st.DrawFn) -> File:
    columns = draw(st.sampled_from([(), ("unit",), VALUES]))
    cell = st.sampled_from([None, "a", "b", "ü"])
    lines = st.tuples(st.sampled_from("ABC"), st.integers(1, 4))
    rows = draw(st.dictionaries(lines, st.tuples(*(cell for _ in columns)), max_size=9))
    strategy = draw(st.sampled_from(Strategy))
    return File(
        rows=rows,
        columns=columns,
        strategy=strategy,
        staged=strategy is Strategy.REPLACE or draw(st.booleans()),
        size=draw(st.integers(1, 5)),
        again=draw(st.lists(st.integers(1, 3), max_size=3)),
    )


class Model:
    """What the table should hold, and what each import should say."""

    def __init__(self) -> None:
        self.table: dict[Line, dict[str, str | None]] = {}

    def load(self, file: File) -> Counts:
        if not file.staged:
            counts = Counts()
            for part in parts(file):
                counts = counts.plus(self._put(file, part))
            return counts
        counts = Counts()
        if file.strategy is Strategy.REPLACE:
            gone = [line for line in self.table if line not in file.rows]
            counts = Counts(deleted=len(gone))
            for line in gone:
                del self.table[line]
        return counts.plus(self._put(file, list(file.rows.items())))

    def _put(self, file: File, part: list[tuple[Line, tuple[str | None, ...]]]) -> Counts:
        known = [line for line, _ in part if line in self.table]
        numbers = self._renumbered(file, part, known)
        tally = dict.fromkeys(Counts.model_fields, 0)
        for line, values in part:
            row = dict(zip(file.columns, values, strict=True))
            tally[self._one(file.strategy, numbers[line], row)] += 1
        return Counts(**tally)

    def _renumbered(self, file: File, part: list[Any], known: list[Line]) -> dict[Line, Line]:
        numbers = {line: line for line, _ in part}
        if file.strategy is Strategy.APPEND:
            taken = [*self.table, *numbers]
            for line in known:
                held = {number for drawing, number in taken if drawing == line[0]}
                numbers[line] = (line[0], max(held) + 1)
                taken.append(numbers[line])
        return numbers

    def _one(self, strategy: Strategy, line: Line, values: dict[str, str | None]) -> str:
        row = self.table.get(line)
        if row is None:
            if strategy is Strategy.UPDATE_ONLY:
                return "rejected"
            self.table[line] = {"spool": None, "unit": None, **values}
            return "created"
        if strategy is Strategy.CREATE_ONLY or row == row | values:
            return "unchanged"
        row.update(values)
        return "updated"


def parts(file: File) -> list[list[tuple[Line, tuple[str | None, ...]]]]:
    rows = list(file.rows.items())
    return [rows[start : start + file.size] for start in range(0, len(rows), file.size)]


def chunks(file: File) -> list[RowChunk]:
    made: list[RowChunk] = []
    cursor = 0
    for part in parts(file):
        rows = [("p1", "s1", drawing, "C", "", number, *row) for (drawing, number), row in part]
        lines = range(cursor + 2, cursor + 2 + len(rows))
        cursor += len(rows)
        cells = [list(map(str, row)) for row in rows]
        made.append(RowChunk("mto_lines", (*KEY, *file.columns), rows, lines, cells, (), cursor))
    return made


async def send(store: SqlImportStore, file: File) -> LoadMark:
    """Load a file as an activity would that is interrupted and begun again."""
    key = TaskKey("p1", uuid.uuid4().hex)
    await store.restart(key, ["header"])
    todo, again = chunks(file), list(file.again)
    place = 0
    while place < len(todo):
        if file.staged:
            await store.stage(key, todo[place])
        else:
            await store.write(key, todo[place], file.strategy)
        place += 1
        if again:
            place = max(0, place - again.pop())
    if not file.staged:
        return await store.finish(key)
    scope = {"project_id": "p1", "service_id": "s1"}
    for _ in range(2):
        mark = await store.swap(key, "mto_lines", scope, file.strategy, date(2026, 3, 1))
    return mark


@pytest.fixture
def runner() -> Generator[asyncio.Runner]:
    """One event loop for all examples of a test: connections belong to the loop they began on."""
    with asyncio.Runner() as runner:
        yield runner


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(files(), min_size=1, max_size=4))
def check_against_the_model(
    runner: asyncio.Runner, database: Database, imports: list[File]
) -> None:
    async def run() -> None:
        store, model = SqlImportStore(database), Model()
        await store.delete_service(TaskKey("p1", uuid.uuid4().hex), "mto_lines", "s1")
        for file in imports:
            mark = await send(store, file)
            assert mark.counts == model.load(file)
            assert mark.finished
            rows = await stored(database, "mto_lines", "drawing sequence spool unit")
            assert {(row[0], row[1]): {"spool": row[2], "unit": row[3]} for row in rows} == (
                model.table
            )

    runner.run(run())


def test_the_store_does_what_a_dictionary_would(database_url: str, runner: asyncio.Runner) -> None:
    database = open_database(database_url)
    try:
        check_against_the_model(runner, database)
    finally:
        runner.run(database.close())
