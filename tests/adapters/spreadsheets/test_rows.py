"""How rows of spreadsheets get into the tables, chunk by chunk."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import delete, text

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import event_categories
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import (
    Runner,
    everything,
    opened,
    people,
    record,
    results,
    table,
)
from workflows.shared.contracts import Problem
from workflows.spreadsheets.fields import FoundValue, ParkedRow, SheetMark, TargetRows
from workflows.spreadsheets.mappings import CellSummary, SpreadsheetState
from workflows.spreadsheets.runs import RowCounts

ANNA = Runner("email:anna", "Ahrens", "Aachen")
BERT = Runner("email:bert", "Becker", "Berlin")


async def test_a_row_is_created_changed_or_up_to_date(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    first = await opened(sheets, club)
    mark = await first.write(ANNA, BERT)
    assert mark.counts == RowCounts(created=2)
    assert (mark.chunk, mark.cursor, mark.offset) == (1, 4, 4)
    second = await opened(sheets, club)
    moved = replace(BERT, city="Bonn")
    mark = await second.write(ANNA, moved, Runner("email:cleo", "Claus"))
    assert mark.counts == RowCounts(created=1, updated=1, skipped=1)
    assert await results(database, second.uuid) == [
        (2, "SKIPPED", "already up to date"),
        (3, "UPDATED", None),
        (4, "CREATED", None),
    ]
    assert await people(database) == [
        ("email:anna", "Ahrens", "Aachen"),
        ("email:bert", "Becker", "Bonn"),
        ("email:cleo", "Claus", None),
    ]
    assert len(await table(database, "event_participants", "event_id person_id")) == 3


async def test_a_blank_cell_erases_nothing(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(replace(ANNA, birthdate=date(1990, 5, 31)))
    mark = await (await opened(sheets, club)).write(Runner("email:anna", None, "Köln"))
    assert mark.counts == RowCounts(updated=1)
    assert await table(database, "persons", "last_name city birthdate") == [
        ("Ahrens", "Köln", date(1990, 5, 31))
    ]
    mark = await (await opened(sheets, club)).write(Runner("email:anna"))
    assert mark.counts == RowCounts(skipped=1)


async def test_choices_of_lists_belong_to_the_participant(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    large, small = club.shirts["L"], club.shirts["S"]
    await (await opened(sheets, club)).write(replace(ANNA, shirt=large), BERT)
    mark = await (await opened(sheets, club)).write(
        replace(ANNA, shirt=small), replace(BERT, shirt=small)
    )
    # A choice beside the registration is a change of the registration, not a new one.
    assert mark.counts == RowCounts(updated=2)
    assert await table(database, "custom_list_values", "custom_list_item_id") == [(small,)] * 2


async def test_a_known_person_in_a_new_event_is_created(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(ANNA)
    sheet = await opened(sheets, club, import_type="MEMBERSHIP")
    chunk = replace(
        sheet.chunk(ANNA),
        main="memberships",
        targets=[
            sheet.chunk(ANNA).targets[0],
            TargetRows(
                "memberships",
                ("membership_period_id", "membership_type_id", "fee"),
                [(club.membership_period_id, club.membership_types["Adult"], Decimal("12.5"))],
                [0],
                {"person_id": "persons"},
            ),
        ],
    )
    mark = await sheets.write(sheet.uuid, chunk, dry_run=False)
    assert mark.counts == RowCounts(created=1)
    assert len(await people(database)) == 1
    assert await table(database, "memberships", "fee") == [(Decimal("12.500000"),)]
    again = await opened(sheets, club)
    targets = chunk.targets
    same = replace(targets[1], rows=[(*targets[1].rows[0][:2], Decimal("12.5000001"))])
    mark = await sheets.write(again.uuid, replace(chunk, targets=[targets[0], same]), dry_run=False)
    assert mark.counts == RowCounts(skipped=1)


async def test_a_chunk_that_was_loaded_before_is_ignored(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA)
    mark = await sheet.write(BERT, number=1, line=3)
    before = await everything(database)
    assert await sheet.write(replace(ANNA, city="Ulm")) == mark
    assert await sheet.write(replace(BERT, city="Ulm"), number=1, line=3) == mark
    assert await everything(database) == before
    assert await sheets.mark(sheet.uuid) == mark
    with pytest.raises(ValueError, match="chunk 5 of round 0"):
        await sheet.write(ANNA, number=5)


async def test_values_that_no_database_can_hold_are_errors_and_the_rest_is_loaded(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    mark = await sheet.write(
        ANNA,
        Runner("email:nul", "nul \0"),
        Runner("email:half", "half \ud800"),
        Runner("email:" + "x" * 3_000),
        Runner("email:far", "far", category=2**70),
        BERT,
        errors=[(9, [Problem(line=9, column="Bib", value="x", reason="is not a number")])],
        skipped=[(10, "blank")],
    )
    assert mark.counts == RowCounts(created=2, error=5, skipped=1)
    reported = {line: rest for line, *rest in await results(database, sheet.uuid)}
    assert {line: outcome for line, (outcome, _) in reported.items()} == {
        **dict.fromkeys((2, 7), "CREATED"),
        **dict.fromkeys((3, 4, 5, 6, 9), "ERROR"),
        10: "SKIPPED",
    }
    assert reported[3][1] == "Last name: holds a character that cannot be stored; remove it"
    assert "2,000 bytes" in str(reported[5][1])
    assert reported[9][1] == "Bib: is not a number"
    assert reported[10][1] == "blank"
    assert [key for key, *_ in await people(database)] == ["email:anna", "email:bert"]
    (page,) = [page async for page in sheets.errors(sheet.uuid)]
    assert [line for line, _ in page] == [3, 4, 5, 6, 9]
    assert page[-1][1] == (Problem(line=9, column="Bib", value="x", reason="is not a number"),)


async def test_a_row_without_what_its_table_needs_is_an_error(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    shirts = TargetRows(
        "custom_list_values",
        ("custom_list_id", "custom_list_item_id"),
        [(club.shirts_list_id, None)],
        [1],
        {"participant_id": "event_participants"},
    )
    targets = [*sheet.chunk(ANNA, BERT).targets[:2], shirts]
    mark = await sheet.write(ANNA, BERT, targets=targets)
    assert mark.counts == RowCounts(created=1, error=1)
    assert [key for key, *_ in await people(database)] == ["email:anna"]
    assert (await results(database, sheet.uuid))[1] == (
        *(3, "ERROR"),
        "Choice: is missing; fill it in",
    )


async def test_a_row_that_refers_to_something_deleted_is_an_error(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    junior, senior = club.categories["Junior (U18)"], club.categories["Senior (18+)"]
    async with database.transaction() as connection:
        await connection.execute(delete(event_categories).where(event_categories.c.id == junior))
    mark = await sheet.write(replace(ANNA, category=junior), replace(BERT, category=senior))
    assert mark.counts == RowCounts(created=1, error=1)
    ((_, outcome, message), _) = await results(database, sheet.uuid)
    assert outcome == "ERROR"
    assert message == (
        "Category: refers to a row of event categories that is not there any more; "
        "map the value again"
    )
    assert await people(database) == [("email:bert", "Becker", "Berlin")]


async def test_two_rows_of_one_person_in_a_chunk_become_one(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    mark = await sheet.write(
        Runner("email:anna", "Ahrens", shirt=club.shirts["S"]),
        Runner("email:anna", None, "Aachen"),
        BERT,
    )
    assert mark.counts == RowCounts(created=3)
    assert (await people(database))[0] == ("email:anna", "Ahrens", "Aachen")
    assert len(await table(database, "event_participants", "id")) == 2


async def test_rows_of_other_organisations_are_other_people(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(ANNA)
    other = replace(club, organisation_id=2)
    mark = await (await opened(sheets, other, organisation_id=2)).write(ANNA)
    assert mark.counts == RowCounts(created=1)
    assert await table(database, "persons", "organisation_id person_key") == [
        (1, "email:anna"),
        (2, "email:anna"),
    ]


async def test_a_row_with_an_unknown_value_waits_and_is_loaded_later(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    await sheets.save_values(sheet.uuid, [FoundValue("CATEGORY", "Senior", 1, 2, "Senior (18+)")])
    await sheet.write(
        ANNA,
        parked=[ParkedRow(3, 100), ParkedRow(4, 200)],
        found=[FoundValue("CATEGORY", "new", 1), FoundValue("CATEGORY", "other", 1)],
        cursor=3,
    )
    await sheet.write(
        parked=[ParkedRow(5, 300)],
        found=[FoundValue("CATEGORY", "new", 1)],
        number=1,
        cursor=4,
        lines=(),
        targets=[],
    )
    processed = await sheets.end_round(sheet.uuid, 0)
    assert (processed.counts, processed.parked) == (RowCounts(created=1), 3)
    assert (processed.cells.total, processed.cells.open) == (3, 2)
    assert [(open_.value, open_.rows) for open_ in processed.cells.first_open] == [
        ("new", 2),
        ("other", 1),
    ]
    assert await sheets.end_round(sheet.uuid, 0) == processed
    assert (await sheets.mark(sheet.uuid)).finished
    assert await sheets.parked(sheet.uuid, 3, 10) == [ParkedRow(4, 200), ParkedRow(5, 300)]
    assert await sheets.parked(sheet.uuid, 0, 1) == [ParkedRow(3, 100)]

    mark = await sheet.write(
        BERT,
        round=1,
        line=3,
        parked=[ParkedRow(4, 200)],
        cursor=2,
        offset=4,
        found=[FoundValue("CATEGORY", "other", 1)],
    )
    assert (mark.round, mark.chunk, mark.finished) == (1, 1, False)
    assert await sheets.parked(sheet.uuid, 0, 10) == [ParkedRow(4, 200), ParkedRow(5, 300)]
    late = await sheet.write(replace(ANNA, city="Ulm"))
    assert late == mark
    await sheet.write(
        round=1, number=1, lines=(), targets=[], errors=[(5, [Problem(line=5, reason="no")])]
    )
    processed = await sheets.end_round(sheet.uuid, 1)
    assert (processed.counts, processed.parked) == (RowCounts(created=2, error=1), 1)
    assert processed.cells.first_open[1].rows == 1
    assert [line for line, *_ in await results(database, sheet.uuid)] == [2, 3, 5]
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.parked, row.values_total, row.open_values) == (1, 3, 2)


async def test_a_round_without_rows_ends(sheets: SqlSpreadsheetStore, club: SampleClub) -> None:
    sheet = await opened(sheets, club)
    assert (await sheets.end_round(sheet.uuid, 0)).cells == CellSummary()
    await sheets.end_round(sheet.uuid, 1)
    mark = await sheets.mark(sheet.uuid)
    assert (mark.round, mark.finished) == (1, True)
    await sheets.end_round(sheet.uuid, 0)
    assert await sheets.mark(sheet.uuid) == mark


async def test_a_dry_run_reports_and_writes_nothing(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    await (await opened(sheets, club)).write(ANNA, BERT)
    before = await everything(database)
    sheet = await opened(sheets, club, dry_run=True)
    mark = await sheet.write(
        ANNA,
        replace(BERT, city="Bonn", shirt=club.shirts["S"]),
        Runner("email:cleo", shirt=club.shirts["S"]),
        Runner("email:dora", "half \ud800"),
        Runner("email:emil"),
    )
    assert mark.counts == RowCounts(created=2, updated=1, skipped=1, error=1)
    assert await everything(database) == before
    summary = await views.summary(sheet.uuid)
    assert [
        (each.line, each.table, each.column, each.before, each.after)
        for each in summary.differences
    ] == [(3, "persons", "city", "Berlin", "Bonn")]


async def test_a_dry_run_reports_a_hundred_differences(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    runners = [Runner(f"email:{n:03}", "x", "x") for n in range(80)]
    await (await opened(sheets, club)).write(*runners)
    sheet = await opened(sheets, club, dry_run=True)
    changed = [replace(runner, last_name="y", city="y") for runner in runners]
    await sheet.write(*changed[:40])
    await sheet.write(*changed[40:], number=1, line=42)
    summary = await views.summary(sheet.uuid)
    assert (summary.total, summary.updated) == (80, 80)
    assert [each.line for each in summary.differences] == [
        line for line in range(2, 52) for _ in ("last_name", "city")
    ]


async def test_an_import_that_has_ended_accepts_no_further_rows(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    mark = await sheet.write(ANNA)
    assert await sheet.end("CANCELLED") == RowCounts(created=1)
    assert await sheet.write(BERT, number=1) == mark
    assert len(await people(database)) == 1


async def test_a_table_that_is_no_target_is_a_mistake(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    target = TargetRows("spreadsheet_imports", ("uuid",), [("x",)], [0])
    with pytest.raises(ValueError, match="not a table that spreadsheets can fill"):
        await sheet.write(ANNA, targets=[target], main="spreadsheet_imports")
    assert await sheets.mark(sheet.uuid) == SheetMark()


async def test_ids_are_never_assigned_twice(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(ANNA, BERT)
    ids = {id for (id,) in await table(database, "persons", "id")}
    async with database.transaction() as connection:
        for name in ("event_participants", "persons"):
            await connection.execute(text(f"DELETE FROM {name}"))
    await (await opened(sheets, club)).write(ANNA, BERT)
    assert ids.isdisjoint(id for (id,) in await table(database, "persons", "id"))


async def test_a_later_state_does_not_move_the_mark(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA)
    await sheets.record(record(sheet.order, 1, SpreadsheetState.PROCESSING))
    assert (await sheets.mark(sheet.uuid)).counts == RowCounts(created=1)
