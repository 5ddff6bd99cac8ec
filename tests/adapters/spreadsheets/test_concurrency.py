"""Imports, attempts and people that write the same rows at the same time."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import insert, text

from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database, open_database
from adapters.database.models.spreadsheets import persons
from adapters.ports.errors import Unavailable
from stack.sample_club import SampleClub, sample_club
from tests.support.spreadsheets.store import (
    Runner,
    StoredSpreadsheet,
    opened,
    people,
    results,
)
from workflows.spreadsheets.fields import SheetMark
from workflows.spreadsheets.runs import RowCounts

ANNA = Runner("email:anna", "Ahrens", "Aachen")


async def test_imports_of_one_organisation_take_turns(
    database_url: str, database: Database, club: SampleClub
) -> None:
    async with open_database(database_url) as other:
        stores = [SqlSpreadsheetStore(database), SqlSpreadsheetStore(other)]
        imports = [await opened(stores[n % 2], club) for n in range(6)]
        runners = [Runner(f"email:{n:03}", "x") for n in range(300)]

        async def bring_in(sheet: StoredSpreadsheet, offset: int) -> RowCounts:
            turned = runners[offset:] + runners[:offset]
            for number in range(3):
                mine = turned[number * 100 : number * 100 + 100]
                mark = await sheet.write(*mine, number=number, line=2 + number * 100)
            return mark.counts

        counts = await asyncio.gather(*(bring_in(sheet, 50 * n) for n, sheet in enumerate(imports)))
    assert sum(each.created for each in counts) == 300
    assert sum(each.done for each in counts) == 1800
    assert len(await people(database)) == 300


async def test_attempts_at_one_chunk_write_it_once(
    database_url: str, database: Database, club: SampleClub, sheets: SqlSpreadsheetStore
) -> None:
    sheet = await opened(sheets, club)
    runners = [Runner(f"email:{n:03}", "x") for n in range(50)]
    async with open_database(database_url) as other:
        twin = replace(sheet, store=SqlSpreadsheetStore(other))
        marks = await asyncio.gather(*(each.write(*runners) for each in (sheet, twin, sheet, twin)))
    assert {mark.counts for mark in marks} == {RowCounts(created=50)}
    assert len(await results(database, sheet.uuid)) == 50


async def test_a_person_added_concurrently_is_found_at_the_next_attempt(
    database_url: str,
) -> None:
    async with (
        open_database(database_url) as database,
        open_database(database_url) as other,
    ):
        sheet = await opened(SqlSpreadsheetStore(database), await sample_club(database))
        async with other.transaction() as connection:
            await connection.execute(
                insert(persons).values(organisation_id=1, person_key="email:anna", city="Ulm")
            )
            writing = asyncio.create_task(sheet.write(ANNA))
            async with other.reading() as watching:
                waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
                while not (await watching.execute(waits)).scalar_one():
                    await asyncio.sleep(0.01)
        with pytest.raises(Unavailable, match="another transaction is writing to persons"):
            await writing
        assert await sheet.store.mark(sheet.uuid) == SheetMark()
        assert (await sheet.write(ANNA)).counts == RowCounts(created=1)
        assert await people(database) == [("email:anna", "Ahrens", "Aachen")]
