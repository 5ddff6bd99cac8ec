"""Every kind of column that a team declares is written and read back, however rows are sent."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pytest
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    DateTime,
    Integer,
    MetaData,
    Table,
    Text,
    Time,
    select,
)
from sqlalchemy.types import Numeric, TypeEngine

from adapters.database.bulk import engine as bulk
from adapters.database.bulk import statements
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.engine import Database
from adapters.database.models.base import DOMAIN, ExactDecimal, UtcDateTime, domain_table
from workflows.shared.fields import ColumnKind
from workflows.shared.packed_rows import PackedRows, text_of

NAME: Final = "rows_of_every_kind"
COLUMNS: Final[Mapping[str, tuple[ColumnKind, TypeEngine[Any]]]] = MappingProxyType(
    {
        "code": (ColumnKind.CODE, Text()),
        "flag": (ColumnKind.BOOLEAN, Boolean()),
        "opens": (ColumnKind.TIME, Time()),
        "local": (ColumnKind.TIMESTAMP, DateTime()),
        "moment": (ColumnKind.TIMESTAMP, UtcDateTime()),
        "fee": (ColumnKind.MONEY, ExactDecimal()),
        "cents": (ColumnKind.DECIMAL, Numeric(12, 2)),
        "day": (ColumnKind.DATE, Date()),
        "phone": (ColumnKind.PHONE, Text()),
        "length": (ColumnKind.DURATION, Integer()),
    }
)
KINDS: Final = tuple(kind for kind, _ in COLUMNS.values())
NOW: Final = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
STAMP: Final = Stamp("t1", NOW)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    # What is registered is taken out again when the test is over.
    monkeypatch.setitem(DOMAIN, NAME, None)
    key, *others = (
        Column(name, kind, nullable=name != "code") for name, (_, kind) in COLUMNS.items()
    )
    return domain_table(NAME, (key,), *others, within=MetaData())


def rows_of(count: int, *, later: int = 0) -> list[tuple[Any, ...]]:
    """Rows of which each third holds nothing but its key."""
    return [
        (
            f"C{number:05}",
            *(
                (None,) * (len(COLUMNS) - 1)
                if number % 3 == 2
                else (
                    number % 2 == 0,
                    time(number % 24, 30, 0, number % 7 and 123_456),
                    datetime(2025, 3, 30, 2, 30) + timedelta(minutes=number + later),
                    NOW + timedelta(microseconds=number),
                    Decimal(number) / 8,
                    Decimal(number) / 4,
                    date(2025, 3, 4),
                    f"+49{number:09}",
                    number * 1000,
                )
            ),
        )
        for number in range(count)
    ]


def batch(table: Table, rows: Any) -> RowBatch:
    places = range(len(rows))
    return RowBatch(table, tuple(COLUMNS), rows, [place + 2 for place in places], places)


def packed(rows: list[tuple[Any, ...]]) -> PackedRows:
    lines = ["\t".join((*map(text_of, row), str(line))) for line, row in enumerate(rows, 2)]
    return PackedRows((), KINDS, lines, zero_led=False)


@pytest.mark.parametrize("count", [3, 1_500])
@pytest.mark.parametrize("form", [list, packed])
async def test_every_kind_is_kept(database: Database, table: Table, count: int, form: Any) -> None:
    wanted = select(*(table.c[name] for name in COLUMNS)).order_by(table.c.code)
    changed = sum(row[1] is not None for row in rows_of(count))
    async with database.transaction() as connection:
        await connection.run_sync(table.metadata.create_all)
    # New rows, the same again, and others under the same keys.
    for later, counts in ((0, (count, 0)), (0, (0, 0)), (1, (0, changed))):
        rows = rows_of(count, later=later)
        async with database.transaction() as connection:
            assert await bulk.merge(connection, batch(table, form(rows)), STAMP) == counts
            assert [tuple(row) for row in await connection.execute(wanted)] == rows
    async with database.transaction() as connection:
        await connection.run_sync(table.metadata.drop_all)


def test_small_batches_are_sent_and_large_ones_are_text(table: Table) -> None:
    assert statements.sent(batch(table, rows_of(3))) is not None
    without_cents = [row[:6] for row in rows_of(3)]
    part = RowBatch(table, tuple(COLUMNS)[:6], without_cents, [2, 3, 4], range(3))
    assert statements.copy_text(part, range(3), STAMP) is not None


@pytest.mark.parametrize(("name", "value"), [("local", NOW), ("moment", NOW.replace(tzinfo=None))])
def test_offsets_are_neither_dropped_nor_made_up(table: Table, name: str, value: datetime) -> None:
    found = RowBatch(table, ("code", name), [("C1", value)], [2], [0])
    assert statements.sent(found) is None
    assert statements.copy_text(found, [0], STAMP) is None
