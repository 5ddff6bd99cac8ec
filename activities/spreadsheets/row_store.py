"""One chunk of rows on its way into the target tables, in one transaction with its mark.

How rows of a chunk meet the rows that are there, one target table at a time.

A row is found by its natural key. An absent value leaves what is there; a row that would change
nothing is not written.
"""

import asyncio
import operator
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import compress, count
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Table, Text
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import elsewhere, replacing, value_store
from activities.spreadsheets.chunk_records import Done, keep_differences, keep_results, park
from activities.spreadsheets.import_rows import (
    LockedImport,
    acquire_organisation_lock,
    counted_values,
    defaults_of,
    is_elsewhere,
    lock_known,
    natural_key,
    parents_of,
    save,
    table_name,
    tables_now,
    target_table,
)
from activities.spreadsheets.row_images import (
    Identity,
    Incoming,
    TableImages,
    UpdatedImage,
    identity_from,
    of_new,
    pack,
    parts_of,
    with_stored_words,
)
from activities.spreadsheets.standing_rules import broken_in, own_type
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.appending import is_numbered, known_keys, renumbered
from adapters.database.bulk.rows import Row, RowBatch
from adapters.database.bulk.statements import STAMPS
from adapters.database.errors import unstorable
from adapters.database.models.base import is_stamped
from adapters.database.models.spreadsheets import (
    COUNTS,
    spreadsheet_journal,
)
from adapters.types.hooks import hook_of
from adapters.types.store import known_table
from adapters.types.targets import TargetTables
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.decisions import column_title
from workflows.spreadsheets.fields import SheetChunk, SheetMark, TargetRows
from workflows.spreadsheets.runs import RowCounts

UNKNOWN_ROW: Final = "is not in the table, and this type only changes rows that are there"
KNOWN_ROW: Final = "is in the table already, and this type only adds rows"
_TURNED_AWAY: Final = MappingProxyType({"update_only": UNKNOWN_ROW, "append": KNOWN_ROW})
"""What is wrong with rows that meet a strategy against its grain."""
_KEY_BYTES: Final = 2_000
"""An index entry of PostgreSQL holds 2,704 bytes."""


async def find_faults(
    connection: AsyncConnection, chunk: SheetChunk, now: Mapping[str, Table]
) -> dict[int, tuple[Problem, ...]]:
    """What is wrong with rows of a chunk, by their place in it.

    Rows that others' rows refer to are locked, so that none of them vanishes before the end of
    the transaction.
    """
    faults: dict[int, tuple[Problem, ...]] = {}
    for target in chunk.targets:
        if not target.rows:
            continue
        for place, problem in _unstorable(chunk, target).items():
            faults.setdefault(target.origin[place], (_in_words(problem),))
        for place, problem in (await _dangling(connection, chunk, target)).items():
            faults.setdefault(target.origin[place], (_in_words(problem),))
        reason = _TURNED_AWAY.get(target.strategy)
        if reason is not None and not is_elsewhere(target_table(target.table)):
            for origin in await _turned_away(connection, target, faults, now):
                faults[origin] = (Problem(line=chunk.lines[origin], reason=reason),)
    return faults


async def _turned_away(
    connection: AsyncConnection,
    target: TargetRows,
    faults: Mapping[int, Any],
    now: Mapping[str, Table],
) -> Sequence[int]:
    """Sources of rows whose key is not in the table, or is, as their strategy needs it."""
    incoming = incoming_rows(target, faults, {}, now)
    if target.strategy == "append" and is_numbered(_batch_of(incoming, ())):
        return ()
    known = await _find(connection, incoming, lock=False)
    is_needed = target.strategy == "update_only"
    wrong = {
        origin
        for origin, key in zip(incoming.origins, incoming.keys, strict=True)
        if (key in known) is not is_needed
    }
    return sorted(wrong | {origin for origin, first in incoming.shared if first in wrong})


def _batch_of(incoming: Incoming, lines: Sequence[int]) -> RowBatch:
    return RowBatch(incoming.table, incoming.columns, incoming.rows, lines, incoming.origins)


