"""Rows into their tables, whatever happens on the way."""

import asyncio
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from adapters.ports.errors import Unavailable
from tests.support.imports.activities import Killed, environment
from tests.support.spreadsheets.activities import (
    JUNIOR,
    MASTERS,
    SENIOR,
    FailingStore,
    SpreadsheetSetup,
    table,
)
from workflows.shared.errors import TRANSIENT
from workflows.spreadsheets.runs import ProcessCursor, Processed, RowCounts

HEADER = ["First name", "Last name", "Email", "Birthdate", "Category", "T-Shirt"]
PEOPLE = [
    ["Anna", "A", "anna@example.org", "31.05.1990", "Junior", "S"],
    ["Bob", "B", "bob@example.org", "01.02.1980", "Veterans", "M"],
    ["Cleo", "C", "no mail", "03.04.1970", "Senior", ""],
    ["Dan", "D", "dan@example.org", "", "Masters", "XL"],
    ["Anna", "A", "ANNA@example.org", "31.05.1990", "Junior", "M"],
    ["Eve", "E", "eve@example.org", "12.11.1999", "", ""],
    ["Bob", "B", "bob@example.org", "01.02.1980", "Junior", "S"],
    ["Fay", "F", "fay@example.org", "", "Veterans", "XL"],
    ["", "", "gus@example.org", "", "", ""],
    ["Hal", "H", "hal@example.org", "", "=1+1", ""],
]
FILE = table(HEADER, *PEOPLE)
FIRST_ROUND = {2: "CREATED", 4: "ERROR", 6: "ERROR", 7: "CREATED", 8: "ERROR", 10: "ERROR"}
"""Lines 3, 5, 9 and 11 wait for `Veterans`, `XL` and `=1+1`."""
ANSWERS: dict[str, Any] = {"Veterans": MASTERS, "XL": "create", "=1+1": "ignore"}
LAST_ROUND = {**FIRST_ROUND, 3: "CREATED", 5: "CREATED", 9: "CREATED", 11: "CREATED"}


async def registrations(setup: SpreadsheetSetup) -> set[tuple[Any, ...]]:
    """Mail, category and shirt of everybody who is registered."""
    mails = dict(await setup.select("persons", "id email"))
    shirts = dict(await setup.select("custom_list_items", "id name"))
    chosen = {
        participant: shirts[item]
        for participant, item in await setup.select(
            "custom_list_values", "participant_id custom_list_item_id"
        )
    }
    rows = await setup.select("event_participants", "id person_id category_id")
    return {(mails[person], category, chosen.get(id)) for id, person, category in rows}


EVERYBODY = {
    ("anna@example.org", JUNIOR, "S"),
    ("bob@example.org", MASTERS, "M"),
    ("dan@example.org", MASTERS, "XL"),
    ("eve@example.org", None, None),
    ("fay@example.org", MASTERS, "XL"),
    ("hal@example.org", None, None),
}


