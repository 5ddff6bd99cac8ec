"""Rows of a table, out again as they came in."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import select

from adapters.database.engine import Database
from adapters.database.models.every import DOMAIN
from domain.imports.tables import TableSpec

PAGE: Final = 5_000
"""Rows that are in memory at once."""


class SqlImportedRows:
    """Reads imported tables; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, spec: TableSpec, scope: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[tuple[Any, ...]]]:
        """Rows by natural key, as they are at one moment.

        Args:
            spec: The table.
            scope: Values of the leading columns of its key.

        Yields:
            Pages of values in the order of the fields of `spec`.
        """
        table = DOMAIN[spec.table]
        query = (
            select(*(table.c[field.name] for field in spec.fields))
            .where(*(table.c[name] == value for name, value in scope.items()))
            .order_by(*(table.c[name] for name in spec.key))
            .execution_options(yield_per=PAGE)
        )
        async with self._database.streaming() as connection:
            found = await connection.stream(query)
            async for page in found.partitions(PAGE):
                yield [tuple(row) for row in page]
