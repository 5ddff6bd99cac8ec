"""Rows on their way into a table."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, Self

from sqlalchemy import ColumnElement, FromClause, Table

from adapters.database.models.base import key_of

Row = tuple[Any, ...]
"""Values of one row, in the order of its columns."""


@dataclass(frozen=True)
class RowBatch:
    """Rows of one table, unique by natural key.

    Attributes:
        table: Where they go.
        columns: The natural key and every column that the rows have.
        rows: Values in the order of `columns`.
        lines: Line of each row in its file.
        origin: Place of each row in the chunk it came with.
    """

    table: Table
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    lines: Sequence[int]
    origin: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def values(self) -> Sequence[Sequence[Any]]:
        """The same values column by column."""
        width = len(self.columns)
        # Slices of all values in one list take half the time of zip.
        every = list(chain.from_iterable(self.rows))
        return [every[place::width] for place in range(width)]

    def take(self, places: Sequence[int]) -> Self:
        """The rows at these places, in this order."""
        if len(places) == len(self.rows):
            return self
        return type(self)(
            self.table,
            self.columns,
            [self.rows[place] for place in places],
            [self.lines[place] for place in places],
            [self.origin[place] for place in places],
        )

    def column(self, name: str) -> list[Any]:
        """The values of one column; a copy."""
        return list(self.values[self.columns.index(name)])

    def with_column(self, name: str, values: Sequence[Any]) -> "RowBatch":
        """The same rows with one column replaced or added."""
        if name in self.columns:
            place = self.columns.index(name)
            rows = [
                (*row[:place], value, *row[place + 1 :])
                for row, value in zip(self.rows, values, strict=True)
            ]
            return RowBatch(self.table, self.columns, rows, self.lines, self.origin)
        rows = [(*row, value) for row, value in zip(self.rows, values, strict=True)]
        return RowBatch(self.table, (*self.columns, name), rows, self.lines, self.origin)

    def keys(self, names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """Each row's natural key, or these columns of it."""
        wanted = key_of(self.table) if names is None else names
        places = [self.columns.index(name) for name in wanted]
        if len(places) == 1:
            return [(row[places[0]],) for row in self.rows]
        return list(map(operator.itemgetter(*places), self.rows))


@dataclass(frozen=True)
class Stamp:
    """Who writes, and when: the bookkeeping of every row of one transaction."""

    task: str
    now: datetime


@dataclass(frozen=True)
class KeySource:
    """Keys sent along with a query, as something to select from.

    Attributes:
        source: Yields one row per key.
        columns: Its expression for each column of the key.
        place: Its expression for the key's place among the keys sent, from 0.
        parameters: The keys, as parameters of the statement.
    """

    source: FromClause
    columns: Mapping[str, ColumnElement[Any]]
    place: ColumnElement[int]
    parameters: Mapping[str, Any]
