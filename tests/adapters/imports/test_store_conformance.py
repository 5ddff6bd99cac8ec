"""What every store of the imports pipeline promises, the one in memory included."""

from collections.abc import AsyncGenerator
from datetime import date
from decimal import Decimal

import pytest

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from tests.support.imports.activities import MemoryStore
from tests.support.imports.store import chunk, reject
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, LoadMark, TaskKey

KEY = TaskKey("p1", "t1")
NEXT = TaskKey("p1", "t2")
TODAY = date(2026, 3, 1)
EQUIPMENT = "project_id code description rate"
MTO = "project_id service_id drawing commodity_code size sequence quantity"
SERVICE = {"project_id": "p1", "service_id": "s1"}


@pytest.fixture(params=[None, "database"], ids=["memory", "database"])
def url(request: pytest.FixtureRequest) -> str | None:
    """URL of a database; None: in memory."""
    return request.param and request.getfixturevalue("database_url")


@pytest.fixture
async def any_store(url: str | None) -> AsyncGenerator[SqlImportStore]:
    if url is None:
        yield MemoryStore()
        return
    async with open_database(url) as database:
        yield SqlImportStore(database)


def machine(code: str, description: str | None = None, rate: int = 0) -> tuple:
    return ("p1", code, description, Decimal(rate))


def line(drawing: str, sequence: int, quantity: int) -> tuple:
    return ("p1", "s1", drawing, "PIPE", "", sequence, Decimal(quantity))


async def test_an_unknown_task_has_done_nothing(any_store: SqlImportStore) -> None:
    assert await any_store.mark(KEY) == LoadMark()


async def test_rows_are_created_changed_or_left(any_store: SqlImportStore) -> None:
    first = chunk("equipment", EQUIPMENT, machine("A"), machine("B"))
    assert (await any_store.write(KEY, first, Strategy.MERGE)).counts == Counts(created=2)
    second = chunk("equipment", EQUIPMENT, machine("A"), machine("B", "crane"), machine("C"))
    counts = (await any_store.write(NEXT, second, Strategy.MERGE)).counts
    assert counts == Counts(created=1, updated=1, unchanged=1)


async def test_a_repeated_chunk_counts_once(any_store: SqlImportStore) -> None:
    rows = chunk("equipment", EQUIPMENT, machine("A"))
    once = await any_store.write(KEY, rows, Strategy.MERGE)
    assert await any_store.write(KEY, rows, Strategy.MERGE) == once
    assert await any_store.mark(KEY) == once
    assert once.cursor == rows.cursor


async def test_rows_unknown_to_an_update_are_rejected(any_store: SqlImportStore) -> None:
    rows = chunk("equipment", EQUIPMENT, machine("A"))
    mark = await any_store.write(KEY, rows, Strategy.UPDATE_ONLY)
    assert (mark.counts, mark.problem_count) == (Counts(rejected=1), 1)
    found = [row.line async for page in any_store.rejects(KEY) for row in page]
    assert found == list(rows.lines)


async def test_rows_that_are_there_are_not_created_again(any_store: SqlImportStore) -> None:
    await any_store.write(KEY, chunk("equipment", EQUIPMENT, machine("A")), Strategy.MERGE)
    rows = chunk("equipment", EQUIPMENT, machine("A", "changed"), machine("B"))
    mark = await any_store.write(NEXT, rows, Strategy.CREATE_ONLY)
    assert mark.counts == Counts(created=1, unchanged=1)


async def test_a_restart_forgets_marks_and_rejected_rows(any_store: SqlImportStore) -> None:
    rows = chunk("equipment", EQUIPMENT, machine("A"), rejected=[reject(9)])
    assert (await any_store.write(KEY, rows, Strategy.MERGE)).counts.rejected == 1
    await any_store.restart(KEY, ("code",))
    assert await any_store.mark(KEY) == LoadMark(header=("code",))
    assert [page async for page in any_store.rejects(KEY)] == []


async def test_a_swap_replaces_what_the_file_lacks_once(any_store: SqlImportStore) -> None:
    old = chunk("mto_lines", MTO, line("D1", 1, 1), line("D2", 1, 1))
    await any_store.write(NEXT, old, Strategy.MERGE)
    await any_store.restart(KEY, ())
    await any_store.stage(KEY, chunk("mto_lines", MTO, line("D1", 1, 5)))
    for _ in range(2):
        mark = await any_store.swap(KEY, "mto_lines", SERVICE, Strategy.REPLACE, TODAY)
        assert (mark.counts, mark.finished) == (Counts(updated=1, deleted=1), True)


async def test_a_finished_task_stays_finished(any_store: SqlImportStore) -> None:
    await any_store.write(KEY, chunk("equipment", EQUIPMENT, machine("A")), Strategy.MERGE)
    assert (await any_store.finish(KEY)).finished
    assert (await any_store.mark(KEY)).finished


async def test_an_answer_is_remembered_for_its_project_and_type(any_store: SqlImportStore) -> None:
    assert await any_store.remembered("p1", "equipment", "leading_zeros") is None
    await any_store.remember(KEY, "equipment", "leading_zeros", "same")
    await any_store.remember(NEXT, "equipment", "leading_zeros", "distinct")
    await any_store.remember(TaskKey("p2", "t1"), "equipment", "leading_zeros", "same")
    assert await any_store.remembered("p1", "equipment", "leading_zeros") == "distinct"
    assert await any_store.remembered("p1", "material", "leading_zeros") is None


async def test_known_codes_are_found_within_their_scope(any_store: SqlImportStore) -> None:
    rows = chunk("mto_lines", MTO, line("007", 1, 1), line("7", 1, 1), line("7", 2, 1))
    await any_store.write(KEY, rows, Strategy.MERGE)
    names = ("drawing", "commodity_code", "size")
    assert list(await any_store.zero_led_lengths(NEXT, "mto_lines", SERVICE, names)) == [3]
    found = await any_store.known_codes(NEXT, "mto_lines", SERVICE, names, ["7", "8"])
    assert found == {("7", "PIPE", ""): False}
    other = {**SERVICE, "service_id": "s2"}
    assert not await any_store.zero_led_lengths(NEXT, "mto_lines", other, names)
    assert not await any_store.known_codes(NEXT, "mto_lines", other, names, ["7"])


async def test_a_task_knows_the_codes_that_it_has_written_itself(store: SqlImportStore) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("007")), Strategy.MERGE)
    await store.write(NEXT, chunk("equipment", EQUIPMENT, machine("08")), Strategy.MERGE)
    scope = {"project_id": "p1"}
    assert list(await store.zero_led_lengths(KEY, "equipment", scope, ["code"])) == [2]
    known = await store.known_codes(KEY, "equipment", scope, ["code"], ["007", "08", "8"])
    assert known == {("007",): True, ("08",): False}


async def test_lines_that_stand_once_get_a_section(any_store: SqlImportStore) -> None:
    columns = "project_id service_id item_code section sequence"
    items = (("A", "", 1), ("B", "", 1), ("B", "", 2), ("C", "", 1), ("D", "Roof", 1))
    rows = [("p1", "s1", *item) for item in items]
    await any_store.write(KEY, chunk("estimate_lines", columns, *rows), Strategy.MERGE)
    given = dict.fromkeys("ABD", "Walls")
    for _ in range(2):
        await any_store.give_sections(NEXT, "estimate_lines", SERVICE, given)
    names = ("item_code", "section")
    known = await any_store.known_codes(NEXT, "estimate_lines", SERVICE, names, list("ABCD"))
    assert sorted(known) == [("A", "Walls"), ("B", ""), ("C", ""), ("D", "Roof")]
