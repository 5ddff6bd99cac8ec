"""Special code that types of docflow's own name: what writing their rows changes beside them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Table, and_, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.models.every import DOMAIN, STAGED
from adapters.types.files import builtin_types
from workflows.shared.assignments import Assignments, end_before_next

_MEMBERS: Final = DOMAIN["crew_members"]
_PERSON: Final = ("project_id", "employee_no")


@dataclass(frozen=True)
class RowHook:
    """What a hook does as rows are written; it has the table alone meanwhile.

    Attributes:
        together: Column; rows with one value of it are written together.
        before: Takes a batch before it is written, and whether a blank keeps what is stored.
            Returns the batch to write, and the stored rows that change with it: their keys and new
            values, with the lines that change them.
        absent: Acts on the rows that a staged file lacks, in the place of their removal. Takes the
            id of the load, the values of the scope, and the day of the import; returns how many
            rows it has changed.
    """

    together: str
    before: Callable[[AsyncConnection, RowBatch, bool], Awaitable[tuple[RowBatch, RowBatch]]]
    absent: Callable[[AsyncConnection, int, Mapping[str, Any], date, Stamp], Awaitable[int]]


def hook_of(table: Table) -> RowHook | None:
    """The hook that the type of a table names."""
    return _by_table().get(table)


@cache
def _by_table() -> Mapping[Table, RowHook]:
    types = builtin_types().values()
    return MappingProxyType(
        {DOMAIN[each.table_name]: HOOKS[each.hook] for each in types if each.hook is not None}
    )


async def _end_before_next(
    connection: AsyncConnection, batch: RowBatch, blank_keeps: bool
) -> tuple[RowBatch, RowBatch]:
    stored = await _stored_assignments(connection, batch)
    return without_overlaps(batch, stored, blank_keeps=blank_keeps)


async def _stored_assignments(connection: AsyncConnection, batch: RowBatch) -> Assignments:
    """Read the assignments of the batch's employees."""
    people = sorted(set(batch.keys(_PERSON)))
    sent = bulk.keys(_MEMBERS, _PERSON, people)
    members = _MEMBERS.c
    query = (
        select(members.project_id, members.employee_no, members.valid_from, members.valid_to)
        .select_from(_MEMBERS, sent.source)
        .where(*(members[name] == sent.columns[name] for name in _PERSON))
    )
    rows = await connection.execute(query, sent.parameters)
    return Assignments({(row[0], row[1], row[2]): row[3] for row in rows})


def without_overlaps(
    batch: RowBatch, stored: Assignments, *, blank_keeps: bool = False
) -> tuple[RowBatch, RowBatch]:
    """End each assignment before the next.

    Args:
        batch: The assignments that come in.
        stored: What is stored about their people.
        blank_keeps: A blank last day keeps the stored one.

    Returns:
        The batch with the last days it may have, and the stored rows that are not in the batch
        with their new last days.
    """
    keys = batch.keys((*_PERSON, "valid_from"))
    if "valid_to" in batch.columns:
        ends: list[date | None] = batch.column("valid_to")
    else:
        ends, blank_keeps = [None] * len(keys), True
    if blank_keeps:
        ends = [stored.ends.get(k) if e is None else e for k, e in zip(keys, ends, strict=True)]
    bounded, closed = end_before_next(keys, ends, stored)
    by_person = {key[:2]: place for place, key in reversed([*enumerate(keys)])}
    by_term = {key: place for place, key in enumerate(keys)}
    places = [
        by_term.get((*term[:2], last + timedelta(days=1)), by_person[term[:2]])
        for term, last in closed.items()
    ]
    beside = RowBatch(
        batch.table,
        (*_PERSON, "valid_from", "valid_to"),
        [(*term, last) for term, last in closed.items()],
        [batch.lines[place] for place in places],
        [batch.origin[place] for place in places],
    )
    return batch.with_column("valid_to", bounded), beside


async def _end_absent(
    connection: AsyncConnection,
    load_id: int,
    scope: Mapping[str, Any],
    as_of: date,
    stamp: Stamp,
) -> int:
    """End the assignments that the staged file does not hold; how many.

    Those that a later assignment of the file ends are left to it. One that was to begin after
    `as_of` ends before it begins, which means that it never was.
    """
    members, staged = _MEMBERS, STAGED[_MEMBERS.name]
    person = and_(
        staged.c.load_id == load_id, *(staged.c[name] == members.c[name] for name in _PERSON)
    )
    held = exists().where(person, staged.c.valid_from >= members.c.valid_from)
    result = await connection.execute(
        update(members)
        .where(
            *(members.c[name] == value for name, value in scope.items()),
            or_(members.c.valid_to.is_(None), members.c.valid_to > as_of),
            or_(members.c.valid_to.is_(None), members.c.valid_to >= members.c.valid_from),
            ~held,
        )
        .values(
            valid_to=as_of,
            version=members.c.version + 1,
            source_task=stamp.task,
            updated_at=stamp.now,
        )
    )
    return result.rowcount


HOOKS: Final[Mapping[str, RowHook]] = MappingProxyType(
    {"assignments": RowHook("employee_no", _end_before_next, _end_absent)}
)
"""What the file of a type calls a hook, to the hook."""