async def _hooked(
    connection: AsyncConnection, incoming: Incoming, lines: Sequence[int]
) -> tuple[Incoming, Incoming | None]:
    """The rows as the hook of their table has them, and stored rows that change with them."""
    hook = hook_of(incoming.table)
    if hook is None:
        return incoming, None
    batch = _batch_of(incoming, [lines[origin] for origin in incoming.origins])
    for project in sorted(set(batch.column("project_id"))):
        turn = bulk.turn_name(incoming.table.name, project)
        await bulk.acquire_advisory_lock(connection, turn)
    batch, changed = await hook.before(connection, batch, True)
    beside = Incoming(incoming.table, changed.columns, changed.rows, changed.origin, changed.keys())
    return replace(incoming, columns=batch.columns, rows=batch.rows), beside


async def _appended(
    connection: AsyncConnection, incoming: Incoming, lines: Sequence[int]
) -> Incoming:
    """The rows with numbers behind those of the rows that are there."""
    batch = _batch_of(incoming, [lines[origin] for origin in incoming.origins])
    if not is_numbered(batch):
        return incoming
    batch = await renumbered(connection, batch, await known_keys(connection, batch))
    return replace(incoming, rows=batch.rows, keys=batch.keys())


def _in_words(problem: Problem) -> Problem:
    """People know fields, not columns of tables."""
    if problem.column is None:
        return problem
    return problem.model_copy(update={"column": column_title(problem.column)})


def _unstorable(chunk: SheetChunk, target: TargetRows) -> Mapping[int, Problem]:
    table = target_table(target.table)
    lines = [chunk.lines[place] for place in target.origin]
    batch = RowBatch(table, target.columns, target.rows, lines, target.origin)
    return unstorable(batch) | _bad_required(batch)


def _bad_required(batch: RowBatch) -> dict[int, Problem]:
    """Values that must not be absent, and keys that are longer than an index holds."""
    found: dict[int, Problem] = {}
    for name in batch.columns:
        column = batch.table.c[name]
        if column.nullable:
            continue
        values = batch.column(name)
        if None in values:
            for place, value in enumerate(values):
                if value is None:
                    found[place] = Problem(
                        line=batch.lines[place], column=name, reason="is missing; fill it in"
                    )
        if isinstance(column.type, Text):
            longest = max((len(value) for value in values if value is not None), default=0)
            if longest * 4 > _KEY_BYTES:
                found |= _long_keys(batch, name, values)
    return found


def _long_keys(batch: RowBatch, name: str, values: Sequence[Any]) -> dict[int, Problem]:
    reason = f"the key of this row is longer than {_KEY_BYTES:,} bytes; shorten it"
    return {
        place: Problem(line=batch.lines[place], column=name, reason=reason)
        for place, value in enumerate(values)
        if value is not None and len(value.encode("utf-8", "replace")) > _KEY_BYTES
    }


async def _dangling(
    connection: AsyncConnection, chunk: SheetChunk, target: TargetRows
) -> dict[int, Problem]:
    """Rows that refer to one which was deleted meanwhile."""
    found: dict[int, Problem] = {}
    for name, parent in parents_of(target.table).items():
        if name not in target.columns:
            continue
        column = target.columns.index(name)
        values = [row[column] for row in target.rows]
        wanted = {value for value in values if value is not None}
        # Beyond 64 bits there is nothing to look up; such a row is known to be unstorable.
        asked = sorted(value for value in wanted if abs(value) < 1 << 63)
        there = await bulk.existing(connection, parent, asked) if asked else set[int]()
        if wanted <= there:
            continue
        for place, value in enumerate(values):
            if value is not None and value not in there:
                found[place] = Problem(
                    line=chunk.lines[target.origin[place]],
                    column=name,
                    value=str(value)[:200],
                    reason=f"refers to a row of {parent.name.replace('_', ' ')} that is not "
                    "there any more; map the value again",
                )
    return found


