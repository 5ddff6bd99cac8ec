"""The tables that rows of spreadsheets go to, and how they refer to each other."""

from functools import lru_cache

from sqlalchemy import Table

from adapters.database.models.every import metadata
from adapters.database.models.people import TARGETS


@lru_cache
def target_table(name: str) -> Table:
    """A table that rows of spreadsheets go to.

    Raises:
        ValueError: There is none of that name: a mistake of an import type.
    """
    if name not in TARGETS:
        raise ValueError(f"{name} is not a table that spreadsheets can fill")
    return metadata.tables[name]


@lru_cache
def parents_of(name: str) -> dict[str, Table]:
    """Columns of a target table that refer to other tables."""
    return {key.parent.name: key.column.table for key in target_table(name).foreign_keys}


@lru_cache
def children_of(name: str) -> tuple[tuple[Table, str], ...]:
    """Tables and their columns that refer to a target table."""
    table = target_table(name)
    return tuple(
        (key.parent.table, key.parent.name)
        for other in metadata.tables.values()
        for key in other.foreign_keys
        if key.column.table is table
    )
