"""Uploads whose rows stand in the place of those that their scope holds beside them.

Each chunk notes the keys of its rows. Once all rows are in, the stored rows of the scope whose keys
are not among them are removed, and kept with the before-images of the import. Nothing is removed if
a row of the file did not go in: it must not count as gone.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from sqlalchemy import Column, MetaData, Select, Table, Text, and_, cast, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import elsewhere
from activities.spreadsheets.import_rows import (
    LockedImport,
    acquire_organisation_lock,
    is_elsewhere,
    lock_known,
    natural_key,
    save,
    table_name,
    target_table,
)
from activities.spreadsheets.row_images import (
    TableImages,
    identity_from,
    pack,
    parts_of,
    unpack,
)
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import Row
from adapters.database.foreign import Step
from adapters.database.models.base import identity_of
from adapters.database.models.spreadsheets import spreadsheet_journal
from adapters.types.references import table_of
from adapters.types.store import known_table
from adapters.types.targets import TargetTables
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.fields import SheetChunk

REMOVAL: Final = 1 << 30
"""Number of the first chunk that removes rows: it comes after all that write some."""
_PAGE: Final = 5_000
_SHOWN: Final = 30


def replaces(declared: DeclaredType | None) -> bool:
    """Whether rows of a type stand in the place of stored ones; a file has its rows alone."""
    is_file = declared is not None and declared.target is not None and declared.target.file
    return declared is not None and declared.strategy == "replace" and not is_file


def noted(
    declared: DeclaredType | None,
    chunk: SheetChunk,
    done: Sequence[TableImages],
    *,
    dry_run: bool,
) -> list[TableImages]:
    """What is kept of what a chunk has done, with the keys of rows that were left out."""
    images = [*done]
    if replaces(declared) and chunk.left_keys:
        images.append(TableImages(chunk.main, (), left=chunk.left_keys))
    if dry_run:
        images = [TableImages(each.table, (), held=each.held, left=each.left) for each in images]
    return [each for each in images if not each.is_empty]


async def remove_absent(
    connection: AsyncConnection,
    uuid: str,
    scope: Mapping[str, str],
    targets: TargetTables,
    *,
    dry_run: bool,
) -> str | None:
    """Remove the stored rows that a file lacks, once all of its rows are in; a sentence about it.

    A second run removes nothing more.

    Args:
        connection: In a transaction.
        uuid: The import.
        scope: Values that bound what is removed.
        targets: Tables of teams.
        dry_run: Count them only.
    """
    opened = await lock_known(connection, uuid)
    declared = await known_table(connection, opened.row.import_type, opened.row.type_digest)
    if declared is None or not replaces(declared) or opened.purged:
        return None
    if not dry_run:
        await acquire_organisation_lock(connection, opened.row.organisation_id)
    if (removed := await _removed(connection, opened)) or opened.ended:
        return _said(removed, dry_run=False) if removed else None
    errors = opened.mark.counts.error
    if errors:
        rows = "1 row was" if errors == 1 else f"{errors:,} rows were"
        return f"nothing was removed, because {rows} rejected"
    table = target_table(table_of(declared))
    held = await _held_keys(connection, table)
    left, is_any = set[str](), False
    async for images in _journal(connection, opened):
        for each in images:
            left |= {*each.left}
            if each.held:
                is_any = True
                await bulk.fill(connection, held, natural_key(table), each.held)
    if not is_any:
        return "nothing was removed, because no row of the file went in"
    if is_elsewhere(table):
        removed = await _remove_there(
            *(connection, opened, declared, held, scope, targets, left), dry_run=dry_run
        )
    else:
        removed = await _remove(connection, opened, declared, held, scope, left, dry_run=dry_run)
    if isinstance(removed, str):
        shown = repr(removed[:_SHOWN])[:_SHOWN]
        return (
            f"nothing was removed, because {shown} is the key of a stored row and of one that was "
            "left out"
        )
    return _said(removed, dry_run=dry_run) if removed else None


def _said(removed: int, *, dry_run: bool) -> str:
    rows = "1 stored row" if removed == 1 else f"{removed:,} stored rows"
    were = ("would be" if dry_run else "was") if removed == 1 else "would be" if dry_run else "were"
    return f"{rows} that the file lacks {were} removed"


async def _journal(
    connection: AsyncConnection, opened: LockedImport, first: int = 0
) -> AsyncIterator[Sequence[TableImages]]:
    journal = spreadsheet_journal.c
    mine = journal.import_id == opened.id, journal.chunk >= first
    query = select(journal.images).where(*mine).order_by(journal.round, journal.chunk)
    for packed in (await connection.execute(query)).scalars():
        yield unpack(packed)


async def _removed(connection: AsyncConnection, opened: LockedImport) -> int:
    """How many rows the import has removed already."""
    total = 0
    async for images in _journal(connection, opened, REMOVAL):
        total += sum(len(each.deleted) for each in images)
    return total


async def _held_keys(connection: AsyncConnection, table: Table) -> Table:
    """A table for the keys of the file, until the transaction ends."""
    columns = [Column(name, table.c[name].type) for name in natural_key(table)]
    held = Table("docflow_held_keys", MetaData(), *columns, prefixes=["TEMPORARY"])
    await connection.exec_driver_sql("DROP TABLE IF EXISTS pg_temp.docflow_held_keys")
    await connection.run_sync(lambda own: held.create(own, checkfirst=False))
    return held


async def _note(
    connection: AsyncConnection, opened: LockedImport, number: int, images: TableImages
) -> None:
    columns = ("import_id", "round", "chunk", "images", "undone")
    row = (opened.id, opened.mark.round, number, pack([images]), False)
    await bulk.insert(connection, spreadsheet_journal, columns, [row])


async def _remove(
    connection: AsyncConnection,
    opened: LockedImport,
    declared: DeclaredType,
    held: Table,
    scope: Mapping[str, str],
    left: set[str],
    *,
    dry_run: bool,
) -> int | str:
    """Remove rows of docflow's own table; how many, or the key of one that was left out."""
    table = target_table(table_of(declared))
    await connection.exec_driver_sql("ANALYZE pg_temp.docflow_held_keys")
    absent = _absent(table, held, {name: scope[name] for name in declared.scope})
    first = cast(table.c[declared.first_key], Text)
    if left:
        found = await connection.execute(
            absent.with_only_columns(first).where(bulk.among(first, sorted(left))).limit(1)
        )
        if (key := found.scalar_one_or_none()) is not None:
            return key
    if dry_run:
        counted = select(func.count()).select_from(absent.order_by(None).subquery())
        return (await connection.execute(counted)).scalar_one()
    names = tuple(name for name in table.c.keys() if name not in identity_of(table))  # noqa: SIM118
    removed = 0
    for number in count(REMOVAL):
        page = (await connection.execute(absent.limit(_PAGE))).all()
        if not page:
            return removed
        ids = [tuple(row) for row in page]
        rows = await bulk.rows(connection, table, ids, names)
        images = [identity_from(table, row) for _, *row in rows]
        gone = [(id, *values) for id, values in images]
        await _note(connection, opened, number, TableImages(table_name(table), names, deleted=gone))
        await bulk.delete(connection, table, [parts_of(id) for id, _ in images])
        removed += len(gone)
    return removed