@dataclass
class Met:
    """Outcome of the rows of one target table.

    Attributes:
        ids: Place of a source row in the chunk to the identity of its row; None: it would be
            created.
        created: Places of the source rows whose row was created.
        changed: Places of the source rows whose row was changed.
        kept: Places of the source rows that differ from their row, which stays as it is.
        images: What was done to the table.
    """

    images: TableImages
    ids: dict[int, Identity | None] = field(default_factory=dict[int, Identity | None])
    created: set[int] = field(default_factory=set[int])
    changed: set[int] = field(default_factory=set[int])
    kept: set[int] = field(default_factory=set[int])


async def meet(
    connection: AsyncConnection,
    incoming: Incoming,
    lines: Sequence[int],
    fresh: Mapping[str, Container[int | None]],
    run: str,
    *,
    creates_only: bool = False,
    dry_run: bool,
) -> Met:
    """Create rows of new keys and change those that differ.

    Args:
        connection: In a transaction.
        incoming: The rows.
        lines: Line of each source row of the chunk.
        fresh: Column of a reference to ids that were just created: nothing refers to them yet.
        run: The import, as its rows have it if their table says who wrote them.
        creates_only: Leave rows that are there as they are.
        dry_run: Find out only.
    """
    known = _perhaps_known(incoming, fresh)
    found = await _find(connection, incoming.take(known), lock=False) if known else {}
    given = incoming
    incoming = with_stored_words(given, found)
    sorted_ = _compare(incoming, lines, found)
    kept = {incoming.origins[place] for place, _ in sorted_.changes} if creates_only else set[int]()
    if creates_only:
        sorted_.changes.clear()
    if sorted_.changes and not dry_run:
        # They may be changed meanwhile.
        again = [place for place, _ in sorted_.changes]
        found |= dict.fromkeys((incoming.keys[place] for place in again), None)
        found |= await _find(connection, incoming.take(again), lock=True)
        incoming = with_stored_words(given, found)
        sorted_ = _compare(incoming, lines, found)
    if dry_run:
        return replace(sorted_.met(incoming, [None] * len(sorted_.new), lines), kept=kept)
    ids: Sequence[Identity] = ()
    if sorted_.new:
        ids = await _create(connection, incoming, sorted_.new, lines, run)
    if sorted_.changes:
        await _update(connection, incoming, found, sorted_, run)
    return replace(sorted_.met(incoming, ids, lines), kept=kept)


async def _create(
    connection: AsyncConnection,
    incoming: Incoming,
    places: Sequence[int],
    lines: Sequence[int],
    run: str,
) -> Sequence[Identity]:
    """Insert rows; their identities."""
    table, rows = incoming.table, [incoming.rows[place] for place in places]
    if is_stamped(table):
        now = datetime.now(UTC)
        origins = [incoming.origins[place] for place in places]
        names, values = of_new(incoming)
        records = [
            (*row, *values, lines[origin], 1, run, now, now)
            for row, origin in zip(rows, origins, strict=True)
        ]
        await bulk.insert(connection, table, (*incoming.columns, *names, *STAMPS), records)
        keys = [incoming.keys[place] for place in places]
        return [key[0] if len(key) == 1 else key for key in keys]
    ids = await bulk.reserve(connection, table, len(places))
    more = defaults_of(table, incoming.columns)
    if more:
        rows = [(*row, *more.values()) for row in rows]
    records = list(map(operator.add, zip(ids, strict=True), rows))
    await bulk.insert(connection, table, ("id", *incoming.columns, *more), records)
    return ids


def _perhaps_known(incoming: Incoming, fresh: Mapping[str, Container[int | None]]) -> Sequence[int]:
    """Places of rows whose natural key does not refer to a row just created."""
    places: Sequence[int] = range(len(incoming.keys))
    for part, name in enumerate(natural_key(incoming.table)):
        if name in fresh:
            new = fresh[name]
            places = [place for place in places if incoming.keys[place][part] not in new]
    return places


