"""Who has a bib of an event, in both databases."""

from sqlalchemy import text

from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import Runner, opened
from workflows.spreadsheets.people import PeopleQuery


async def test_people_are_found_by_their_bibs_in_one_event(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    runners = (("a", "7"), ("b", "7"), ("c", "8"), ("d", None))
    await sheet.write(*(Runner(f"k:{key}", last_name=key, bib=bib) for key, bib in runners))
    place = ("event_participants", club.event_id)
    found = await sheets.people(club.organisation_id, PeopleQuery(bibs=["7", "9"], bibs_of=place))
    assert [(each.key, each.bibs) for each in found] == [("k:a", ("7",)), ("k:b", ("7",))]
    # One who is looked up by another key as well is found once, with the bib.
    query = PeopleQuery(keys=["k:c", "k:d"], bibs=["8"], bibs_of=place)
    found = await sheets.people(club.organisation_id, query)
    assert [(each.key, each.bibs) for each in found] == [("k:c", ("8",)), ("k:d", ())]
    elsewhere = PeopleQuery(bibs=["7"], bibs_of=("event_participants", club.event_id + 1))
    assert await sheets.people(club.organisation_id, elsewhere) == []
    assert (
        await sheets.people(club.organisation_id + 1, PeopleQuery(bibs=["7"], bibs_of=place)) == []
    )


async def test_bibs_have_an_index(database: Database, club: SampleClub) -> None:
    query = "SELECT id FROM event_participants WHERE event_id = 1 AND bib = '7'"
    async with database.transaction() as connection:
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        plan = (await connection.execute(text(f"EXPLAIN {query}"))).all()
    assert "ix_event_participants_event_id_bib" in str(plan)
