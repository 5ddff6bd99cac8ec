"""Chunks of few rows, which PostgreSQL is sent with the statement that writes them."""

from datetime import date
from itertools import cycle
from typing import Any

import pytest

from activities.imports.store import SqlImportStore
from adapters.database.bulk import engine as bulk
from adapters.database.bulk import statements
from adapters.database.bulk.rows import RowBatch
from adapters.database.engine import Database
from adapters.database.models.base import DOMAIN
from tests.adapters.imports.test_store_large_chunks import HOSTILE, QUANTITIES
from tests.support.imports.store import chunk, stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, TaskKey

MTO = "project_id service_id drawing commodity_code size sequence quantity description unit"
CREW = "project_id employee_no valid_from valid_to name"
MARKS = ("\x1e", "\x1f", "a\x1fb", "\x1e\x1e", "b\x1e")
ROWS = [
    ("s1", f"D{number:05}\\\t", "PIPE", "", number, quantity, text, None)
    for number, quantity, text in zip(
        range(1, len(HOSTILE) + 1), cycle(QUANTITIES), HOSTILE, strict=False
    )
]


def rows_of(*texts: Any) -> list[tuple[Any, ...]]:
    return [("s1", "D1", "P", "", number, None, text, None) for number, text in enumerate(texts, 1)]


CHUNKS = (ROWS, rows_of(""), rows_of(None), rows_of("", ""), *(rows_of("a", m) for m in MARKS))


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.CREATE_ONLY])
async def test_rows_that_are_sent_are_kept_as_those_that_are_copied(
    store: SqlImportStore,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    strategy: Strategy,
) -> None:
    for way in ("sent", "copied"):
        if way == "copied":
            monkeypatch.setattr(bulk, "sent", lambda batch: None)
        for at, rows in enumerate(CHUNKS):
            project, size = f"{way}{at}", len(rows)
            part = chunk("mto_lines", MTO, *((project, *row) for row in rows), cells=False)
            for number, counts in enumerate((Counts(created=size), Counts(unchanged=size))):
                mark = await store.write(TaskKey(project, f"t\\{number}"), part, strategy)
                assert mark.counts == counts, rows
    wanted = "project_id source_task version drawing sequence quantity description unit source_line"
    kept: dict[str, list[str]] = {}
    for project, *row in await stored(database, "mto_lines", wanted):
        kept.setdefault(project, []).append(repr(row))
    for at, rows in enumerate(CHUNKS):
        assert len(kept[f"sent{at}"]) == len(rows)
        assert sorted(kept[f"sent{at}"]) == sorted(kept[f"copied{at}"]), rows


async def test_rows_with_dates_are_kept(store: SqlImportStore, database: Database) -> None:
    days = (date(1, 1, 1), date(1999, 12, 31), date(9999, 12, 31))
    rows = [("p1", f"E{n}", day, None if n % 2 else day, "A") for n, day in enumerate(days)]
    part = chunk("crew_members", CREW, *rows, cells=False)
    mark = await store.write(TaskKey("p1", "t1"), part, Strategy.MERGE)
    assert mark.counts == Counts(created=len(days))
    kept = await stored(database, "crew_members", "employee_no valid_from valid_to")
    assert sorted(kept) == [(row[1], row[2], row[3]) for row in rows]


def batch(*texts: Any) -> RowBatch:
    """Rows of one column beside their key."""
    rows = [("p1", *row) for row in rows_of(*texts)]
    lines = range(len(texts))
    return RowBatch(DOMAIN["mto_lines"], tuple(MTO.split()), rows, lines, lines)


@pytest.mark.parametrize("text", [*MARKS[1:3], 7])
def test_values_that_a_text_cannot_stand_for_are_copied(text: Any) -> None:
    assert statements.sent(batch("a", text)) is None
    assert statements.sent(batch("a", "b", None)) is not None