def incoming_rows(
    target: TargetRows,
    left_out: Mapping[int, Any],
    ids: Mapping[str, Mapping[int, Identity | None]],
    now: Mapping[str, Table] = MappingProxyType({}),
) -> Incoming:
    """The rows of a target that are to be written, with their references; of several with the
    same natural key one, in which later values count.

    Args:
        target: What the chunk brings for the table.
        left_out: Source rows that are wrong somewhere.
        ids: What earlier target tables have become, by source row.
        now: Tables that may have changed since their version, as they are now.
    """
    table = target_table(target.table, now)
    rows, origins = target.rows, target.origin
    if left_out:
        kept = [place for place, origin in enumerate(origins) if origin not in left_out]
        rows = [rows[place] for place in kept]
        origins = [origins[place] for place in kept]
    if not is_elsewhere(table):
        rows = bulk.stored(table, target.columns, rows)
    for parent in target.references.values():
        known = ids[parent]
        rows = list(map(operator.add, rows, ((known[origin],) for origin in origins)))
    columns = (*target.columns, *target.references)
    places = [columns.index(name) for name in natural_key(table)]
    keys: Sequence[Row] = (
        list(map(operator.itemgetter(*places), rows))
        if len(places) > 1
        else [(row[places[0]],) for row in rows]
    )
    # In a dry run keys that refer to rows yet to be created are all alike.
    if len(set(keys)) == len(keys) or any(None in key for key in keys):
        return Incoming(table, columns, rows, origins, keys)
    return _folded(table, columns, rows, origins, keys)


def _folded(
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[Row],
    origins: Sequence[int],
    keys: Sequence[Row],
) -> Incoming:
    by_key: dict[Row, tuple[Row, int]] = {}
    shared: list[tuple[int, int]] = []
    for row, origin, key in zip(rows, origins, keys, strict=True):
        earlier, first = by_key.setdefault(key, (row, origin))
        if earlier is not row:
            merged = tuple(
                old if new is None else new for old, new in zip(earlier, row, strict=True)
            )
            by_key[key] = (merged, first)
            shared.append((origin, first))
    return Incoming(
        table,
        columns,
        [row for row, _ in by_key.values()],
        [first for _, first in by_key.values()],
        list(by_key),
        shared,
    )


@dataclass(frozen=True)
class _Sorted:
    """Places of rows by what is to be done with them."""

    new: list[int]
    changes: list[tuple[int, UpdatedImage]]
    ids: dict[int, Identity]

    def met(
        self, incoming: Incoming, new_ids: Sequence[Identity | None], lines: Sequence[int]
    ) -> Met:
        origins = incoming.origins
        new = [origins[place] for place in self.new]
        names, values = of_new(incoming)
        assigned = zip((lines[origin] for origin in new), new_ids, strict=True)
        images = TableImages(
            table_name(incoming.table),
            (*incoming.columns, *names),
            [
                (*own, *incoming.rows[place], *values)
                for own, place in zip(assigned, self.new, strict=True)
            ],
            [image for _, image in self.changes],
        )
        met = Met(
            images,
            ids=dict(zip(new, new_ids, strict=True)),
            created=set(new),
            changed={origins[place] for place, _ in self.changes},
        )
        met.ids.update((origins[place], id) for place, id in self.ids.items())
        for origin, first in incoming.shared:
            met.ids[origin] = met.ids[first]
            for places in (met.created, met.changed):
                if first in places:
                    places.add(origin)
        return met


async def _find(
    connection: AsyncConnection, incoming: Incoming, *, lock: bool
) -> dict[Row, tuple[Identity, Row]]:
    """Rows that are there, by natural key: identity, and the columns."""
    found = await bulk.find(
        connection,
        incoming.table,
        natural_key(incoming.table),
        incoming.keys,
        incoming.columns,
        lock=lock,
    )
    return {incoming.keys[int(place)]: identity_from(incoming.table, row) for place, *row in found}


