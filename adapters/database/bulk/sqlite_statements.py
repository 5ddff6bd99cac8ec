"""Statements of bulk writes on SQLite, made once for each table and set of columns."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from sqlalchemy import Table

from adapters.database.models.every import DOMAIN, key_of

STAMPS: Final = ("source_line", "source_task", "created_at", "updated_at", "version")
"""The bookkeeping of a row, behind its values."""


def quoted(columns: Sequence[str], of: str = "") -> str:
    """Names for a statement, each with the prefix `of`."""
    return ", ".join(f'{of}"{column}"' for column in columns)


@lru_cache(maxsize=512)
def finding(
    table: Table, key: tuple[str, ...], columns: tuple[str, ...], same: tuple[bool, ...]
) -> str:
    """Find rows by keys that are sent as one JSON array; `same` marks parts that are sent once.

    CROSS JOIN keeps the order of the tables: keys first, then the index.
    """
    numbers = iter(range(2, 2 + len(same)))
    conditions: list[str] = []
    for place, (column, one) in enumerate(zip(key, same, strict=True)):
        if one:
            value = f"?{next(numbers)}"
        elif any(same):
            value = "sent.value"
        else:
            value = f"json_extract(sent.value, '$[{place}]')"
        conditions.append(f't."{column}" = {value}')
    return (
        f"SELECT sent.key, {quoted(('id', *columns), 't.')} "  # noqa: S608
        f'FROM json_each(?1) AS sent CROSS JOIN "{table.name}" AS t '
        f"WHERE {' AND '.join(conditions)}"
    )


@lru_cache(maxsize=512)
def insert_sql(name: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Insert so many rows, each followed by its `STAMPS`, whose key is unknown."""
    return f"{fill_sql(name, (*columns, *STAMPS), rows)} ON CONFLICT DO NOTHING"


@lru_cache(maxsize=512)
def fill_sql(name: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """Insert so many rows."""
    marks = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * rows)
    return f'INSERT INTO "{name}" ({quoted(columns)}) VALUES {marks}'  # noqa: S608 - names of our models


@lru_cache(maxsize=512)
def packed_sql(name: str, columns: tuple[str, ...], shared: int, rows: int) -> str:
    """The same for rows that share their first columns and all stamps but the line.

    Its parameters are those of each row, its line the last of them, then those that all share.
    """
    own = len(columns) - shared + 1
    all_share = ", ".join(f"?{rows * own + n}" for n in range(1, shared + len(STAMPS)))
    marks = ", ".join(
        f"({', '.join(f'?{row * own + n}' for n in range(1, own + 1))}, {all_share})"
        for row in range(rows)
    )
    names = quoted((*columns[shared:], STAMPS[0], *columns[:shared], *STAMPS[1:]))
    return f'INSERT INTO "{name}" ({names}) VALUES {marks} ON CONFLICT DO NOTHING'  # noqa: S608


@lru_cache(maxsize=512)
def update_sql(name: str, columns: tuple[str, ...]) -> str | None:
    """Update rows that differ; None: there is nothing but the key.

    Numbered parameters, so that it takes the very rows of the INSERT.
    """
    key = key_of(DOMAIN[name])
    number = {column: f"?{place}" for place, column in enumerate((*columns, *STAMPS), start=1)}
    values = [column for column in columns if column not in key]
    if not values:
        return None
    stamps = ("source_line", "source_task", "updated_at")
    changes = ", ".join(f'"{column}" = {number[column]}' for column in (*values, *stamps))
    differs = " OR ".join(f'"{column}" IS NOT {number[column]}' for column in values)
    found = " AND ".join(f'"{column}" = {number[column]}' for column in key)
    return (
        f'UPDATE "{name}" SET {changes}, version = version + {number["version"]} '  # noqa: S608
        f"WHERE {found} AND ({differs})"
    )
