"""Statements that run for every small document, as the text and the arguments of the driver.

SQLAlchemy takes more of the client's processor time for a statement that it has compiled before
than the driver takes to send it and to read its answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

DIALECT: Final = PGDialect_asyncpg()


@dataclass(frozen=True, slots=True)
class DriverText:
    """A statement as the driver takes it.

    Attributes:
        sql: Its text.
        places: Names of its parameters, in the order of its arguments.
        fixed: Those that are the same whenever it runs.
        adapted: Turns values of some parameters into what the driver takes.
    """

    sql: str
    places: tuple[str, ...]
    fixed: Mapping[str, Any]
    adapted: Mapping[str, Callable[[Any], Any]]

    def arguments(self, parameters: Mapping[str, Any]) -> list[Any]:
        """The values of a run."""
        values = {**self.fixed, **parameters}
        for name, adapt in self.adapted.items():
            values[name] = adapt(values[name])
        return [values[name] for name in self.places]


@lru_cache(maxsize=512)
def driver_text(statement: Executable, names: tuple[str, ...]) -> DriverText:
    """Compile a statement for parameters of these names; of an INSERT, its columns.

    Raises:
        ValueError: An INSERT lacks columns whose defaults SQLAlchemy makes.
    """
    compiled = cast("ClauseElement", statement).compile(dialect=DIALECT, column_keys=names)
    assert isinstance(compiled, SQLCompiler)
    if compiled.insert_prefetch:
        missing = ", ".join(column.name for column in compiled.insert_prefetch)
        raise ValueError(f"the driver is sent no defaults of SQLAlchemy: {missing} need values")
    places = tuple(compiled.positiontup or ())
    processors = {
        name: processor
        for name in places
        if (processor := _processor(compiled.binds[name].type)) is not None
    }
    fixed = {name: value for name, value in compiled.params.items() if name not in names}
    return DriverText(str(compiled), places, fixed, processors)


def _processor(kind: Any) -> Callable[[Any], Any] | None:
    return kind.dialect_impl(DIALECT).bind_processor(DIALECT)


async def driver_of(connection: AsyncConnection) -> Any:
    """asyncpg's own connection; its transaction has begun with an earlier statement."""
    return (await connection.get_raw_connection()).driver_connection


async def fetch(
    connection: AsyncConnection, statement: Executable, parameters: Mapping[str, Any]
) -> Sequence[Any]:
    """Run a statement and fetch its rows.

    The first one of a transaction begins it and goes through SQLAlchemy, which notices there that
    a connection of its pool is lost.
    """
    text = driver_text(statement, tuple(parameters))
    arguments = text.arguments(parameters)
    driver = await driver_of(connection)
    if driver.is_in_transaction():
        return await driver.fetch(text.sql, *arguments)
    return (await connection.exec_driver_sql(text.sql, tuple(arguments))).all()