def _compare(
    incoming: Incoming, lines: Sequence[int], found: Mapping[Row, tuple[Identity, Row] | None]
) -> _Sorted:
    if not found:
        return _Sorted(list(range(len(incoming.rows))), [], {})
    new: list[int] = []
    changes: list[tuple[int, UpdatedImage]] = []
    ids: dict[int, Identity] = {}
    for place, (key, row) in enumerate(zip(incoming.keys, incoming.rows, strict=True)):
        there = found.get(key)
        if there is None:
            new.append(place)
            continue
        ids[place], before = there
        if before == row:
            continue
        differs = compress(count(), map(operator.ne, before, row))
        columns = [n for n in differs if row[n] is not None]
        if columns:
            image = UpdatedImage(
                line=lines[incoming.origins[place]],
                id=ids[place],
                columns=columns,
                before=[before[n] for n in columns],
                after=[row[n] for n in columns],
            )
            changes.append((place, image))
    return _Sorted(new, changes, ids)


async def _update(
    connection: AsyncConnection,
    incoming: Incoming,
    found: Mapping[Row, tuple[Identity, Row]],
    sorted_: _Sorted,
    run: str,
) -> None:
    """Set every column that any of the rows changes; where a row does not, to what it was."""
    touched = sorted({n for _, image in sorted_.changes for n in image.columns})
    columns = [incoming.columns[n] for n in touched]
    stamped = is_stamped(incoming.table)
    rows: list[Row] = []
    for place, image in sorted_.changes:
        (_, before), row = found[incoming.keys[place]], incoming.rows[place]
        values = (before[n] if row[n] is None else row[n] for n in touched)
        stamp = (run, image.line) if stamped else ()
        rows.append((*parts_of(image.id), *values, *stamp))
    if stamped:
        columns += ["source_task", "source_line"]
    await bulk.update(connection, incoming.table, columns, rows)


async def write_chunk(
    connection: AsyncConnection,
    uuid: str,
    chunk: SheetChunk,
    targets: TargetTables,
    *,
    dry_run: bool,
) -> SheetMark:
    """Write a chunk; one at or before the mark, or of an import that has ended, is left alone."""
    opened = await lock_known(connection, uuid)
    mark = opened.mark
    if opened.ended or opened.purged or not _is_next(chunk, mark):
        return mark
    if not dry_run:
        await acquire_organisation_lock(connection, opened.row.organisation_id)
    await bulk.expect_lookups(connection)
    run = opened.row.workflow_id
    declared = await known_table(connection, opened.row.import_type, opened.row.type_digest)
    now = await tables_now(connection, declared)
    faults = await find_faults(connection, chunk, now)
    ruled = declared or own_type(opened.row.import_type)
    for place, found in (await broken_in(connection, targets, ruled, chunk, faults, now)).items():
        faults[place] = tuple(map(_in_words, found))
    if declared is not None and declared.target is not None:
        done = await _write_elsewhere(targets, declared, chunk, faults, uuid, dry_run=dry_run)
    else:
        done = await _write_targets(connection, chunk, faults, now, run, dry_run=dry_run)
    await keep_differences(connection, opened, done.images)
    kept = replacing.noted(declared, chunk, done.images, dry_run=dry_run)
    await _keep_images(connection, opened, chunk, kept)
    counts = await keep_results(connection, opened, chunk, faults, done)
    parked = await park(connection, opened, chunk)
    more: dict[str, Any] = {"parked": parked}
    if chunk.found:
        count = "add" if chunk.round == 0 else "keep"
        await value_store.add_values(connection, opened, chunk.found, count=count)
        more |= await counted_values(connection, opened)
    return await _advance(connection, opened, chunk, counts, more)


def _is_next(chunk: SheetChunk, mark: SheetMark) -> bool:
    """Whether this is the chunk that the mark waits for.

    Raises:
        ValueError: Chunks between the two are missing: a mistake of the caller.
    """
    if chunk.round < mark.round or (chunk.round == mark.round and chunk.number < mark.chunk):
        return False
    if chunk.round == mark.round and mark.finished:
        return False
    expected = mark.chunk if chunk.round == mark.round else 0
    if chunk.number > expected or (chunk.round > mark.round and not mark.finished):
        raise ValueError(
            f"chunk {chunk.number} of round {chunk.round} comes before chunk {mark.chunk} "
            f"of round {mark.round} is written"
        )
    return True


