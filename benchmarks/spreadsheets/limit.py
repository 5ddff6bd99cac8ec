"""`python -m benchmarks.spreadsheets.limit FILE`: registrations into their tables, unchecked.

The fastest reader there is and a raw bulk write of the same rows, ids given out beforehand, in one
transaction: persons, what they take part in, and what they chose from the custom list.
"""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import asyncpg
from python_calamine import CalamineWorkbook

from adapters.database.engine import open_database
from benchmarks.spreadsheets import workload
from benchmarks.spreadsheets.workload import ORGANISATION, Club
from benchmarks.stopwatch import Cost, Stopwatch

_COLUMNS: Final = {
    "persons": (
        *("id", "organisation_id", "person_key", "first_name", "last_name", "email"),
        *("birthdate", "gender", "city", "country_id"),
    ),
    "event_participants": (
        *("id", "event_id", "person_id", "category_id", "bib", "team", "registered_on"),
    ),
    "custom_list_values": ("id", "participant_id", "custom_list_id", "custom_list_item_id"),
}
Tables = dict[str, Sequence[tuple[Any, ...]]]


async def load(path: Path) -> Cost:
    """Read the file and write its rows."""
    url = os.environ["DATABASE_URL"]
    async with open_database(url) as database:
        club = await workload.make_club(database)
    connection = cast(Any, await asyncpg.connect(url))
    try:
        watch = Stopwatch()
        tables = _tables(path, club)
        async with connection.transaction():
            for name, rows in tables.items():
                await connection.copy_records_to_table(name, records=rows, columns=_COLUMNS[name])
        return watch.read()
    finally:
        await connection.close()


def _tables(path: Path, club: Club) -> Tables:
    """Rows of each table."""
    persons: list[tuple[Any, ...]] = []
    participants: list[tuple[Any, ...]] = []
    chosen: list[tuple[Any, ...]] = []
    sheet = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0)
    rows: Iterator[list[Any]] = islice(cast(Any, sheet).iter_rows(), 1, None)
    for id, cells in enumerate(rows, start=1):
        first, last, mail, born, gender, city, country, category, shirt, bib, team, since = cells
        persons.append(
            (
                *(id, ORGANISATION, f"email:{mail}", first, last, mail),
                *(born, gender, city, club.countries[country]),
            )
        )
        category_id = club.categories[category]
        participants.append((id, club.event_id, id, category_id, bib, team, since))
        chosen.append((id, id, club.list_id, club.shirts[shirt]))
    return dict(zip(_COLUMNS, (persons, participants, chosen), strict=True))


if __name__ == "__main__":
    cost = asyncio.run(load(Path(sys.argv[1])))
    print(json.dumps(dataclasses.asdict(cost)))
