"""Rows that were read by columns go in as those do that were read one by one."""

import csv
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import func, select

from activities.imports import column_table
from activities.imports.references import CodeSpelling
from activities.imports.store import SqlImportStore
from activities.imports.table_reader import TableReader
from activities.imports.tables import own_tables
from adapters.database.engine import Database
from adapters.database.models.every import DOMAIN
from adapters.files.documents import FileDocuments
from tests.support.imports.activities import message_of
from tests.support.imports.store import stored
from workflows.imports import validation
from workflows.imports.messages import AnyTableMessage, Strategy
from workflows.imports.runs import Counts, TaskKey
from workflows.shared.errors import InvalidDocument
from workflows.shared.packed_rows import PackedRows

MTO = ("Drawing", "Commodity code", "Size", "Quantity", "Unit", "Description", "Revision")
KEPT = (
    "project_id service_id drawing commodity_code size sequence quantity unit description revision "
    "version source_task source_line"
)
TEXTS = (
    "Pipe",
    "back\\slash",
    "\\N",
    "\\.",
    "n/a",
    "",
    'say "hi"',
    "\u00fc\u4e2d\U0001f600",
    "a,b",
)
AMOUNTS = ("1", "0", "0.0", "2.5", "007", "0.1234567", "99999999999999.5", "+5", "1e5")
CHUNK_ROWS = 200


def rows_of(count: int, quantity: str | None = None) -> list[Sequence[str]]:
    """Lines of a take-off, some of which share a key, in no order."""
    return [
        (
            f"D-{n * 7 % 1000:04}\\",
            f"P{n % 11}",
            TEXTS[n % 3] if n % 2 else "",
            quantity or AMOUNTS[n % len(AMOUNTS)],
            "m",
            TEXTS[n % len(TEXTS)],
            AMOUNTS[n % 3],
        )
        for n in range(count)
    ]


def write(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = MTO) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((header, *rows))
    return path


class Loads:
    """Loads files into one database, by columns or row by row."""

    def __init__(
        self, store: SqlImportStore, database: Database, patch: pytest.MonkeyPatch
    ) -> None:
        self.store = store
        self.database = database
        self._patch = patch

    async def load(
        self, path: Path, task: str, *, by_columns: bool, packed: bool = False, **fields: Any
    ) -> Counts:
        """All chunks of a file; those that are read by columns are packed, others if asked to."""
        self._patch.setattr(column_table, "COLUMN_BYTES", 0 if by_columns else 1 << 60)
        self._patch.setattr(validation, "FEWEST_ROWS", 0 if packed else 1 << 60)
        fields = {"project_id": "P\\1", "service_id": "S1", "task_id": task, **fields}
        message = cast(AnyTableMessage, message_of("mto", blob_name="in/file", **fields))
        spec = own_tables()[message.document_type]
        key = TaskKey(message.project_id, task)
        spelling = CodeSpelling(self.store, message, message.document_type, spec)
        await spelling.begin()
        reader = TableReader(FileDocuments(), path, message, spec, CHUNK_ROWS)
        try:
            reader.open()
            reader.skip((await self.store.mark(key)).cursor)
            while (chunk := reader.next_chunk()) is not None:
                assert isinstance(chunk.rows, PackedRows) is (by_columns or packed)
                chunk = await spelling.settle(chunk)
                await self.store.write(key, chunk, message.strategy)
        finally:
            reader.close()
        return (await self.store.mark(key)).counts

    async def kept(self, task: str | None = None) -> list[tuple[Any, ...]]:
        """The rows of one project or task, without what names it."""
        rows = await stored(self.database, "mto_lines", KEPT)
        return [row[2:11] + row[12:] for row in rows if task is None or row[11] == task]


@pytest.fixture
def loads(store: SqlImportStore, database: Database, monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(store, database, monkeypatch)


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.CREATE_ONLY])
async def test_rows_are_kept_alike_read_either_way(
    loads: Loads, tmp_path: Path, strategy: Strategy
) -> None:
    first = write(tmp_path / "first.csv", rows_of(1_600))
    other = write(tmp_path / "other.csv", [*rows_of(1_200, "5"), *rows_of(2_000)[1_600:]])
    found: list[Any] = []
    for project in ("rows", "columns", "packed"):
        fields = {"by_columns": project == "columns", "packed": project == "packed"}
        counts = [
            await loads.load(file, f"{project}{n}", project_id=project, strategy=strategy, **fields)
            for n, file in enumerate((first, first, other))
        ]
        kept = await loads.kept(f"{project}0") + await loads.kept(f"{project}2")
        found.append((counts, kept))
    assert found[0] == found[1] == found[2]
    assert found[0][0][:2] == [Counts(created=1_600), Counts(unchanged=1_600)]


async def test_numbers_are_kept_as_numbers(loads: Loads, tmp_path: Path) -> None:
    await loads.load(write(tmp_path / "a.csv", rows_of(800)), "t", by_columns=True)
    table = DOMAIN["mto_lines"]
    async with loads.database.reading() as connection:
        columns = (table.c.sequence, table.c.version, table.c.source_line)
        query = select(*(func.pg_typeof(each) for each in columns)).distinct()
        found = {str(kind) for row in await connection.execute(query) for kind in row}
    assert found <= {"integer", "bigint"}
    assert Decimal("0.123457") in {row[4] for row in await loads.kept()}


async def test_a_load_continues_behind_its_last_chunk_read_either_way(
    loads: Loads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.csv", rows_of(1_720))
    whole = await loads.load(file, "whole", by_columns=False, project_id="whole")
    for name, ways in (
        ("columns", (True, True)),
        ("mixed", (True, False)),
        ("rows", (False, True)),
    ):
        for n, by_columns in enumerate(ways):
            with monkeypatch.context() as patch:
                if n == 0:
                    patch.setattr(TableReader, "next_chunk", _first_chunk_only())
                await loads.load(file, name, by_columns=by_columns, project_id=name)
        mark = await loads.store.mark(TaskKey(name, name))
        assert mark.counts == whole
        assert await loads.kept(name) == await loads.kept("whole")


def _first_chunk_only() -> Any:
    """The worker dies when the first chunk is in."""
    original = TableReader.next_chunk

    def next_chunk(reader: TableReader) -> Any:
        return original(reader) if reader.rows_read == 0 else None

    return next_chunk


async def test_codes_that_differ_in_leading_zeros_are_asked_about(
    loads: Loads, tmp_path: Path
) -> None:
    known = write(tmp_path / "a.csv", [("0042", "P", "", "1", "m", "", "")] * 3)
    await loads.load(known, "t1", by_columns=True)
    again = write(tmp_path / "b.csv", [("42", "P", "", "1", "m", "", "")] * 3)
    with pytest.raises(InvalidDocument, match="differ only in leading zeros"):
        await loads.load(again, "t2", by_columns=True)
    counts = await loads.load(again, "t3", by_columns=True, leading_zeros="same")
    assert counts == Counts(unchanged=3)
