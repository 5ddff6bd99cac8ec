"""Chunks of many rows, which PostgreSQL takes straight into their table when all are new."""

import asyncio
import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import cycle
from typing import Any

import pytest

from activities.imports.store import SqlImportStore
from adapters.database.engine import Database
from tests.support.imports.store import chunk, stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, TaskKey

MTO = "project_id service_id drawing commodity_code size sequence quantity"
MANY = 3_000


def line(number: int, quantity: int = 1) -> tuple[Any, ...]:
    return ("p1", "s1", f"D{number:05}", "PIPE", "", 1, Decimal(quantity))


async def write(store: SqlImportStore, task: str, rows: Sequence[tuple[Any, ...]]) -> Counts:
    part = chunk("mto_lines", MTO, *rows, cells=False)
    return (await store.write(TaskKey("p1", task), part, Strategy.MERGE)).counts


async def test_new_rows_are_kept_with_their_lines(
    store: SqlImportStore, database: Database
) -> None:
    numbers = random.Random(1).sample(range(MANY), MANY)
    assert await write(store, "t1", [line(number) for number in numbers]) == Counts(created=MANY)
    kept = await stored(database, "mto_lines", "drawing source_line version source_task")
    first = chunk("mto_lines", MTO, *map(line, numbers), cells=False).lines
    lines = dict(zip((f"D{number:05}" for number in numbers), first, strict=True))
    assert sorted(kept) == [(drawing, lines[drawing], 1, "t1") for drawing in sorted(lines)]


@pytest.mark.parametrize("known", [[0], [1], [MANY // 2 + 3], [MANY - 1], list(range(MANY))])
async def test_known_rows_among_many_are_updated(
    store: SqlImportStore, database: Database, known: list[int]
) -> None:
    await write(store, "t1", [line(number) for number in known])
    counts = await write(store, "t2", [line(number, 2) for number in range(MANY)])
    assert counts == Counts(created=MANY - len(known), updated=len(known))
    versions = dict(await stored(database, "mto_lines", "drawing version"))
    assert [versions[f"D{number:05}"] for number in known] == [2] * len(known)
    assert len(versions) == MANY


async def test_large_writers_of_the_same_rows_in_other_orders_do_not_deadlock(
    store: SqlImportStore, database: Database
) -> None:
    orders = [random.Random(seed).sample(range(MANY), MANY) for seed in range(3)]
    counts = await asyncio.gather(
        *(
            write(store, f"t{n}", [line(number) for number in order])
            for n, order in enumerate(orders)
        )
    )
    assert sum(each.created for each in counts) == MANY
    assert sum(each.unchanged for each in counts) == 2 * MANY
    assert len(await stored(database, "mto_lines", "drawing")) == MANY


HOSTILE = (
    *(
        None,
        "",
        " ",
        "\\",
        "\\N",
        "\\.",
        "\\n",
        "a\tb",
        "two\nlines",
        "a\rb",
        "\r\n",
        '"',
        "'",
        "NULL",
    ),
    *("\u00fc", "\u4e2d", "\U0001f600", "\ufeff", "x" * 2_000, "\x7f", "\x01", "1e5", "007"),
)
QUANTITIES = (
    *(None, Decimal(0), Decimal("-0"), Decimal("0.0000005"), Decimal("-0.0000005"), 7),
    *(Decimal("1E+5"), Decimal("1E-40"), Decimal("99999999999999.999999"), Decimal("1.10")),
)


async def test_rows_that_are_all_new_are_kept_as_those_beside_known_ones(
    store: SqlImportStore, database: Database
) -> None:
    names = f"{MTO} description unit"
    kept: list[list[Any]] = []
    for project, is_known in (("all new", False), ("one known", True)):
        cells = zip(range(MANY), cycle(QUANTITIES), cycle(HOSTILE), strict=False)
        rows = [
            (project, "s1", f"D{n:05}\\\t", "PIPE", "", 1, quantity, text, None)
            for n, quantity, text in cells
        ]
        if is_known:
            first = chunk("mto_lines", names, rows[0], cells=False)
            await store.write(TaskKey(project, "t\\0"), first, Strategy.MERGE)
        part = chunk("mto_lines", names, *rows, cells=False)
        counts = (await store.write(TaskKey(project, "t\\1"), part, Strategy.MERGE)).counts
        assert counts == Counts(created=MANY - is_known, unchanged=int(is_known))
        wanted = "project_id source_task drawing quantity description unit source_line"
        mine = [row for row in await stored(database, "mto_lines", wanted) if row[0] == project]
        assert {row[1] for row in mine} == ({"t\\0", "t\\1"} if is_known else {"t\\1"})
        kept.append(sorted(repr(row[2:]) for row in mine))
    assert len(kept[0]) == MANY
    assert kept[0] == kept[1]


async def test_new_rows_with_dates_are_kept(store: SqlImportStore, database: Database) -> None:
    names = "project_id employee_no valid_from valid_to name"
    days = [date(1900, 1, 1) + timedelta(days=25 * n) for n in range(MANY)]
    rows = [("p1", f"E{n:05}", day, None if n % 2 else day, "A") for n, day in enumerate(days)]
    part = chunk("crew_members", names, *rows, cells=False)
    mark = await store.write(TaskKey("p1", "t1"), part, Strategy.MERGE)
    assert mark.counts == Counts(created=MANY)
    kept = await stored(database, "crew_members", "employee_no valid_from valid_to")
    assert sorted(kept) == [(row[1], row[2], row[3]) for row in rows]
