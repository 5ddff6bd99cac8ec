"""What imports can belong to."""

from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from stack.sample_club import SampleClub, sample_club


async def test_an_organisation_sees_its_own_alone(
    database: Database, views: SqlSpreadsheetViews, club: SampleClub
) -> None:
    await sample_club(database, club.organisation_id + 1)
    found = await views.contexts([club.organisation_id])
    assert {(it.table, it.id, it.name) for it in found} == {
        ("events", club.event_id, "City Marathon"),
        ("membership_periods", club.membership_period_id, "2026"),
        ("races", club.race_id, "City Marathon: Marathon"),
        ("custom_lists", club.shirts_list_id, "T-shirt"),
    }


async def test_an_unknown_person_has_nothing(views: SqlSpreadsheetViews, club: SampleClub) -> None:
    assert await views.contexts([]) == []
