"""What the rows of an import can belong to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.people import events, membership_periods, races

MOST: Final = 200
"""Rows of each table that are named, the newest."""


@dataclass(frozen=True, slots=True)
class AvailableContext:
    """An event, a membership period or a race."""

    table: str
    """`events`, `membership_periods` or `races`."""
    id: int
    name: str
    """As people see it."""
    organisation_id: int


async def read_contexts(
    connection: AsyncConnection, organisations: Collection[int]
) -> Sequence[AvailableContext]:
    """What imports of these organisations can belong to, the newest first."""
    mine = sorted(organisations)
    queries: dict[str, Select[*tuple[Any, ...]]] = {
        events.name: select(events.c.id, events.c.name, events.c.organisation_id)
        .where(events.c.organisation_id.in_(mine))
        .order_by(events.c.id.desc()),
        membership_periods.name: select(
            membership_periods.c.id, membership_periods.c.name, membership_periods.c.organisation_id
        )
        .where(membership_periods.c.organisation_id.in_(mine))
        .order_by(membership_periods.c.id.desc()),
        races.name: select(
            races.c.id,
            (events.c.name + ": " + races.c.name).label("name"),
            events.c.organisation_id,
        )
        .join(events, events.c.id == races.c.event_id)
        .where(events.c.organisation_id.in_(mine))
        .order_by(races.c.id.desc()),
    }
    return [
        AvailableContext(table, row.id, row.name, row.organisation_id)
        for table, query in queries.items()
        for row in await connection.execute(query.limit(MOST))
    ]
