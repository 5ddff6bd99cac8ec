"""How rows get in: strategies, progress, rejects, staging."""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pytest

from activities.imports.store import SqlImportStore
from adapters.database.engine import Database
from adapters.database.models.base import metadata
from adapters.database.models.imports import import_rejects
from tests.support.imports.store import chunk, count, reject, stored
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, LoadMark, TaskKey

KEY = TaskKey("p1", "t1")
NEXT = TaskKey("p1", "t2")
TODAY = date(2026, 3, 1)
EQUIPMENT = "project_id code description rate"
MTO = "project_id service_id drawing commodity_code size sequence quantity"
SERVICE = {"project_id": "p1", "service_id": "s1"}


def machine(code: str, description: str | None = None, rate: str | None = None) -> tuple:
    return ("p1", code, description, None if rate is None else Decimal(rate))


def line(drawing: str, sequence: int, quantity: int, service: str = "s1") -> tuple:
    return ("p1", service, drawing, "PIPE", "", sequence, Decimal(quantity))


async def test_merge_counts_what_it_created_changed_and_left(
    store: SqlImportStore, database: Database
) -> None:
    first = chunk("equipment", EQUIPMENT, machine("A", "crane", "1.5"), machine("B", "truck"))
    await store.write(KEY, first, Strategy.MERGE)
    second = chunk(
        "equipment",
        EQUIPMENT,
        machine("A", "crane", "1.500000"),
        machine("B", "lorry"),
        machine("C", "pump"),
    )
    mark = await store.write(NEXT, second, Strategy.MERGE)
    assert mark == LoadMark(cursor=3, counts=Counts(created=1, updated=1, unchanged=1))
    assert await stored(
        database, "equipment", "code description rate version source_task source_line"
    ) == [
        ("A", "crane", Decimal("1.500000"), 1, "t1", 2),
        ("B", "lorry", None, 2, "t2", 3),
        ("C", "pump", None, 1, "t2", 4),
    ]


async def test_a_column_the_file_lacks_is_kept_and_a_blank_cell_clears(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(
        KEY, chunk("equipment", EQUIPMENT, machine("A", "crane", "3")), Strategy.MERGE
    )
    await store.write(
        NEXT, chunk("equipment", "project_id code rate", ("p1", "A", None)), Strategy.MERGE
    )
    assert await stored(database, "equipment", "description rate") == [("crane", None)]


async def test_keys_alone_can_be_imported(store: SqlImportStore, database: Database) -> None:
    keys = chunk("equipment", "project_id code", ("p1", "A"))
    assert (await store.write(KEY, keys, Strategy.MERGE)).counts == Counts(created=1)
    assert (await store.write(NEXT, keys, Strategy.MERGE)).counts == Counts(unchanged=1)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1.0000005", "1.000001"),
        ("-1.0000005", "-1.000001"),
        ("-0.0000001", "0"),
        ("99999999999999.999999", "99999999999999.999999"),
        ("1E+3", "1000"),
        ("-0", "0"),
    ],
)
async def test_numbers_are_exact_to_six_places(
    store: SqlImportStore, database: Database, given: str, kept: str
) -> None:
    row = chunk("equipment", EQUIPMENT, machine("A", None, given))
    await store.write(KEY, row, Strategy.MERGE)
    ((rate,),) = await stored(database, "equipment", "rate")
    assert str(rate) == str(Decimal(kept).quantize(Decimal("0.000001")))
    assert (await store.write(NEXT, row, Strategy.MERGE)).counts == Counts(unchanged=1)


async def test_values_that_no_database_can_hold_are_rejected_and_the_rest_is_loaded(
    store: SqlImportStore, database: Database
) -> None:
    rows = chunk(
        "equipment",
        EQUIPMENT,
        machine("A"),
        machine("B", "nul \0"),
        machine("C", "half \ud800"),
        machine("D", None, "100000000000000"),
        machine("E", None, "NaN"),
        machine("F" * 3000),
    )
    mark = await store.write(KEY, rows, Strategy.MERGE)
    assert mark.counts == Counts(created=1, rejected=5)
    assert mark.problem_count == 5
    (page,) = [page async for page in store.rejects(KEY)]
    assert [(row.line, row.problems[0].column) for row in page] == [
        (3, "description"),
        (4, "description"),
        (5, "rate"),
        (6, "rate"),
        (7, None),
    ]
    assert await stored(database, "equipment", "code") == [("A",)]


