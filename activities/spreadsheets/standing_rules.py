"""Rules of uploaded rows that need the stored rows which they change."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.import_rows import target_table
from adapters.types.files import builtin_types, club_types
from adapters.types.standing import broken_as_stored, rows_here, rows_there
from adapters.types.targets import TargetTables
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import DeclaredType
from workflows.shared.row_rules import StoredRow
from workflows.spreadsheets.fields import SheetChunk, TargetRows


async def broken_rows(
    connection: AsyncConnection,
    targets: TargetTables,
    declared: DeclaredType,
    rows: TargetRows,
    lines: Sequence[int],
    now: Mapping[str, Table],
    left_out: Collection[int] = (),
) -> dict[int, tuple[Problem, ...]]:
    """Find what is wrong with rows as they would be stored, by their place in the chunk.

    Args:
        connection: To docflow's database.
        targets: Tables of teams.
        declared: Their type.
        rows: The rows; a blank keeps the stored value.
        lines: Line of each source row of the chunk.
        now: Tables that may have changed since their version, as they are now.
        left_out: Source rows that are wrong already.
    """

    async def read(
        keys: Sequence[tuple[Any, ...]], names: Sequence[str]
    ) -> Sequence[StoredRow | None]:
        if declared.target is not None:
            return await rows_there(targets, declared, keys, names)
        table = target_table(rows.table, now)
        return await rows_here(connection, declared, table, keys, names)

    kept = [n for n, origin in enumerate(rows.origin) if origin not in left_out]
    found = await broken_as_stored(
        *(read, declared, rows.columns, [rows.rows[n] for n in kept], rows.strategy),
        blanks_keep=True,
        title=lambda name: declared.fields[name].title or name,
    )
    problems: dict[int, tuple[Problem, ...]] = {}
    for place, name, value, reason in found:
        origin = rows.origin[kept[place]]
        problem = Problem(
            line=lines[origin],
            column=name,
            value=None if value is None else str(value)[:200],
            reason=reason[:500],
        )
        problems[origin] = (*problems.get(origin, ()), problem)
    return problems


def own_type(name: str) -> DeclaredType | None:
    """Return a type of docflow's own whose rows are not about people."""
    return builtin_types().get(name) or club_types().get(name)


async def broken_in(
    connection: AsyncConnection,
    targets: TargetTables,
    declared: DeclaredType | None,
    chunk: SheetChunk,
    left_out: Collection[int],
    now: Mapping[str, Table],
) -> dict[int, tuple[Problem, ...]]:
    """As `broken_rows`, of all rows of a chunk; None: its type has no rules."""
    found: dict[int, tuple[Problem, ...]] = {}
    if declared is None:
        return found
    for rows in chunk.targets:
        lines = chunk.lines
        found |= await broken_rows(connection, targets, declared, rows, lines, now, left_out)
    return found
