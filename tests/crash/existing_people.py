"""What a club has before its spreadsheets come: events, and people who will be met again."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.spreadsheets import (
    custom_list_values,
    event_categories,
    event_participants,
    events,
    persons,
)
from tests.crash.spreadsheet_files import KNOWN, ExistingPerson, Sheet
from tests.support.installation import Installation


async def add_existing_people(installation: Installation, sheets: Sequence[Sheet]) -> None:
    """Make the events of some spreadsheets, and who takes part in them already."""
    club = installation.club
    async with installation.resources.database.transaction() as connection:
        for sheet in sheets:
            event = {"organisation_id": club.organisation_id, "name": f"Event of {sheet.name}"}
            await connection.execute(insert(events).values(id=sheet.event_id, **event))
            categories = [
                {
                    "id": sheet.category_id(name),
                    "event_id": sheet.event_id,
                    "name": name,
                    "spellings": "[]",
                }
                for name in KNOWN
            ]
            await connection.execute(insert(event_categories), categories)
            await _people(connection, installation, sheet)


async def _people(connection: AsyncConnection, installation: Installation, sheet: Sheet) -> None:
    club, earlier = installation.club, [*sheet.earlier()]
    people = [{"organisation_id": club.organisation_id, **each.person} for each in earlier]
    await connection.execute(insert(persons), people)
    ids = await _pairs(connection, select(persons.c.person_key, persons.c.id))
    taking_part = [each for each in earlier if each.category is not None]
    await connection.execute(
        insert(event_participants), [_participant(sheet, each, ids) for each in taking_part]
    )
    query = select(event_participants.c.person_id, event_participants.c.id)
    numbers = await _pairs(connection, query)
    shirts = [
        {
            "participant_id": numbers[ids[each.person["person_key"]]],
            "custom_list_id": club.shirts_list_id,
            "custom_list_item_id": club.shirts[each.shirt],
        }
        for each in taking_part
        if each.shirt is not None
    ]
    await connection.execute(insert(custom_list_values), shirts)


async def _pairs(connection: AsyncConnection, query: Select[Any]) -> Mapping[Any, Any]:
    return {key: value for key, value in await connection.execute(query)}


def _participant(sheet: Sheet, earlier: ExistingPerson, ids: Mapping[str, int]) -> dict[str, Any]:
    assert earlier.category is not None
    return {
        "event_id": sheet.event_id,
        "person_id": ids[earlier.person["person_key"]],
        "category_id": sheet.category_id(earlier.category),
        "bib": earlier.bib,
    }
