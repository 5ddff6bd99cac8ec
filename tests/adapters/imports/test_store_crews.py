"""Crew members: assignments that end when the next begins."""

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.imports import upserts
from activities.imports.store import SqlImportStore
from adapters.database.bulk.rows import RowBatch
from adapters.database.engine import Database
from adapters.database.models.imports import crew_members
from adapters.types.hooks import without_overlaps
from tests.support.imports.store import chunk, stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, TaskKey
from workflows.shared.assignments import Assignments

COLUMNS = "project_id employee_no valid_from crew valid_to"
YEAR = {n: date(n, 1, 1) for n in range(2020, 2031)}
DAY = timedelta(days=1)


def member(person: str, start: int, end: date | None = None, crew: str = "C1") -> tuple[Any, ...]:
    return ("p1", person, YEAR[start], crew, end)


def key(number: int) -> TaskKey:
    return TaskKey("p1", f"t{number}")


async def terms(database: Database) -> list[tuple[str, int, date | None]]:
    rows = await stored(database, "crew_members", "employee_no valid_from valid_to")
    return [(person, start.year, end) for person, start, end in rows]


async def test_a_later_assignment_ends_the_open_one_the_day_before(
    store: SqlImportStore, database: Database
) -> None:
    first = chunk("crew_members", COLUMNS, member("E1", 2024), member("E2", 2024))
    await store.write(key(1), first, Strategy.MERGE)
    mark = await store.write(
        key(2), chunk("crew_members", COLUMNS, member("E1", 2025)), Strategy.MERGE
    )
    assert mark.counts == Counts(created=1, updated=1)
    assert await terms(database) == [
        ("E1", 2024, YEAR[2025] - DAY),
        ("E1", 2025, None),
        ("E2", 2024, None),
    ]
    again = await store.write(key(3), first, Strategy.MERGE)
    assert again.counts == Counts(unchanged=2)


async def test_order_within_a_file_does_not_matter(
    store: SqlImportStore, database: Database
) -> None:
    rows = (member("E1", 2026), member("E1", 2024), member("E1", 2025, YEAR[2028]))
    mark = await store.write(key(1), chunk("crew_members", COLUMNS, *rows), Strategy.MERGE)
    assert mark.counts == Counts(created=3)
    assert await terms(database) == [
        ("E1", 2024, YEAR[2025] - DAY),
        ("E1", 2025, YEAR[2026] - DAY),
        ("E1", 2026, None),
    ]


async def test_a_file_without_last_days_keeps_those_that_are_there(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(
        key(1), chunk("crew_members", COLUMNS, member("E1", 2024, YEAR[2026])), Strategy.MERGE
    )
    columns = "project_id employee_no valid_from crew"
    rows = [member("E1", 2024)[:4], member("E2", 2024)[:4]]
    mark = await store.write(key(2), chunk("crew_members", columns, *rows), Strategy.MERGE)
    assert mark.counts == Counts(created=1, unchanged=1)
    assert await terms(database) == [("E1", 2024, YEAR[2026]), ("E2", 2024, None)]


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        (Strategy.APPEND, Counts(created=1, updated=1, rejected=1)),
        (Strategy.CREATE_ONLY, Counts(created=1, updated=1, unchanged=1)),
        (Strategy.UPDATE_ONLY, Counts(updated=1, rejected=1)),
    ],
)
async def test_only_loaded_assignments_end_others(
    store: SqlImportStore, database: Database, strategy: Strategy, counts: Counts
) -> None:
    await store.write(
        key(1),
        chunk("crew_members", COLUMNS, member("E1", 2024), member("E2", 2024)),
        Strategy.MERGE,
    )
    rows = chunk("crew_members", COLUMNS, member("E1", 2025), member("E2", 2024, crew="C2"))
    mark = await store.write(key(2), rows, strategy)
    assert mark.counts == counts
    assert len(await terms(database)) == counts.created + 2


