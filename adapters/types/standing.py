"""Rows of a file beside the stored rows that they change, and the rules that need both."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk import engine as bulk
from adapters.types.targets import TargetTables
from workflows.shared.conversion import read_cells
from workflows.shared.declared_fields import field_spec
from workflows.shared.declared_types import DeclaredType
from workflows.shared.fields import NUMBERS
from workflows.shared.notations import Notation
from workflows.shared.row_rules import (
    KEPT,
    StoredRow,
    broken_rules,
    keeps_stored,
    kept_fields,
    rule_fields,
)

_PARSED: Final = frozenset(
    {"integer", "decimal", "money", "date", "time", "timestamp", "boolean", "duration"}
)
"""Kinds whose values are no texts."""
ReadStored = Callable[
    [Sequence[tuple[Any, ...]], Sequence[str]], Awaitable[Sequence[StoredRow | None]]
]
"""Takes natural keys and fields; gives the stored row of each key, None for a new one."""


class BrokenRow(NamedTuple):
    """A row that breaks a rule as it would be stored."""

    place: int
    field: str
    value: Any
    """What the file gives for the field."""
    reason: str


async def rows_here(
    connection: AsyncConnection,
    declared: DeclaredType,
    table: Table,
    keys: Sequence[tuple[Any, ...]],
    names: Sequence[str],
) -> Sequence[StoredRow | None]:
    """Read the rows of some natural keys from a table of docflow's, as `ReadStored`."""
    key = declared.natural_key
    sent = bulk.stored(table, key, keys)
    found = await bulk.find(connection, table, key, sent, names, lock=False)
    rows: list[StoredRow | None] = [None] * len(keys)
    for place, *row in found:
        rows[int(place)] = _row(declared, names, row[len(row) - len(names) :])
    return rows


async def rows_there(
    targets: TargetTables,
    declared: DeclaredType,
    keys: Sequence[tuple[Any, ...]],
    names: Sequence[str],
) -> Sequence[StoredRow | None]:
    """Read the rows of some natural keys from a table of a team, as `ReadStored`."""
    width = len(declared.scope)
    scope = dict(zip(declared.scope, keys[0], strict=False))
    own = [tuple(map(str, key[width:])) for key in keys]
    firsts = sorted({key[0] for key in own})
    found = await targets.known(declared, scope, [*declared.key, *names], firsts)
    count = len(declared.key)
    stored = {row[:count]: _row(declared, names, row[count:]) for row in found}
    return [stored.get(key) for key in own]


async def broken_as_stored(
    read: ReadStored,
    declared: DeclaredType,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    strategy: str,
    *,
    blanks_keep: bool,
    title: Callable[[str], str] = str,
) -> Sequence[BrokenRow]:
    """Find the rows that break a rule together with the stored rows that they change.

    Args:
        read: Reads stored rows; it is asked once, for the rows that need it.
        declared: The type.
        columns: Columns of the rows, the natural key among them.
        rows: Rows that keep the rules which need no stored row.
        strategy: How they meet stored rows.
        blanks_keep: A blank keeps the stored value, as the lack of a column does.
        title: What people call a field.
    """
    fields = rule_fields(declared)
    names = fields if blanks_keep else kept_fields(declared, columns)
    if not (rows and names and keeps_stored(declared, strategy)):
        return []
    values: dict[str, Sequence[Any]] = {name: [KEPT] * len(rows) for name in fields}
    for place, name in enumerate(columns):
        if name in values:
            values[name] = [
                KEPT if blanks_keep and row[place] is None else row[place] for row in rows
            ]
    asked = sorted({i for name in names for i, value in enumerate(values[name]) if value is KEPT})
    if not asked:
        return []
    places = [columns.index(name) for name in declared.natural_key]
    keys = [tuple(rows[i][place] for place in places) for i in asked]
    stored = await read(keys, names)
    only = {name: [column[i] for i in asked] for name, column in values.items()}
    return [
        BrokenRow(asked[i], name, None if only[name][i] is KEPT else only[name][i], reason)
        for i, name, reason in broken_rules(declared, only, stored, title)
        if strategy != "update_only" or stored[i] is not None
    ]


def _row(declared: DeclaredType, names: Sequence[str], values: Sequence[Any]) -> StoredRow:
    return {n: _value(declared, n, value) for n, value in zip(names, values, strict=True)}


def _value(declared: DeclaredType, name: str, stored: Any) -> Any:
    """A stored value as rules compare it, also if its column holds texts."""
    field = declared.fields[name]
    if not isinstance(stored, str) or field.kind not in _PARSED:
        return stored
    if field.kind == "duration":
        return int(stored)
    spec = field_spec(name, field.model_copy(update={"default": None}))
    notation = Notation.POINT if spec.kind in NUMBERS else None
    values, _ = read_cells(spec, [stored], notation)
    return values[0]
