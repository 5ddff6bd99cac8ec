"""What the rows of an import can belong to."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, select
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
    return [
        AvailableContext(table, row.id, row.name, row.organisation_id)
        for table, query in _queries(organisations).items()
        for row in await connection.execute(query.order_by(_IDS[table].desc()).limit(MOST))
    ]


async def read_names(
    connection: AsyncConnection,
    organisations: Collection[int],
    wanted: Collection[tuple[str, int]],
) -> Mapping[tuple[str, int], str]:
    """Names of some events, periods and races, each wanted by table and id."""
    ids: dict[str, list[int]] = defaultdict(list)
    for table, id in wanted:
        ids[table].append(id)
    return {
        (table, row.id): row.name
        for table, query in _queries(organisations).items()
        if table in ids
        for row in await connection.execute(query.where(_IDS[table].in_(ids[table])))
    }


_IDS: Final[Mapping[str, ColumnElement[int]]] = {
    table.name: table.c.id for table in (events, membership_periods, races)
}


def _queries(organisations: Collection[int]) -> Mapping[str, Select[*tuple[Any, ...]]]:
    """What imports of some organisations can belong to, by table."""
    mine = sorted(organisations)
    periods = membership_periods.c
    return {
        events.name: select(events.c.id, events.c.name, events.c.organisation_id).where(
            events.c.organisation_id.in_(mine)
        ),
        membership_periods.name: select(periods.id, periods.name, periods.organisation_id).where(
            periods.organisation_id.in_(mine)
        ),
        races.name: select(
            races.c.id,
            (events.c.name + ": " + races.c.name).label("name"),
            events.c.organisation_id,
        )
        .join(events, events.c.id == races.c.event_id)
        .where(events.c.organisation_id.in_(mine)),
    }