async def test_waiting_rows_block_no_other_rows(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    first = await prepared.process()
    assert first.counts == RowCounts(created=2, error=4)
    assert (first.parked, first.cells.open) == (4, 3)
    assert await setup.outcomes() == FIRST_ROUND
    await prepared.decide(**ANSWERS)
    second = await prepared.process(1)
    assert second == Processed(counts=RowCounts(created=6, error=4), cells=second.cells)
    assert await setup.outcomes() == LAST_ROUND
    assert await registrations(setup) == EVERYBODY
    assert date(1990, 5, 31) in {row[0] for row in await setup.select("persons", "birthdate")}


async def test_the_messages_name_what_is_wrong(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.process()
    messages = dict(await setup.select("spreadsheet_results", "line message"))
    assert "mail" in messages[4]
    assert messages[6] == "same person as line 2"
    assert messages[8] == "same person as line 3"
    assert "Last name" in messages[10]


async def test_uncollected_values_are_found_during_processing(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    first = await prepared.process()
    assert {each.value: each.rows for each in first.cells.first_open} == {
        "Veterans": 2,
        "XL": 2,
        "=1+1": 1,
    }
    await prepared.decide(**ANSWERS)
    assert (await prepared.process(1)).counts == RowCounts(created=6, error=4)


async def test_a_value_that_is_still_open_parks_its_rows_again(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.process()
    await prepared.decide(2, Veterans=SENIOR)
    second = await prepared.process(1)
    assert (second.parked, second.counts.created, second.cells.open) == (3, 3, 2)
    await prepared.decide(3, XL=52, **{"=1+1": "create"})
    third = await prepared.process(2)
    assert (third.parked, third.counts.created) == (0, 6)
    names = {row[0] for row in await setup.select("event_categories", "name")}
    assert "=1+1" in names


async def test_a_second_run_changes_nothing_and_answers_the_same(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    first = await prepared.process()
    people = await setup.select("persons", "id email first_name")
    assert await prepared.process() == first
    await prepared.decide(**ANSWERS)
    last = await prepared.process(1)
    # Late attempts of both rounds.
    assert await prepared.process(1) == last
    assert await prepared.process() == last
    assert await setup.outcomes() == LAST_ROUND
    assert (await setup.select("persons", "id email first_name"))[:2] == people


async def test_the_same_file_again_is_up_to_date(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.process()
    await prepared.decide(**ANSWERS)
    await prepared.process(1)
    again = await setup.prepare(FILE)
    await again.process()
    await again.decide(**ANSWERS)
    assert (await again.process(1)).counts == RowCounts(skipped=6, error=4)


Happens = Callable[[int], None]


def at(call: int) -> Happens:
    """The worker dies at this call."""

    def happens(number: int) -> None:
        if number == call:
            raise Killed

    return happens


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
async def test_a_worker_that_dies_at_any_chunk_loses_and_repeats_nothing(
    setup: SpreadsheetSetup, call: int, when: str
) -> None:
    prepared = await setup.prepare(FILE)
    store = setup.store
    setup.store = FailingStore(store, "write", **{when: at(call)})  # type: ignore[assignment]
    with pytest.raises(Killed):
        await prepared.process(counting=True)
    setup.store = store
    written = (call if when == "after" else call - 1) * setup.chunk_rows
    assert (await store.mark(prepared.order.uuid)).cursor == min(written, len(PEOPLE))
    first = await prepared.process(counting=True)
    assert (first.counts, first.parked) == (RowCounts(created=2, error=4), 4)
    assert await setup.outcomes() == FIRST_ROUND
    open_values = {each.value: each.rows for each in first.cells.first_open}
    assert open_values == {"Veterans": 2, "XL": 2, "=1+1": 1}
    await prepared.decide(**ANSWERS)
    setup.store = FailingStore(store, "write", **{when: at(min(call, 2))})  # type: ignore[assignment]
    with pytest.raises(Killed):
        await prepared.process(1)
    setup.store = store
    last = await prepared.process(1)
    assert (last.counts, last.parked) == (RowCounts(created=6, error=4), 0)
    assert await setup.outcomes() == LAST_ROUND
    assert await registrations(setup) == EVERYBODY


async def test_a_restart_reads_dates_as_the_file_began(setup: SpreadsheetSetup) -> None:
    # Only the first row tells that the day comes first.
    rows = [[f"P{i}", "X", "", "31.05.1990" if i == 0 else "01.02.1980", "", ""] for i in range(9)]
    prepared = await setup.prepare(table(HEADER, *rows))
    store = setup.store
    setup.store = FailingStore(store, "write", after=at(2))  # type: ignore[assignment]
    with pytest.raises(Killed):
        await prepared.process()
    setup.store = store
    assert (await prepared.process()).counts == RowCounts(created=9)
    born = {row[0] for row in await setup.select("persons", "birthdate")}
    assert born == {date(1990, 5, 31), date(1980, 2, 1)}


async def test_a_cancelled_run_stops_between_chunks_and_resumes_there(
    setup: SpreadsheetSetup,
) -> None:
    prepared = await setup.prepare(FILE)
    env = environment(heartbeat_timeout=timedelta(seconds=1))
    beats: list[Any] = []
    env.on_heartbeat = lambda *details: beats.extend(details)
    store = setup.store
    setup.store = FailingStore(  # type: ignore[assignment]
        store, "write", after=lambda call: env.cancel() if call == 2 else None
    )
    with pytest.raises(asyncio.CancelledError):
        await env.run(setup.rows.process, prepared.work())
    setup.store = store
    mark = await store.mark(prepared.order.uuid)
    assert (mark.cursor, mark.finished) == (6, False)
    assert beats[-1].total == len(PEOPLE)
    assert (await prepared.process()).counts == RowCounts(created=2, error=4)
    assert await setup.outcomes() == FIRST_ROUND


async def test_a_heartbeat_reports_the_progress_of_rows(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    env = environment(heartbeat_timeout=timedelta(seconds=1))
    beats: list[Any] = []
    env.on_heartbeat = lambda *details: beats.extend(details)
    failing = FailingStore(setup.store, "end_round", before=_away)
    setup.store = failing  # type: ignore[assignment]
    with pytest.raises(ApplicationError) as caught:
        await env.run(setup.rows.process, prepared.work())
    assert caught.value.type == TRANSIENT
    assert beats[-1] == ProcessCursor(rows=10, total=10)


def _away(call: int) -> None:
    raise Unavailable("the database is unavailable")


async def test_a_dry_run_reports_everything_and_writes_nothing(setup: SpreadsheetSetup) -> None:
    await (await setup.prepare(table(HEADER[:4], [*PEOPLE[0][:3], "31.05.1990"]))).process()
    async with setup.database.transaction() as connection:
        await connection.exec_driver_sql("UPDATE persons SET email = 'Anna@example.org'")
    before = await setup.select("persons", "id first_name email")
    categories = await setup.count("event_categories")
    prepared = await setup.prepare(FILE, dry_run=True)
    await prepared.process()
    answers = {**ANSWERS, "Veterans": "create"}
    await prepared.decide(**answers)
    last = await prepared.process(1)
    assert last.counts == RowCounts(created=5, updated=1, error=4)
    assert last.parked == 0
    assert await setup.select("persons", "id first_name email") == before
    assert await setup.count("event_participants") == 1
    assert await setup.count("event_categories") == categories
    assert await setup.count("custom_list_items") == 2
    differences = await setup.select("spreadsheet_differences", "line column_name before after")
    assert (2, "email", "Anna@example.org", "anna@example.org") in differences


async def test_a_blank_cell_clears_no_value(setup: SpreadsheetSetup) -> None:
    await (await setup.prepare(FILE)).process()
    rows = [["Anna", "A", "anna@example.org", "31.05.1990", "", ""]]
    again = await setup.prepare(table(HEADER, *rows))
    assert (await again.process()).counts == RowCounts(skipped=1)
    assert ("anna@example.org", JUNIOR, "S") in await registrations(setup)


async def test_a_made_entity_is_found_by_other_spellings_and_made_once(
    setup: SpreadsheetSetup,
) -> None:
    rows = [
        ["Anna", f"A{i}", "", "", name, ""] for i, name in enumerate(("Elite", "elite", "ELITE"))
    ]
    masters = await setup.select("event_categories", "id name")
    prepared = await setup.prepare(table(HEADER, *rows))
    await prepared.collect()
    await prepared.decide(Elite="create", elite="create", ELITE="create")
    store = setup.store
    setup.store = FailingStore(store, "create_entity", after=at(2))  # type: ignore[assignment]
    with pytest.raises(Killed):
        await prepared.process()
    setup.store = store
    assert (await prepared.process()).counts == RowCounts(created=3)
    found = await setup.select("event_categories", "id name")
    made = [row for row in found if row not in masters]
    assert len(made) == 1
    used = {row[0] for row in await setup.select("event_participants", "category_id")}
    assert used == {made[0][0]}


async def test_a_file_without_rows_is_over_at_once(setup: SpreadsheetSetup) -> None:
    with pytest.raises(ApplicationError, match="holds headers and no rows below them"):
        await setup.prepare(table(HEADER))


async def test_columns_as_people_left_them(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    only = tuple(
        column
        if column.target in ("FIRST_NAME", "LAST_NAME")
        else column.model_copy(update={"target": None})
        for column in prepared.columns
    )
    work = prepared.work().model_copy(update={"columns": only})
    processed = await environment().run(setup.rows.process, work)
    # Without the mail, name and birthdate tell people apart.
    assert processed.counts.created == 7
    assert {row[0] for row in await setup.select("persons", "email")} == {None}


async def test_scratch_is_left_clean(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.process()
    assert list(setup.scratch.glob("docflow-*")) == []
