"""Taking an import back: what it wrote goes, what people did since stays."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from activities.spreadsheets.entities import EntityScope
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database, open_database
from adapters.database.models.spreadsheets import (
    event_participants,
    persons,
    race_results,
    spreadsheet_journal,
)
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import (
    NOW,
    Runner,
    everything,
    opened,
    people,
    table,
    undo_order,
)
from workflows.spreadsheets.mappings import UndoState
from workflows.spreadsheets.runs import FailedUndo, UndoCounts

ANNA = Runner("email:anna", "Ahrens", "Aachen", date(1990, 5, 31))
BERT = Runner("email:bert", "Becker", "Berlin")
CLEO = Runner("email:cleo", "Claus", "Celle")


async def change(database: Database, statement: Any) -> None:
    async with database.transaction() as connection:
        await connection.execute(statement)


async def test_created_rows_are_deleted_and_changed_ones_are_restored(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    await (await opened(sheets, club)).write(ANNA, BERT)
    before = await everything(database)
    sheet = await opened(sheets, club)
    await sheet.write(replace(ANNA, city="Ulm", birthdate=date(1991, 1, 1), bib="7"))
    await sheet.write(replace(CLEO, shirt=club.shirts["S"]), BERT, number=1, line=3)
    assert await views.undo(sheet.uuid) is None
    await sheet.end()
    result = await sheet.undo()
    assert result.state is UndoState.UNDONE
    assert result.counts == UndoCounts(deleted=3, restored=2)
    assert result.problems == ()
    assert await everything(database) == before
    view = await views.undo(sheet.uuid)
    assert view is not None
    assert (view.state, view.deleted, view.restored, view.by) == (UndoState.UNDONE, 3, 2, "berta")
    assert view.finished_at is not None
    assert await sheets.end_undo(undo_order(sheet.order)) == result
    assert not await sheets.undo_chunk(undo_order(sheet.order))


async def test_rows_changed_since_are_left_alone_and_reported(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    await (await opened(sheets, club)).write(ANNA, BERT)
    sheet = await opened(sheets, club)
    await sheet.write(replace(ANNA, city="Ulm"), replace(BERT, city="Bonn"), CLEO, Runner("k:dora"))
    await sheet.end()
    await change(database, update(persons).where(persons.c.city == "Ulm").values(city="Trier"))
    await change(
        database, update(persons).where(persons.c.person_key == "k:dora").values(phone="1")
    )
    await change(
        database, update(persons).where(persons.c.person_key == "email:cleo").values(city="Kiel")
    )
    result = await sheet.undo()
    # Dora's phone is not a column of the import: it was filled later and would be lost with her.
    # All of a row is taken back or nothing: those who were changed still take part.
    assert result.state is UndoState.UNDONE_PARTLY
    assert result.counts == UndoCounts(deleted=0, restored=1, left_alone=3)
    assert await people(database) == [
        ("email:anna", "Ahrens", "Trier"),
        ("email:bert", "Becker", "Berlin"),
        ("email:cleo", "Claus", "Kiel"),
        ("k:dora", None, None),
    ]
    ids = dict(await table(database, "persons", "person_key id"))
    assert result.problems == (
        f"row 2: person {ids['email:anna']} was changed since",
        f"row 4: person {ids['email:cleo']} was changed since",
        f"row 5: person {ids['k:dora']} was changed since",
    )
    page = await views.undo_conflicts(sheet.uuid, page=1, size=1)
    assert page.total == 3
    (conflict,) = page.items
    assert (conflict.line, conflict.table, conflict.row_id, conflict.reason) == (
        *(4, "persons", str(ids["email:cleo"])),
        "was changed since",
    )


async def test_some_rows_are_taken_back_and_the_others_later(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(ANNA)
    before = await everything(database)
    sheet = await opened(sheets, club)
    await sheet.write(replace(ANNA, city="Ulm"), BERT)
    await sheet.write(CLEO, Runner("k:dora"), number=1, line=4)
    await sheet.end()
    changed = await everything(database)
    preview = await sheets.preview_undo(sheet.uuid, [2, 5, 99])
    assert (preview.deleted, preview.restored, preview.left_alone) == (2, 1, 0)
    assert await everything(database) == changed

    partly = await sheet.undo(2, 5, 99)
    assert partly.state is UndoState.UNDONE_PARTLY
    assert partly.counts == UndoCounts(deleted=2, restored=1)
    assert await people(database) == [
        ("email:anna", "Ahrens", "Aachen"),
        ("email:bert", "Becker", "Berlin"),
        ("email:cleo", "Claus", "Celle"),
    ]
    later = undo_order(sheet.order, requested_at=NOW + timedelta(days=2))
    some = later.model_copy(update={"lines": (4,)})
    assert await sheets.begin_undo(some) is None
    refused = await sheets.begin_undo(later)
    assert refused is not None and "an undo of other rows" in refused
    # What was asked for first has failed: the others are looked at as well.
    await sheets.fail_undo(
        FailedUndo(uuid=sheet.uuid, reason="gone", by="berta", at=NOW + timedelta(days=3))
    )
    later = undo_order(sheet.order, requested_at=NOW + timedelta(days=4))
    assert await sheets.begin_undo(later) is None
    while await sheets.undo_chunk(later):
        pass
    whole = await sheets.end_undo(later)
    assert (whole.state, whole.counts) == (UndoState.UNDONE, UndoCounts(deleted=6, restored=1))
    assert await everything(database) == before


async def test_rows_that_others_refer_to_stay(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA, BERT)
    await sheet.end()
    ids = dict(await table(database, "persons", "person_key id"))
    await change(
        database,
        insert(race_results).values(race_id=club.race_id, person_id=ids["email:anna"], rank=1),
    )
    result = await sheet.undo()
    assert result.counts == UndoCounts(deleted=2, left_alone=1)
    assert result.problems == (f"row 2: person {ids['email:anna']} is referred to by race results",)
    assert [key for key, *_ in await people(database)] == ["email:anna"]
    assert len(await table(database, "event_participants", "id")) == 1


async def test_an_undo_is_previewed_and_repeated_once_a_later_import_was_undone(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    first = await opened(sheets, club)
    await first.write(ANNA, BERT)
    await first.end()
    second = await opened(sheets, club)
    await second.write(replace(ANNA, city="Ulm"))
    await second.end()
    before = await everything(database)
    preview = await sheets.preview_undo(first.uuid)
    assert (preview.deleted, preview.restored, preview.left_alone) == (2, 0, 1)
    assert [(each.line, each.reason) for each in preview.conflicts] == [(2, "was changed since")]
    assert await everything(database) == before

    partly = await first.undo()
    assert (partly.state, partly.counts) == (
        UndoState.UNDONE_PARTLY,
        UndoCounts(deleted=2, left_alone=1),
    )
    assert (await second.undo()).state is UndoState.UNDONE
    again = undo_order(first.order, requested_at=NOW + timedelta(days=2), by="carl")
    assert await sheets.begin_undo(again) is None
    assert await sheets.begin_undo(again.model_copy(update={"retried_by": ("dora",)})) is None
    while await sheets.undo_chunk(undo_order(first.order)):
        pass
    result = await sheets.end_undo(undo_order(first.order))
    assert (result.state, result.counts) == (UndoState.UNDONE, UndoCounts(deleted=4))
    assert (await views.undo_conflicts(first.uuid)).total == 0
    assert await people(database) == []
    trail = (await views.decisions(first.uuid)).items
    assert [(line.kind, line.by) for line in trail] == [
        ("retry", "dora"),
        ("undo", "carl"),
        ("undo", "berta"),
    ]
    refused = await sheets.begin_undo(undo_order(first.order, requested_at=NOW))
    assert refused is not None and "already" in refused


async def test_rows_that_are_gone_do_not_fail_an_undo(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    await (await opened(sheets, club)).write(ANNA)
    sheet = await opened(sheets, club)
    await sheet.write(replace(ANNA, city="Ulm"), BERT)
    await sheet.end()
    await change(database, delete(event_participants))
    await change(database, delete(persons))
    result = await sheet.undo()
    assert result.state is UndoState.UNDONE_PARTLY
    assert result.counts == UndoCounts(left_alone=1)
    assert "was deleted since" in result.problems[0]


async def test_imports_that_build_on_each_other_are_undone_newest_first(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    first = await opened(sheets, club)
    await first.write(ANNA)
    await first.end()
    kept = await everything(database)
    second = await opened(sheets, club)
    await second.write(replace(ANNA, city="Ulm"))
    await second.end()
    assert (await first.undo()).counts == UndoCounts(left_alone=1)
    assert (await second.undo()).counts == UndoCounts(restored=1)
    assert await everything(database) == kept


async def test_rounds_are_undone_newest_first(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA)
    await sheet.write(BERT, number=1, line=3)
    await sheets.end_round(sheet.uuid, 0)
    await sheet.write(replace(ANNA, city="Ulm"), round=1, line=4)
    await sheets.end_round(sheet.uuid, 1)
    await sheet.end()
    await sheets.begin_undo(undo_order(sheet.order))
    assert await sheets.undo_chunk(undo_order(sheet.order))
    assert await people(database) == [
        ("email:anna", "Ahrens", "Aachen"),
        ("email:bert", "Becker", "Berlin"),
    ]
    assert await sheets.undo_chunk(undo_order(sheet.order))
    assert [key for key, *_ in await people(database)] == ["email:anna"]
    assert await sheets.begin_undo(undo_order(sheet.order)) is None
    assert await sheets.undo_chunk(undo_order(sheet.order))
    assert not await sheets.undo_chunk(undo_order(sheet.order))
    assert await people(database) == []


async def test_an_undo_that_ended_too_soon_has_failed_and_resumes(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA)
    await sheet.end()
    assert (await sheets.end_undo(undo_order(sheet.order))).state is UndoState.FAILED
    await sheets.begin_undo(undo_order(sheet.order))
    assert (await sheets.end_undo(undo_order(sheet.order))).state is UndoState.FAILED
    assert not await sheets.undo_chunk(undo_order(sheet.order))
    assert (await sheet.undo()).state is UndoState.UNDONE
    assert await people(database) == []


async def test_attempts_at_one_undo_take_each_chunk_back_once(
    database_url: str, sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    for number in range(6):
        await sheet.write(Runner(f"k:{number}", "x"), number=number, line=2 + number)
    await sheet.end()
    await sheets.begin_undo(undo_order(sheet.order))
    async with open_database(database_url) as other:
        stores = (sheets, SqlSpreadsheetStore(other)) * 4
        taken = await asyncio.gather(
            *(store.undo_chunk(undo_order(sheet.order)) for store in stores)
        )
    assert sum(taken) == 6
    assert (await sheets.end_undo(undo_order(sheet.order))).counts == UndoCounts(deleted=12)


async def test_what_cannot_be_undone_is_refused_with_a_reason(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(ANNA)
    order = undo_order(sheet.order)
    assert await sheets.begin_undo(order) == (
        "this import is still UPLOADED: cancel it, or wait until it has ended, then undo it"
    )
    await sheet.end("CANCELLED")
    assert await sheets.begin_undo(undo_order(sheet.order, organisation_id=2)) == (
        "there is no such import"
    )
    late = undo_order(sheet.order, requested_at=NOW + timedelta(days=31))
    assert await sheets.begin_undo(late) == (
        "this import ended on 2026-03-04; an import can be undone for 30 days"
    )
    await sheet.undo()
    again = undo_order(sheet.order, requested_at=NOW + timedelta(days=2))
    assert "was undone on" in str(await sheets.begin_undo(again))
    # The request that was carried out, by an attempt that did not learn of it.
    assert await sheets.begin_undo(order) is None
    dry = await opened(sheets, club, dry_run=True)
    await dry.end()
    assert "dry run" in str(await sheets.begin_undo(undo_order(dry.order)))
    assert await sheets.begin_undo(
        undo_order(sheet.order, uuid="00000000-0000-4000-8000-000000000000")
    ) == ("there is no such import")
    old = await opened(sheets, club)
    await old.write(BERT)
    await old.end()
    assert await sheets.purge_journals(NOW + timedelta(days=1), 100) == 3 - 1
    assert await table(database, spreadsheet_journal.name, "import_id") == []
    assert f"removed on {datetime.now(UTC):%Y-%m-%d}" in str(
        await sheets.begin_undo(undo_order(old.order))
    )


async def test_what_was_created_to_choose_from_stays(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    scope = EntityScope("event_categories", 1, club.event_id)
    made = await sheets.create_entity(scope, "Elite")
    sheet = await opened(sheets, club)
    await sheet.write(replace(ANNA, category=made.id))
    await sheet.end()
    await sheet.undo()
    assert made in await sheets.entities(scope)


@pytest.mark.parametrize("seed", range(6))
async def test_an_import_and_its_undo_leave_no_trace(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub, seed: int
) -> None:
    chance = random.Random(seed)

    def runner(key: int) -> Runner:
        def perhaps(value: Any) -> Any:
            return value if chance.random() < 0.6 else None

        return Runner(
            f"k:{key}",
            perhaps(f"name {chance.randrange(3)}"),
            perhaps(f"city {chance.randrange(3)}"),
            perhaps(date(2000, 1, chance.randrange(1, 4))),
            perhaps(chance.choice(list(club.categories.values()))),
            perhaps(str(chance.randrange(3))),
            perhaps(chance.choice(list(club.shirts.values()))),
        )

    states = [await everything(database)]
    imports = []
    for _ in range(3):
        sheet = await opened(sheets, club)
        for number in range(chance.randrange(1, 4)):
            keys = chance.choices(range(30), k=chance.randrange(1, 12))
            await sheet.write(*map(runner, keys), number=number, line=2 + 100 * number)
        await sheet.end()
        imports.append(sheet)
        states.append(await everything(database))
    for sheet in reversed(imports):
        assert await everything(database) == states.pop()
        assert (await sheet.undo()).counts.left_alone == 0
    assert await everything(database) == states.pop()
