"""Values that refer to other tables: collected, decided, remembered."""

import asyncio
import time
from datetime import date, timedelta
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.spreadsheets import values
from activities.spreadsheets.analysis import load_context
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    JUNIOR,
    MASTERS,
    SENIOR,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.shared.errors import INVALID_DECISION
from workflows.spreadsheets.mappings import CellDecision, CellMapping, MappingStatus
from workflows.spreadsheets.runs import CollectInput

HEADER = ["First name", "Last name", "Category", "Country", "T-Shirt"]
FILE = table(
    HEADER,
    ["Anna", "A", "Junior (U18)", "Germany", "S"],
    ["Bob", "B", "junior u18", "GER", "XL"],
    ["Cleo", "C", "Veterans", "Wonderland", ""],
    ["Dan", "D", " Veterans ", " ", "XL"],
    ["Eve", "E", "Veterans", "Deutschland"],
)


async def mappings(prepared: StagedSpreadsheet) -> dict[tuple[str, str], CellMapping]:
    pages = [page async for page in prepared.setup.store.mappings(prepared.order.uuid)]
    return {(each.field, each.value): each for page in pages for each in page}


async def test_one_mapping_per_distinct_value_with_its_rows(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    summary = await prepared.collect()
    assert (summary.total, summary.open) == (9, 3)
    assert [(each.field, each.value, each.rows) for each in summary.first_open] == [
        ("EVENT_CATEGORY_NAME", "Veterans", 3),
        ("ID_COUNTRY", "Wonderland", 1),
        ("CUSTOM_LIST_T_SHIRT", "XL", 2),
    ]
    known = await mappings(prepared)
    assert known["EVENT_CATEGORY_NAME", "Junior (U18)"].target_id == JUNIOR
    assert known["EVENT_CATEGORY_NAME", "junior u18"].target_id == JUNIOR
    assert {known["ID_COUNTRY", name].target_id for name in ("Germany", "GER", "Deutschland")} == {
        276
    }
    assert await prepared.collect() == summary


async def test_cells_of_other_types_are_values_as_people_see_them(setup: SpreadsheetSetup) -> None:
    path = setup.folder / "made.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, HEADER[:3])
        for line, cell in enumerate([1, 1.0, "1", True, "TRUE", 0, False, None, " "], start=1):
            sheet.write_row(line, 0, [f"Anna{line}", "A", cell])
    prepared = await setup.prepare(path.read_bytes(), filename="t.xlsx")
    summary = await prepared.collect()
    assert {each.value: each.rows for each in summary.first_open} == {
        "1": 3,
        "TRUE": 2,
        "0": 1,
        "FALSE": 1,
    }


async def test_columns_that_are_left_out_bring_no_values(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    ignored = tuple(
        column.model_copy(update={"status": MappingStatus.IGNORED, "target": None})
        if column.target in ("ID_COUNTRY", "CUSTOM_LIST_T_SHIRT")
        else column
        for column in prepared.columns
    )
    analysis = prepared.analysis.model_copy(update={"columns": ignored})
    summary = await StagedSpreadsheet(setup, prepared.order, analysis, prepared.staged).collect()
    assert (summary.total, summary.open) == (3, 1)


async def test_a_file_without_such_columns_has_no_values(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(HEADER[:2], ["Anna", "A"]))
    assert (await prepared.collect()).total == 0


async def test_only_so_many_values_are_collected_ahead(
    setup: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "DISTINCT_VALUES", 3)
    rows = [["Anna", f"A{n}", f"C{i}", "", ""] for n, i in enumerate((0, 1, 2, 3, 0, 4, 1))]
    prepared = await setup.prepare(table(HEADER, *rows))
    summary = await prepared.collect()
    assert [(each.value, each.rows) for each in summary.first_open] == [
        ("C0", 2),
        ("C1", 2),
        ("C2", 1),
    ]
    processed = await prepared.process()
    assert processed.cells.open == 5
    assert processed.parked == 7


async def test_decisions_in_all_their_forms(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    said: dict[str, Any] = {
        "Veterans": MASTERS,
        "Wonderland": "ignore",
        "XL": "create",
        "junior u18": "confirm",
        "S": "confirm",
    }
    assert (await prepared.decide(**said)).open == 0
    known = await mappings(prepared)
    veterans = known["EVENT_CATEGORY_NAME", "Veterans"]
    assert (veterans.status, veterans.target_id, veterans.target_name) == (
        MappingStatus.MANUAL_MATCHED,
        MASTERS,
        "Masters (40+)",
    )
    assert known["ID_COUNTRY", "Wonderland"].status is MappingStatus.IGNORED
    assert known["CUSTOM_LIST_T_SHIRT", "XL"].create
    assert known["EVENT_CATEGORY_NAME", "junior u18"].target_id == JUNIOR
    trail = {row[0]: row[1:] for row in await setup.select("decisions", "subject decision by")}
    assert trail["EVENT_CATEGORY_NAME: Veterans"] == ("Masters (40+)", "anna")
    assert trail["CUSTOM_LIST_T_SHIRT: XL"] == ("created", "anna")


async def test_a_decision_can_be_changed(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    await prepared.decide(2, Veterans="ignore")
    await prepared.decide(3, Veterans=SENIOR)
    assert (await mappings(prepared))["EVENT_CATEGORY_NAME", "Veterans"].target_id == SENIOR


async def test_a_repeated_version_is_applied_once(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    first = await prepared.decide(2, Veterans=SENIOR)
    assert await prepared.decide(2, Veterans=SENIOR) == first
    assert len(await setup.select("decisions", "id")) == 1


@pytest.mark.parametrize(
    ("value", "said", "reason"),
    [
        ("Veterans", {"target_id": 4711}, "there is no Category 4711 to choose"),
        ("Veterans", {"target_id": 276}, "there is no Category 276 to choose"),
        ("Wonderland", {"create": True}, "Country takes what is there already"),
        ("Veterans", {"confirm": True}, "'Veterans'\\) has no match to confirm"),
        ("Veterans", {}, "exactly one of"),
        ("Veterans", {"ignore": True, "target_id": SENIOR}, "exactly one of"),
    ],
)
async def test_what_cannot_be_decided_is_refused_with_the_reason(
    setup: SpreadsheetSetup, value: str, said: dict[str, Any], reason: str
) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    ids = await prepared.ids()
    before = await mappings(prepared)
    decisions = (
        CellDecision(id=ids["XL"], ignore=True),
        CellDecision.model_validate({"id": ids[value], **said}),
    )
    with pytest.raises(ApplicationError, match=f"value {ids[value]}.*{reason}") as caught:
        await prepared.decide_these(decisions)
    assert (caught.value.type, caught.value.non_retryable) == (INVALID_DECISION, True)
    assert await mappings(prepared) == before


async def test_every_wrong_decision_is_named_in_one_sentence(setup: SpreadsheetSetup) -> None:
    other = await setup.prepare(FILE)
    await other.collect()
    theirs = (await other.ids())["Veterans"]
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    mine = (await prepared.ids())["XL"]
    decisions = (
        CellDecision(id=theirs, ignore=True),
        CellDecision(id=mine, ignore=True),
        CellDecision(id=mine, create=True),
        *(CellDecision(id=9000 + i, ignore=True) for i in range(5)),
    )
    with pytest.raises(ApplicationError) as caught:
        await prepared.decide_these(decisions)
    message = str(caught.value)
    assert f"there is no value {theirs} in this import" in message
    assert f"value {mine} is decided twice" in message
    assert message.endswith("and 3 more")


async def test_what_was_confirmed_is_remembered_for_the_next_file(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    await prepared.collect()
    open_values = await prepared.collect()
    assert {each.field: each.total for each in open_values.candidates} == {
        "EVENT_CATEGORY_NAME": 3,
        "ID_COUNTRY": 249,
        "CUSTOM_LIST_T_SHIRT": 2,
    }
    lists = {each.field: each.first for each in open_values.candidates}
    assert [each.id for each in lists["EVENT_CATEGORY_NAME"]] == [JUNIOR, MASTERS, SENIOR]
    assert len(lists["ID_COUNTRY"]) == 30
    await prepared.decide(2, Veterans=MASTERS, Wonderland="ignore", XL="ignore")
    again = await setup.prepare(FILE)
    assert (await again.collect()).open == 3
    await prepared.decide_these((), 3, confirm=True)
    later = await setup.prepare(FILE)
    assert (await later.collect()).open == 0
    found = await mappings(later)
    veterans = found["EVENT_CATEGORY_NAME", "Veterans"]
    assert (veterans.target_id, veterans.confidence) == (MASTERS, 0.9)
    left_empty = {
        (mapping.value, mapping.confidence)
        for mapping in found.values()
        if mapping.status is MappingStatus.IGNORED
    }
    assert left_empty == {("Wonderland", 0.9), ("XL", 0.9)}


async def test_a_context_holds_what_is_asked_for(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(FILE)
    order, today = prepared.order, date(2025, 3, 4)
    everything = await load_context(setup.store, setup.types, order, today)
    assert set(everything.entities) == {"countries", "event_categories", "custom_list/5"}
    one = await load_context(
        setup.store, setup.types, order, today, only=("EVENT_CATEGORY_NAME", "LAST_NAME")
    )
    assert [entity.id for entity in one.entities["event_categories"]] == [JUNIOR, MASTERS, SENIOR]
    assert set(one.entities) == {"event_categories"}
    assert (one.organisation_id, one.context_id, one.today) == (1, order.context_id, today)


async def test_collecting_is_cancelled_within_a_second(
    setup: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "STEP_SECONDS", 0.05)
    rows = [["Anna", "A", "Veterans", "", ""]] * 2000
    prepared = await setup.prepare(table(HEADER, *rows))
    read = values.StagedRows.read

    def endless(self: values.StagedRows) -> Any:
        while True:
            yield from read(self)

    monkeypatch.setattr(values.StagedRows, "read", endless)
    env = environment(heartbeat_timeout=timedelta(seconds=0.1))
    beats: list[Any] = []
    env.on_heartbeat = lambda *details: beats.append(details)
    work = CollectInput(order=prepared.order, staged=prepared.staged, columns=prepared.columns)
    running = asyncio.create_task(env.run(setup.values.collect_values, work))
    while not (beats and beats[-1]):
        assert not running.done()
        await asyncio.sleep(0.01)
    began = time.monotonic()
    env.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 5
    assert await setup.count("spreadsheet_values") == 0