def _absent(table: Table, held: Table, scope: Mapping[str, Any]) -> Select[Any]:
    """Identities of the rows of a scope whose keys are not held."""
    same = and_(*(held.c[name] == table.c[name] for name in natural_key(table)))
    bounds = and_(true(), *(table.c[name] == value for name, value in scope.items()))
    ids = [table.c[name] for name in identity_of(table)]
    return select(*ids).where(bounds, ~select(held).where(same).exists()).order_by(*ids)


async def _remove_there(
    connection: AsyncConnection,
    opened: LockedImport,
    declared: DeclaredType,
    held: Table,
    scope: Mapping[str, str],
    targets: TargetTables,
    left: set[str],
    *,
    dry_run: bool,
) -> int | str:
    """Remove rows of a table of a team; how many, or the key of one that was left out."""
    names = [each.name for each in held.c]
    keys: Sequence[Row] = [tuple(row) for row in await connection.execute(select(held))]

    async def pages() -> AsyncIterator[tuple[Sequence[Row], Sequence[int]]]:
        yield keys, ()

    if left:
        first, own = declared.first_key, {str(row[names.index(declared.first_key)]) for row in keys}
        stored = await targets.known(declared, scope, (first,), sorted(left - own))
        if stored:
            return str(stored[0][0])
    step = Step(elsewhere.run_name(opened.row.uuid), f"{opened.mark.round}/{REMOVAL}", b"")
    gone = await targets.remove_absent(declared, step, names, pages(), scope, dry=dry_run)
    if gone.deleted and not dry_run:
        removed = gone.every_image()
        rows = [(each.key, *(each.before or ())) for each in removed]
        images = TableImages(table_of(declared), removed[0].columns, deleted=rows)
        await _note(connection, opened, REMOVAL, images)
        # Their side table forgets a step that the mark has passed.
        await save(connection, opened, {"mark_chunk": REMOVAL + 1})
    return gone.deleted