async def test_replace_closes_those_who_are_absent(
    store: SqlImportStore, database: Database
) -> None:
    rows = [
        member("E1", 2024),
        member("E2", 2024),
        member("E3", 2020, YEAR[2021]),
        member("E4", 2024),
        member("E5", 2028),
        ("p2", "E2", YEAR[2024], "C", None),
    ]
    await store.write(key(1), chunk("crew_members", COLUMNS, *rows), Strategy.MERGE)
    file = chunk(
        "crew_members", COLUMNS, member("E1", 2024), member("E4", 2027), member("E5", 2025)
    )
    await store.stage(key(2), file)
    mark = await store.swap(
        key(2), "crew_members", {"project_id": "p1"}, Strategy.REPLACE, YEAR[2026]
    )
    assert mark.counts == Counts(created=2, updated=3, unchanged=1)
    assert await terms(database) == [
        ("E1", 2024, None),
        ("E2", 2024, YEAR[2026]),
        ("E3", 2020, YEAR[2021]),
        ("E4", 2024, YEAR[2027] - DAY),
        ("E4", 2027, None),
        ("E5", 2025, None),
        ("E5", 2028, YEAR[2026]),
        ("E2", 2024, None),
    ]


DAYS = st.dates(date(2020, 1, 1), date(2020, 3, 1))
TERMS = st.dictionaries(
    st.tuples(st.sampled_from(["E1", "E2"]), DAYS), st.none() | DAYS, max_size=12
)


@given(TERMS, TERMS)
def test_no_assignment_lasts_into_the_next(
    before: dict[tuple[str, date], date | None], file: dict[tuple[str, date], date | None]
) -> None:
    people = {person for person, _ in file}
    table = {("p1", *term): end for term, end in before.items() if term[0] in people}
    rows = [("p1", person, start, end) for (person, start), end in file.items()]
    columns = ("project_id", "employee_no", "valid_from", "valid_to")
    batch = RowBatch(crew_members, columns, rows, range(len(rows)), range(len(rows)))
    bounded, closed = without_overlaps(batch, Assignments(dict(table)))
    ended = dict(zip(closed.keys(), closed.column("valid_to"), strict=True))
    after = table | ended | dict(zip(bounded.keys(), bounded.column("valid_to"), strict=True))
    began = {term: end for term, end in after.items() if end is None or end >= term[2]}
    for person in people:
        of_person = sorted((start, end) for (_, who, start), end in began.items() if who == person)
        for (_, end), (start, _) in pairwise(of_person):
            assert end is not None
            assert end < start
    assert not set(ended) & set(bounded.keys())


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.CREATE_ONLY, Strategy.APPEND])
async def test_counts_do_not_depend_on_where_chunks_and_pages_end(
    store: SqlImportStore,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    strategy: Strategy,
) -> None:
    seen: list[tuple[Counts, list[tuple[str, int, date | None]]]] = []
    people = ["E1", "E2", "E3"]
    for project, (chunk_rows, page) in enumerate(((100, 100), (1, 1), (2, 2), (4, 3))):
        monkeypatch.setattr(upserts, "_PAGE", page)

        def of(person: str, start: int, name: str = f"q{project}") -> tuple[Any, ...]:
            return (name, *member(person, start)[1:])

        before = [of(person, start) for person in people for start in (2021, 2024)]
        await store.write(key(100 + project), chunk("crew_members", COLUMNS, *before), strategy)
        rows = [of(person, start) for start in (2026, 2020, 2025, 2023) for person in people]
        for first in range(0, len(rows), chunk_rows):
            part = rows[first : first + chunk_rows]
            more = chunk("crew_members", COLUMNS, *part, first_line=first, cursor=first + 1)
            await store.stage(key(project), more)
        scope = {"project_id": f"q{project}"}
        mark = await store.swap(key(project), "crew_members", scope, strategy, YEAR[2026])
        every = await stored(database, "crew_members", "project_id employee_no valid_from valid_to")
        kept = [(row[1], row[2].year, row[3]) for row in every if row[0] == f"q{project}"]
        seen.append((mark.counts, kept))
    assert seen == [seen[0]] * 4
    assert seen[0][0] == Counts(created=12, updated=6)
