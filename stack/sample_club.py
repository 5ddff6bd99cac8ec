"""A club with an event, a race and members, for demonstrations and tests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.import_rows import acquire_organisation_lock
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    custom_list_items,
    custom_lists,
    event_categories,
    events,
    membership_periods,
    membership_types,
    races,
)

_CATEGORIES: Final = {
    "Junior (U18)": ("U18", "Jugend", "Youth"),
    "Senior (18+)": ("Adult", "Erwachsene", "Hauptklasse"),
    "Masters (40+)": ("Veterans", "Altersklasse", "M40"),
}
_TYPES: Final = {
    "Adult": ("Erwachsene", "Full"),
    "Youth": ("Jugend", "Junior"),
    "Family": ("Familie",),
}
_SHIRTS: Final = ("S", "M", "L", "XL")


@dataclass(frozen=True, slots=True)
class SampleClub:
    """Ids of what a club has.

    Attributes:
        organisation_id: The club.
        event_id: "City Marathon".
        race_id: "Marathon", of the event.
        categories: Name to id, of the event.
        membership_period_id: "2026".
        membership_types: Name to id.
        shirts_list_id: The open custom list T_SHIRT.
        shirts: Name to id, of the list.
    """

    organisation_id: int
    event_id: int
    race_id: int
    categories: Mapping[str, int]
    membership_period_id: int
    membership_types: Mapping[str, int]
    shirts_list_id: int
    shirts: Mapping[str, int]


async def sample_club(database: Database, organisation_id: int = 1) -> SampleClub:
    """Make the club, or find it as it was made before.

    Raises:
        Unavailable: The database is unavailable or busy.
    """
    club = {"organisation_id": organisation_id}
    async with database.transaction() as connection:
        await acquire_organisation_lock(connection, organisation_id)
        event = await _row(
            connection, events, club | {"name": "City Marathon"}, starts_on=date(2026, 4, 26)
        )
        race = await _row(connection, races, {"event_id": event, "name": "Marathon"})
        period = await _row(
            connection,
            membership_periods,
            club | {"name": "2026"},
            starts_on=date(2026, 1, 1),
            ends_on=date(2026, 12, 31),
        )
        shirts = await _row(
            connection, custom_lists, club | {"key": "T_SHIRT"}, name="T-shirt", open=True
        )
        return SampleClub(
            organisation_id=organisation_id,
            event_id=event,
            race_id=race,
            categories={
                name: await _row(
                    connection,
                    event_categories,
                    {"event_id": event, "name": name},
                    spellings=json.dumps(spellings),
                )
                for name, spellings in _CATEGORIES.items()
            },
            membership_period_id=period,
            membership_types={
                name: await _row(
                    connection,
                    membership_types,
                    club | {"name": name},
                    spellings=json.dumps(spellings),
                )
                for name, spellings in _TYPES.items()
            },
            shirts_list_id=shirts,
            shirts={
                name: await _row(
                    connection, custom_list_items, {"custom_list_id": shirts, "name": name}
                )
                for name in _SHIRTS
            },
        )


async def _row(
    connection: AsyncConnection, table: Table, key: Mapping[str, Any], **more: Any
) -> int:
    """Id of the row with these values, made when there is none."""
    same = (table.c[name] == value for name, value in key.items())
    found = await connection.execute(select(table.c.id).where(*same).order_by(table.c.id).limit(1))
    id = found.scalar_one_or_none()
    if id is None:
        insert = table.insert().values({**key, **more}).returning(table.c.id)
        id = (await connection.execute(insert)).scalar_one()
    return id
