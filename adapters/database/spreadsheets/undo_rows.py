"""Taking back what a chunk has written, by row of the file: all of a row or nothing.

A row is taken back only when everything still is as the import left it, in the columns that the
import wrote. One of which anything was changed since, or is referred to by others, is left alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.models.people import PERSON_LOOKUPS
from adapters.database.spreadsheets.before_images import TableImages, UpdatedImage
from adapters.database.spreadsheets.target_tables import children_of, target_table

CHANGED: Final = "was changed since"
GONE: Final = "was deleted since"
Conflict = tuple[int, str, int, str]
"""Line, table, row and why it is left alone."""


@dataclass
class TakenBack:
    """What was done to the rows of a chunk.

    Attributes:
        deleted: Records that were deleted.
        restored: Records that got their values back.
        conflicts: What keeps rows of the file from being taken back.
        left: Images of the rows that were left alone.
    """

    deleted: int = 0
    restored: int = 0
    conflicts: Sequence[Conflict] = ()
    left: Sequence[TableImages] = ()


@dataclass
class _Found:
    """A table's part of a chunk, and its records as they are now."""

    table: Table
    images: TableImages
    names: Sequence[str]
    current: Mapping[int, Mapping[str, Any]]
    """Of changed records, by id."""
    created: Mapping[int, int]
    """Created records that are still there: id to line."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])


async def take_back(
    connection: AsyncConnection, bulk: BulkEngine, images: Sequence[TableImages]
) -> TakenBack:
    """Take back every row of a chunk that can be.

    Args:
        connection: In a transaction.
        bulk: Of this database.
        images: What the chunk has done, in the order in which it came about.
    """
    found = [await _look(connection, bulk, each) for each in images]
    conflicts = [conflict for each in found for conflict in each.conflicts]
    blocked = {line for line, *_ in conflicts}
    while held := await _held(connection, bulk, found, blocked):
        conflicts += held
        blocked |= {line for line, *_ in held}
    done = TakenBack(conflicts=conflicts, left=_left(images, blocked))
    for each in reversed(found):
        done.restored += await _restore(connection, bulk, each, blocked)
        wanted = [id for id, line in each.created.items() if line not in blocked]
        if wanted:
            await bulk.delete(connection, each.table, wanted)
        done.deleted += len(wanted)
    return done


def _left(images: Sequence[TableImages], blocked: set[int]) -> Sequence[TableImages]:
    left = (
        TableImages(
            each.table,
            each.columns,
            [row for row in each.created if row[0] in blocked],
            [image for image in each.updated if image.line in blocked],
        )
        for each in images
    )
    return [each for each in left if each.created or each.updated]


async def _look(connection: AsyncConnection, bulk: BulkEngine, images: TableImages) -> _Found:
    table = target_table(images.table)
    names = sorted({images.columns[n] for image in images.updated for n in image.columns})
    current: dict[int, dict[str, Any]] = {}
    if images.updated:
        ids = [image.id for image in images.updated]
        rows = await bulk.rows(connection, table, ids, names)
        current = {row[0]: dict(zip(names, tuple(row)[1:], strict=True)) for row in rows}
    found = _Found(table, images, names, current, {})
    for image in images.updated:
        reason = _why_not(bulk, found, image)
        if reason is not None:
            found.conflicts.append((image.line, images.table, image.id, reason))
    await _look_at_created(connection, bulk, found)
    return found


def _why_not(bulk: BulkEngine, found: _Found, image: UpdatedImage) -> str | None:
    there = found.current.get(image.id)
    if there is None:
        return GONE
    columns = [found.images.columns[n] for n in image.columns]
    after = _parsed(bulk, found.table, columns, image.after)
    return None if [there[name] for name in columns] == after else CHANGED


def _parsed(
    bulk: BulkEngine, table: Table, columns: Sequence[str], values: Sequence[Any]
) -> list[Any]:
    return [
        bulk.parsed(table, name, [value])[0] for name, value in zip(columns, values, strict=True)
    ]


async def _look_at_created(connection: AsyncConnection, bulk: BulkEngine, found: _Found) -> None:
    """Find created records that are as the import left them; one that is gone is fine."""
    images, table = found.images, found.table
    if not images.created:
        return
    lines, ids, *columns = zip(*images.created, strict=True)
    columns = [
        bulk.parsed(table, name, values)
        for name, values in zip(images.columns, columns, strict=True)
    ]
    written = dict(zip(ids, zip(lines, zip(*columns, strict=True), strict=True), strict=True))
    # What the import left blank is a person's work too, once it is filled.
    others = {"id", *images.columns, *PERSON_LOOKUPS}
    blank = [name for name in table.c.keys() if name not in others]  # noqa: SIM118
    created: dict[int, int] = {}
    for row in await bulk.rows(connection, table, ids, (*images.columns, *blank)):
        id, *values = row
        line, after = written[id]
        created[id] = line
        if tuple(values) != (*after, *(None for _ in blank)):
            found.conflicts.append((line, images.table, id, CHANGED))
    found.created = created


async def _held(
    connection: AsyncConnection, bulk: BulkEngine, found: Sequence[_Found], blocked: set[int]
) -> list[Conflict]:
    """Created records that something refers to which stays."""
    going = {
        each.table.name: {id for id, line in each.created.items() if line not in blocked}
        for each in found
    }
    held: list[Conflict] = []
    for each in found:
        wanted = sorted(going[each.table.name])
        for child, column in children_of(each.table.name):
            if not wanted:
                break
            stays = {
                parent
                for id, parent in await bulk.referring(connection, child, column, wanted)
                if id not in going.get(child.name, ())
            }
            reason = f"is referred to by {child.name.replace('_', ' ')}"
            held.extend((each.created[id], each.table.name, id, reason) for id in sorted(stays))
            wanted = [id for id in wanted if id not in stays]
    return held


async def _restore(
    connection: AsyncConnection, bulk: BulkEngine, found: _Found, blocked: set[int]
) -> int:
    """Give changed records their values back; how many."""
    rows: list[tuple[Any, ...]] = []
    for image in found.images.updated:
        if image.line in blocked:
            continue
        current = found.current[image.id]
        columns = [found.images.columns[n] for n in image.columns]
        values = _parsed(bulk, found.table, columns, image.before)
        before = dict(zip(columns, values, strict=True))
        rows.append((image.id, *(before.get(name, current[name]) for name in found.names)))
    if rows:
        await bulk.update(connection, found.table, found.names, rows)
    return len(rows)
