"""A club whose registrations are imported, and workbooks that hold them."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final, cast

import xlsxwriter
from sqlalchemy import select

from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    custom_list_items,
    custom_lists,
    event_categories,
    events,
)
from adapters.database.schema import country_rows

ORGANISATION: Final = 1
COUNTRIES: Final = 200
CATEGORIES: Final = 120
SHIRTS: Final = 180
"""With countries and categories 500 distinct values in three columns."""
WARM_ROWS: Final = 500
SMALL_ROWS: Final = 20

HEADER: Final = (
    *("First name", "Last name", "Email", "Date of birth", "Gender", "City"),
    *("Country", "Category", "T-shirt", "Bib", "Team", "Registered on"),
)
_GENDERS: Final = ("female", "male", "diverse")
_EPOCH: Final = date(1950, 1, 1)
_SEASON: Final = date(2026, 1, 1)


@dataclass(frozen=True)
class Club:
    """What rows refer to: names, and the ids behind them."""

    event_id: int
    list_id: int
    countries: dict[str, int]
    categories: dict[str, int]
    shirts: dict[str, int]


async def make_club(database: Database) -> Club:
    """Make the club, or find it as it was made before."""
    async with database.transaction() as connection:
        found = (await connection.execute(select(events.c.id))).scalar_one_or_none()
        if found is None:
            await connection.execute(
                events.insert(), {"organisation_id": ORGANISATION, "name": "City Marathon"}
            )
            found = (await connection.execute(select(events.c.id))).scalar_one()
            await connection.execute(
                event_categories.insert(),
                [
                    {"event_id": found, "name": f"Age group {number:03}", "spellings": "[]"}
                    for number in range(CATEGORIES)
                ],
            )
            shirts = {"organisation_id": ORGANISATION, "key": "T_SHIRT", "name": "T-shirt"}
            await connection.execute(custom_lists.insert(), {**shirts, "open": False})
            list_id = (await connection.execute(select(custom_lists.c.id))).scalar_one()
            await connection.execute(
                custom_list_items.insert(),
                [
                    {"custom_list_id": list_id, "name": f"Shirt {number:03}"}
                    for number in range(SHIRTS)
                ],
            )
        list_id = (await connection.execute(select(custom_lists.c.id))).scalar_one()
        categories = await connection.execute(select(event_categories))
        items = await connection.execute(select(custom_list_items))
        return Club(
            event_id=found,
            list_id=list_id,
            countries=_countries(),
            categories={row.name: row.id for row in categories},
            shirts={row.name: row.id for row in items},
        )


def _countries() -> dict[str, int]:
    """Unambiguous names, to ISO 3166 numeric codes."""
    known = sorted((row["name"], row["id"]) for row in country_rows())
    return dict(known[:COUNTRIES])


def registrations(count: int, tag: str = "runner") -> Iterator[tuple[str | date, ...]]:
    """Rows of people who are all different; `tag` keeps the people of two files apart."""
    countries = list(_countries())
    for row in range(count):
        yield (
            f"First{row % 5_003}",
            f"Last{row}",
            f"{tag}.{row}@example.org",
            _EPOCH + timedelta(days=row % 20_000),
            _GENDERS[row % 3],
            f"Town {row % 997}",
            countries[row % COUNTRIES],
            f"Age group {row % CATEGORIES:03}",
            f"Shirt {row % SHIRTS:03}",
            f"B{row:06}",
            f"Team {row % 499}",
            _SEASON + timedelta(days=row % 100),
        )


def write_text(path: Path, rows: int, unknown: str | None = None) -> None:
    """Registrations as CSV; with a last column of this header that means nothing."""
    extra = () if unknown is None else (unknown,)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*HEADER, *extra))
        writer.writerows((*row, *extra) for row in registrations(rows))


def write_workbook(path: Path, rows: int, tag: str = "runner") -> None:
    """Registrations as a workbook with shared strings and date cells, as Excel writes them."""
    workbook = xlsxwriter.Workbook(path)
    sheet = workbook.add_worksheet("Registrations")
    day = workbook.add_format({"num_format": "yyyy-mm-dd"})
    sheet.write_row(0, 0, HEADER)
    for number, row in enumerate(registrations(rows, tag), start=1):
        for place, cell in enumerate(row):
            if isinstance(cell, date):
                sheet.write_datetime(number, place, cast(Any, cell), day)
            else:
                sheet.write_string(number, place, cell)
    workbook.close()
