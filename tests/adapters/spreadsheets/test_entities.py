"""What values of an import may stand for, and the contexts that imports belong to."""

import pytest

from activities.spreadsheets.entities import EntityScope
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.engine import Database
from stack.sample_club import SampleClub, sample_club
from tests.support.spreadsheets.store import table


async def test_entities_are_those_of_the_import(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    countries = await sheets.entities(EntityScope("countries", 1))
    germany = next(country for country in countries if country.id == 276)
    assert germany.name == "Germany"
    assert {"DE", "DEU", "Federal Republic of Germany"} <= set(germany.spellings)
    assert len(countries) > 240
    bolivia = next(country for country in countries if country.id == 68)
    assert bolivia.name == "Bolivia"
    categories = await sheets.entities(EntityScope("event_categories", 1, club.event_id))
    assert {each.name: each.id for each in categories} == club.categories
    assert "U18" in categories[0].spellings
    of_race = EntityScope("race_categories", 1, club.race_id)
    assert await sheets.entities(of_race) == categories
    types = await sheets.entities(EntityScope("membership_types", 1))
    assert {each.name: each.id for each in types} == club.membership_types
    shirts = EntityScope(f"custom_list/{club.shirts_list_id}", 1)
    assert {each.name: each.id for each in await sheets.entities(shirts)} == club.shirts
    for kind in ("event_categories", "race_categories", "membership_types"):
        assert await sheets.entities(EntityScope(kind, 2, club.event_id)) == []
    assert await sheets.entities(EntityScope(shirts.kind, 2)) == []
    with pytest.raises(ValueError, match="cannot refer to rows of kind 'persons'"):
        await sheets.entities(EntityScope("persons", 1))


async def test_a_candidate_is_made_once(
    sheets: SqlSpreadsheetStore, database: Database, club: SampleClub
) -> None:
    scope = EntityScope("event_categories", 1, club.event_id)
    made = await sheets.create_entity(scope, "  Über\u00a030 ")
    assert made.name == "Über 30"
    assert await sheets.create_entity(scope, "ÜBER 30") == made
    assert (await sheets.create_entity(scope, "junior (u18)")).id == club.categories["Junior (U18)"]
    shirt = await sheets.create_entity(EntityScope(f"custom_list/{club.shirts_list_id}", 1), "XXL")
    assert (club.shirts_list_id, "XXL") in await table(
        database, "custom_list_items", "custom_list_id name"
    )
    assert shirt.id not in club.shirts.values()
    with pytest.raises(ValueError, match="cannot be added"):
        await sheets.create_entity(EntityScope("countries", 1), "Atlantis")
    with pytest.raises(ValueError, match="not there"):
        await sheets.create_entity(EntityScope("event_categories", 2, club.event_id), "x")
    with pytest.raises(ValueError, match="needs a name"):
        await sheets.create_entity(scope, " ")


async def test_contexts_and_lists_belong_to_an_organisation(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    contexts = {
        "events": club.event_id,
        "membership_periods": club.membership_period_id,
        "races": club.race_id,
    }
    for name, id in contexts.items():
        assert await sheets.context_exists(name, id, 1)
        assert not await sheets.context_exists(name, id, 2)
        assert not await sheets.context_exists(name, id + 1, 1)
    with pytest.raises(ValueError, match="cannot belong to rows of 'persons'"):
        await sheets.context_exists("persons", 1, 1)
    (shirts,) = await sheets.custom_lists(1)
    assert (shirts.id, shirts.key, shirts.name, shirts.open) == (
        *(club.shirts_list_id, "T_SHIRT"),
        *("T-shirt", True),
    )
    assert await sheets.custom_lists(2) == []


async def test_the_sample_club_is_made_once(database: Database, club: SampleClub) -> None:
    assert await sample_club(database) == club
    assert (await sample_club(database, 2)).event_id != club.event_id