async def test_append_rejects_known_keys_with_their_cells(store: SqlImportStore) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A", "crane")), Strategy.MERGE)
    rows = chunk("equipment", EQUIPMENT, machine("B"), machine("A", "other"))
    mark = await store.write(NEXT, rows, Strategy.APPEND)
    assert mark.counts == Counts(created=1, rejected=1)
    (page,) = [page async for page in store.rejects(NEXT)]
    assert [row.line for row in page] == [3]
    assert list(page[0].cells) == ["p1", "A", "other", "None"]
    assert page[0].problems[0].reason.startswith("there is a row of code A already")


async def test_append_numbers_lines_after_the_highest_of_their_key(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(
        KEY, chunk("mto_lines", MTO, line("D1", 1, 1), line("D1", 2, 2)), Strategy.APPEND
    )
    rows = [line("D1", 1, 10), line("D2", 1, 20), line("D1", 2, 11), line("D1", 7, 12)]
    mark = await store.write(NEXT, chunk("mto_lines", MTO, *rows), Strategy.APPEND)
    more = chunk("mto_lines", MTO, line("D1", 3, 13), cursor=5, first_line=6)
    mark = await store.write(NEXT, more, Strategy.APPEND)
    assert mark.counts == Counts(created=5)
    assert await stored(database, "mto_lines", "drawing sequence quantity") == [
        ("D1", 1, 1),
        ("D1", 2, 2),
        ("D1", 3, 13),
        ("D1", 7, 12),
        ("D1", 8, 10),
        ("D1", 9, 11),
        ("D2", 1, 20),
    ]


async def test_update_only_rejects_unknown_keys(store: SqlImportStore, database: Database) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A", "crane")), Strategy.MERGE)
    rows = chunk("equipment", EQUIPMENT, machine("A", "lift"), machine("B", "truck"))
    mark = await store.write(NEXT, rows, Strategy.UPDATE_ONLY)
    assert mark.counts == Counts(updated=1, rejected=1)
    (page,) = [page async for page in store.rejects(NEXT)]
    assert page[0].problems[0].reason.startswith("there is no row of code B to update")
    assert await stored(database, "equipment", "code description") == [("A", "lift")]


async def test_create_only_leaves_known_keys_alone(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A", "crane")), Strategy.MERGE)
    rows = chunk("equipment", EQUIPMENT, machine("A", "lift"), machine("B", "truck"))
    mark = await store.write(NEXT, rows, Strategy.CREATE_ONLY)
    assert mark.counts == Counts(created=1, unchanged=1)
    assert await stored(database, "equipment", "code description") == [
        ("A", "crane"),
        ("B", "truck"),
    ]


@pytest.mark.parametrize("strategy", [Strategy.MERGE, Strategy.APPEND])
async def test_a_repeated_chunk_is_ignored(
    store: SqlImportStore, database: Database, strategy: Strategy
) -> None:
    first = chunk("mto_lines", MTO, line("D1", 1, 1), rejected=[reject(3)], cursor=2)
    second = chunk("mto_lines", MTO, line("D2", 1, 1), cursor=3)
    await store.write(KEY, first, strategy)
    done = await store.write(KEY, second, strategy)
    assert await store.write(KEY, first, strategy) == done
    assert await store.write(KEY, second, strategy) == done
    assert done == LoadMark(cursor=3, counts=Counts(created=2, rejected=1), problem_count=1)
    assert await count(database, import_rejects) == 1
    assert len(await stored(database, "mto_lines", "drawing")) == 2


async def test_marks_are_empty_before_and_finished_after(store: SqlImportStore) -> None:
    assert await store.mark(KEY) == LoadMark()
    await store.restart(KEY, ["Code", "Größe"])
    assert (await store.mark(KEY)).header == ("Code", "Größe")
    mark = await store.finish(KEY)
    assert mark.finished
    assert await store.mark(KEY) == mark


async def test_a_restart_drops_staged_rows(store: SqlImportStore, database: Database) -> None:
    await store.restart(KEY, ["old"])
    await store.stage(KEY, chunk("equipment", EQUIPMENT, machine("A"), rejected=[reject(9)]))
    await store.restart(KEY, ["new"])
    assert await store.mark(KEY) == LoadMark(header=("new",))
    assert await count(database, import_rejects) == 0
    assert await count(database, metadata.tables["staged_equipment"]) == 0


async def test_rejects_are_paged_by_line_with_their_cells(store: SqlImportStore) -> None:
    cells = ["x", 1, 2.5, True, None, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), "a\0b"]
    late = [reject(number) for number in range(3000, 1500, -1)]
    await store.write(KEY, chunk("equipment", EQUIPMENT, cursor=1, rejected=late), Strategy.MERGE)
    early = [reject(4, cells=cells), reject(4, "second")]
    await store.write(KEY, chunk("equipment", EQUIPMENT, cursor=2, rejected=early), Strategy.MERGE)
    pages = [page async for page in store.rejects(KEY)]
    assert [len(page) for page in pages] == [1000, 502]
    rows = [row for page in pages for row in page]
    assert [row.line for row in rows] == [4, 4, *range(1501, 3001)]
    assert list(rows[0].cells) == cells
    assert [type(cell) for cell in rows[0].cells] == [type(cell) for cell in cells]
    assert rows[1].problems[0].reason == "second"


async def test_replace_takes_the_whole_file_in_at_once(
    store: SqlImportStore, database: Database
) -> None:
    old = [line("D1", 1, 1), line("D2", 1, 2), line("D3", 1, 3), line("D9", 1, 9, service="s2")]
    await store.write(KEY, chunk("mto_lines", MTO, *old), Strategy.MERGE)
    await store.stage(NEXT, chunk("mto_lines", MTO, line("D2", 1, 2), cursor=1))
    await store.stage(
        NEXT, chunk("mto_lines", MTO, line("D3", 1, 33), line("D4", 1, 4), cursor=3, first_line=3)
    )
    assert len(await stored(database, "mto_lines", "drawing")) == 4
    mark = await store.swap(NEXT, "mto_lines", SERVICE, Strategy.REPLACE, TODAY)
    assert mark.finished
    assert mark.counts == Counts(created=1, updated=1, unchanged=1, deleted=1)
    assert await stored(database, "mto_lines", "drawing quantity") == [
        ("D2", 2),
        ("D3", 33),
        ("D4", 4),
        ("D9", 9),
    ]
    assert await store.swap(NEXT, "mto_lines", SERVICE, Strategy.REPLACE, TODAY) == mark
    assert await count(database, metadata.tables["staged_mto_lines"]) == 0


async def test_replace_by_an_empty_file_empties_the_scope(
    store: SqlImportStore, database: Database
) -> None:
    await store.write(
        KEY, chunk("mto_lines", MTO, line("D1", 1, 1), line("D1", 1, 1, "s2")), Strategy.MERGE
    )
    await store.restart(NEXT, [])
    mark = await store.swap(NEXT, "mto_lines", SERVICE, Strategy.REPLACE, TODAY)
    assert mark.counts == Counts(deleted=1)
    assert await stored(database, "mto_lines", "service_id") == [("s2",)]


async def test_an_all_or_nothing_merge_is_loaded(store: SqlImportStore, database: Database) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A", "x")), Strategy.MERGE)
    await store.stage(NEXT, chunk("equipment", EQUIPMENT, machine("A", "y"), machine("B")))
    mark = await store.swap(NEXT, "equipment", {"project_id": "p1"}, Strategy.MERGE, TODAY)
    assert mark.counts == Counts(created=1, updated=1)
    assert await stored(database, "equipment", "code description") == [("A", "y"), ("B", None)]


async def test_a_swap_rejects_as_a_write_does(store: SqlImportStore, database: Database) -> None:
    await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A", "x")), Strategy.MERGE)
    await store.stage(NEXT, chunk("equipment", EQUIPMENT, machine("A", "y"), machine("B")))
    scope = {"project_id": "p1"}
    mark = await store.swap(NEXT, "equipment", scope, Strategy.APPEND, TODAY)
    assert (mark.counts, mark.problem_count) == (Counts(created=1, rejected=1), 1)
    (page,) = [page async for page in store.rejects(NEXT)]
    assert [list(row.cells) for row in page] == [["p1", "A", "y", "None"]]
    assert await stored(database, "equipment", "code description") == [("A", "x"), ("B", None)]


async def test_staged_appends_of_many_pages_are_numbered_in_the_order_of_the_file(
    store: SqlImportStore, database: Database
) -> None:
    rows = [line("D", number, number) for number in range(1, 6001)]
    first = chunk("mto_lines", MTO, *rows[:2500], cells=False)
    await store.stage(KEY, first)
    rest = chunk("mto_lines", MTO, *rows[2500:], cursor=6000, first_line=2502, cells=False)
    await store.stage(KEY, rest)
    await store.swap(KEY, "mto_lines", SERVICE, Strategy.APPEND, TODAY)
    assert await stored(database, "mto_lines", "sequence quantity") == [
        (number, number) for number in range(1, 6001)
    ]


async def test_a_header_may_arrive_with_the_first_chunk(store: SqlImportStore) -> None:
    rows = replace(chunk("equipment", EQUIPMENT, machine("A")), header=("Code", "Größe"))
    assert (await store.write(KEY, rows, Strategy.MERGE)).cursor == 1
    assert (await store.mark(KEY)).header == ("Code", "Größe")


async def test_columns_that_are_not_the_tables_are_a_mistake_of_the_caller(
    store: SqlImportStore,
) -> None:
    with pytest.raises(ValueError, match=r"columns \['colour'\] of equipment"):
        await store.write(
            KEY, chunk("equipment", "project_id code colour", ("p", "A", "red")), Strategy.MERGE
        )
    with pytest.raises(ValueError, match=r"key columns \['code'\]"):
        await store.write(KEY, chunk("equipment", "project_id", ("p",)), Strategy.MERGE)
    with pytest.raises(ValueError, match="staged and swapped"):
        await store.write(KEY, chunk("equipment", EQUIPMENT, machine("A")), Strategy.REPLACE)


async def test_a_service_is_deleted_and_nothing_else(
    store: SqlImportStore, database: Database
) -> None:
    rows = [line("D1", 1, 1), line("D2", 1, 1), line("D1", 1, 1, "s2")]
    await store.write(KEY, chunk("mto_lines", MTO, *rows), Strategy.MERGE)
    other = TaskKey("p1", "delete")
    assert await store.delete_service(other, "mto_lines", "s1") == Counts(deleted=2)
    assert await stored(database, "mto_lines", "service_id") == [("s2",)]


async def test_a_delete_done_twice_leaves_what_came_between(
    store: SqlImportStore, database: Database
) -> None:
    """Its worker died after the commit; the second call is of the same task."""
    other = TaskKey("p1", "delete")
    await store.write(KEY, chunk("mto_lines", MTO, line("D1", 1, 1)), Strategy.MERGE)
    await store.delete_service(other, "mto_lines", "s1")
    await store.write(
        TaskKey("p1", "new"), chunk("mto_lines", MTO, line("D2", 1, 1)), Strategy.MERGE
    )
    assert await store.delete_service(other, "mto_lines", "s1") == Counts(deleted=1)
    assert await stored(database, "mto_lines", "drawing") == [("D2",)]
    corrected = await store.delete_service(other, "mto_lines", "s2")
    assert corrected == Counts()