async def _write_targets(
    connection: AsyncConnection,
    chunk: SheetChunk,
    faults: Mapping[int, Any],
    now: Mapping[str, Table],
    run: str,
    *,
    dry_run: bool,
) -> Done:
    done = Done()
    ids: dict[str, dict[int, Identity | None]] = {}
    fresh: dict[str, set[Identity | None]] = {}
    for target in chunk.targets:
        incoming = incoming_rows(target, faults, ids, now)
        met = Met(TableImages(target.table, incoming.columns))
        if incoming.rows:
            if target.strategy == "append":
                incoming = await _appended(connection, incoming, chunk.lines)
            incoming, beside = await _hooked(connection, incoming, chunk.lines)
            if beside is not None and beside.rows:
                first = await meet(connection, beside, chunk.lines, {}, run, dry_run=dry_run)
                done.images.append(first.images)
                done.touched |= first.changed
            new = {name: fresh[table] for name, table in target.references.items()}
            met = await meet(
                *(connection, incoming, chunk.lines, new, run),
                creates_only=target.strategy == "create_only",
                dry_run=dry_run,
            )
            held = incoming.keys if target.strategy == "replace" else ()
            done.images.append(replace(met.images, held=held))
        ids.setdefault(target.table, {}).update(met.ids)
        fresh.setdefault(target.table, set()).update(met.ids[origin] for origin in met.created)
        done.touched |= met.created | met.changed
        done.kept |= met.kept
        if target.table == chunk.main:
            done.created |= met.created
    return done


async def _write_elsewhere(
    targets: TargetTables,
    declared: DeclaredType,
    chunk: SheetChunk,
    faults: dict[int, tuple[Problem, ...]],
    uuid: str,
    *,
    dry_run: bool,
) -> Done:
    """Write rows where their type says; those that a table of a team refuses are faults."""
    (target,) = chunk.targets
    incoming = incoming_rows(target, faults, {})
    if not incoming.rows:
        return Done()
    if declared.target is None or declared.target.table is None:
        met = elsewhere.put_aside(incoming, chunk.lines)
    else:
        step = elsewhere.step_of(uuid, chunk, incoming)
        met = await elsewhere.meet_there(
            *(targets, declared, incoming, chunk.lines, step),
            strategy="merge" if target.strategy == "replace" else target.strategy,
            dry_run=dry_run,
        )
    if replacing.replaces(declared):
        met.images.append(TableImages(target.table, (), held=incoming.keys))
    for origin, problem in met.refused.items():
        faults[origin] = (_in_words(problem),)
    return Done(met.created, met.created | met.changed, met.kept, met.images)


async def _keep_images(
    connection: AsyncConnection,
    opened: LockedImport,
    chunk: SheetChunk,
    kept: Sequence[TableImages],
) -> None:
    if not kept:
        return
    packed = await asyncio.to_thread(pack, kept)
    columns = ("import_id", "round", "chunk", "images", "undone")
    row = (opened.id, chunk.round, chunk.number, packed, False)
    await bulk.insert(connection, spreadsheet_journal, columns, [row])


async def _advance(
    connection: AsyncConnection,
    opened: LockedImport,
    chunk: SheetChunk,
    counts: RowCounts,
    more: Mapping[str, Any],
) -> SheetMark:
    before = opened.mark.counts
    total = RowCounts(**{name: getattr(before, name) + getattr(counts, name) for name in COUNTS})
    mark = SheetMark(
        round=chunk.round,
        chunk=chunk.number + 1,
        cursor=chunk.cursor,
        offset=chunk.offset,
        counts=total,
    )
    await save(
        connection,
        opened,
        {
            "mark_round": mark.round,
            "mark_chunk": mark.chunk,
            "mark_cursor": mark.cursor,
            "mark_offset": mark.offset,
            "round_ended": False,
            **total.model_dump(),
            **more,
        },
    )
    return mark
