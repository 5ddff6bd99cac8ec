"""A table with the kinds that teams declare gives the same rows, whichever way it is read."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from activities.imports import column_table
from activities.imports.table_reader import TableReader
from adapters.files.documents import FileDocuments
from tests.support.imports.activities import message_of
from workflows.imports import validation
from workflows.imports.messages import TableMessage
from workflows.imports.types import TableSpec
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.packed_rows import PackedRows

FIELDS = (
    FieldSpec("visit", ColumnKind.CODE, required=True, pattern="V-[0-9]+"),
    FieldSpec("paid", ColumnKind.BOOLEAN),
    FieldSpec("opens", ColumnKind.TIME, maximum=time(20)),
    FieldSpec("seen", ColumnKind.TIMESTAMP, zone="Europe/Berlin"),
    FieldSpec("fee", ColumnKind.MONEY, maximum=Decimal(1_000), currency="EUR"),
    FieldSpec("phone", ColumnKind.PHONE, blanks=("keine",)),
)
VISITS = TableSpec("visits", ("project_id",), ("visit",), FIELDS, "visit")
HEADER = "visit;paid;opens;seen;fee;phone"
LINES = (
    "V-1;ja;14:30;04.07.2025 14:30;1.000,00 \u20ac;030 123456",
    "V-2;;9.15 Uhr;2025-07-04T14:30Z;12,5;+49 (0)30 1",
    "V-3;x;;;;keine",
)
ROWS = [
    ("P1", "V-1", True, time(14, 30), datetime(2025, 7, 4, 12, 30, tzinfo=UTC), Decimal(1000)),
    ("P1", "V-2", None, time(9, 15), datetime(2025, 7, 4, 14, 30, tzinfo=UTC), Decimal("12.5")),
    ("P1", "V-3", True, None, None, None),
]
PHONES = ["030123456", "+49301", None]
WAYS = {"columns": (0, 1 << 60), "packed": (1 << 60, 1), "rows": (1 << 60, 1 << 60)}


def read(path: Path, lines: Sequence[str]) -> tuple[list[Any], list[str], set[type]]:
    """Rows in the order of their keys, problems, and what held the rows."""
    path.write_text("\n".join((HEADER, *lines)))
    message = cast(TableMessage, message_of("equipment", blob_name="in/file", project_id="P1"))
    reader = TableReader(FileDocuments(), path, message, VISITS, chunk_rows=100)
    rows: list[Any] = []
    problems: list[str] = []
    held: set[type] = set()
    try:
        reader.open()
        while (chunk := reader.next_chunk()) is not None:
            held.add(type(chunk.rows))
            rows.extend(chunk.rows)
            problems.extend(each.reason for bad in chunk.rejected for each in bad.problems)
    finally:
        reader.close()
    return sorted(rows), problems, held


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    columns, packed = WAYS[request.param]
    monkeypatch.setattr(column_table, "COLUMN_BYTES", columns)
    monkeypatch.setattr(validation, "FEWEST_ROWS", packed)
    return request.param


def test_rows_of_declared_kinds_are_the_same(tmp_path: Path, way: str) -> None:
    rows, problems, held = read(tmp_path / "visits.csv", LINES)
    assert rows == [(*row, phone) for row, phone in zip(ROWS, PHONES, strict=True)]
    assert problems == []
    assert held == {list if way == "rows" else PackedRows}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("X-9;;;;;", "does not match the pattern V-[0-9]+"),
        ("V-9;;20:01;;;", "is more than 20:00:00"),
        ("V-9;;;;1000,01;", "is more than 1000"),
        ("V-9;;;;5 USD;", "is in USD, and this column is in EUR"),
        ("V-9;;;26.10.2025 02:30;;", "happens twice"),
    ],
)
def test_limits_hold_in_every_way(tmp_path: Path, way: str, line: str, problem: str) -> None:
    rows, (found,), _ = read(tmp_path / "visits.csv", [*LINES, line])
    assert len(rows) == len(LINES)
    assert found.startswith(problem)
