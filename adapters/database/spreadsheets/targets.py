"""How rows of a chunk meet the rows that are there, one target table at a time.

A row is found by its natural key. An absent value leaves what is there; a row that would change
nothing is not written.
"""

import operator
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from typing import Any

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, Row
from adapters.database.models.people import TARGETS
from adapters.database.spreadsheets.before_images import TableImages, UpdatedImage
from adapters.database.spreadsheets.target_tables import target_table
from domain.spreadsheets.records import TargetRows


@dataclass(frozen=True)
class Incoming:
    """Rows of one target table, each with another natural key.

    Attributes:
        table: Where they go.
        columns: Their columns, references included.
        rows: Their values, in the form the database keeps them.
        origins: Place in the chunk of each row's source.
        keys: Their natural keys.
        shared: Places of further sources of a row, with the place in `origins`.
    """

    table: Table
    columns: tuple[str, ...]
    rows: Sequence[Row]
    origins: Sequence[int]
    keys: Sequence[Row]
    shared: Sequence[tuple[int, int]] = ()

    def take(self, places: Sequence[int]) -> "Incoming":
        """The rows at these places."""
        if len(places) == len(self.rows):
            return self
        return Incoming(
            self.table,
            self.columns,
            [self.rows[place] for place in places],
            [self.origins[place] for place in places],
            [self.keys[place] for place in places],
        )


@dataclass
class Met:
    """Outcome of the rows of one target table.

    Attributes:
        ids: Place of a source row in the chunk to the id of its row; None: it would be created.
        created: Places of the source rows whose row was created.
        changed: Places of the source rows whose row was changed.
        images: What was done to the table.
    """

    images: TableImages
    ids: dict[int, int | None] = field(default_factory=dict[int, int | None])
    created: set[int] = field(default_factory=set[int])
    changed: set[int] = field(default_factory=set[int])


async def meet(
    connection: AsyncConnection,
    bulk: BulkEngine,
    incoming: Incoming,
    lines: Sequence[int],
    fresh: Mapping[str, Container[int | None]],
    *,
    dry_run: bool,
) -> Met:
    """Create rows of new keys and change those that differ.

    Args:
        connection: In a transaction.
        bulk: Of this database.
        incoming: The rows.
        lines: Line of each source row of the chunk.
        fresh: Column of a reference to ids that were just created: nothing refers to them yet.
        dry_run: Find out only.
    """
    known = _perhaps_known(incoming, fresh)
    found = await _find(connection, bulk, incoming.take(known), lock=False) if known else {}
    sorted_ = _compare(incoming, lines, found)
    if sorted_.changes and bulk.locks and not dry_run:
        # They may be changed meanwhile.
        again = [place for place, _ in sorted_.changes]
        found |= dict.fromkeys((incoming.keys[place] for place in again), None)
        found |= await _find(connection, bulk, incoming.take(again), lock=True)
        sorted_ = _compare(incoming, lines, found)
    if dry_run:
        return sorted_.met(incoming, [None] * len(sorted_.new), lines)
    ids: Sequence[int] = ()
    if sorted_.new:
        ids = await bulk.reserve(connection, incoming.table, len(sorted_.new))
        rows = [incoming.rows[place] for place in sorted_.new]
        records = list(map(operator.add, zip(ids, strict=True), rows))
        await bulk.insert(connection, incoming.table, ("id", *incoming.columns), records)
    if sorted_.changes:
        await _update(connection, bulk, incoming, found, sorted_)
    return sorted_.met(incoming, ids, lines)


def _perhaps_known(incoming: Incoming, fresh: Mapping[str, Container[int | None]]) -> Sequence[int]:
    """Places of rows whose natural key does not refer to a row just created."""
    places: Sequence[int] = range(len(incoming.keys))
    for part, name in enumerate(TARGETS[incoming.table.name]):
        if name in fresh:
            new = fresh[name]
            places = [place for place in places if incoming.keys[place][part] not in new]
    return places


def incoming_rows(
    bulk: BulkEngine,
    target: TargetRows,
    left_out: Mapping[int, Any],
    ids: Mapping[str, Mapping[int, int | None]],
) -> Incoming:
    """The rows of a target that are to be written, with their references; of several with the
    same natural key one, in which later values count.

    Args:
        bulk: Of this database.
        target: What the chunk brings for the table.
        left_out: Source rows that are wrong somewhere.
        ids: What earlier target tables have become, by source row.
    """
    table = target_table(target.table)
    rows, origins = target.rows, target.origin
    if left_out:
        kept = [place for place, origin in enumerate(origins) if origin not in left_out]
        rows = [rows[place] for place in kept]
        origins = [origins[place] for place in kept]
    rows = bulk.stored(table, target.columns, rows)
    for parent in target.references.values():
        known = ids[parent]
        rows = list(map(operator.add, rows, ((known[origin],) for origin in origins)))
    columns = (*target.columns, *target.references)
    pick = operator.itemgetter(*(columns.index(name) for name in TARGETS[table.name]))
    keys: Sequence[Row] = list(map(pick, rows))
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
    ids: dict[int, int]

    def met(self, incoming: Incoming, new_ids: Sequence[int | None], lines: Sequence[int]) -> Met:
        origins = incoming.origins
        new = [origins[place] for place in self.new]
        assigned = zip((lines[origin] for origin in new), new_ids, strict=True)
        images = TableImages(
            incoming.table.name,
            incoming.columns,
            list(map(operator.add, assigned, (incoming.rows[place] for place in self.new))),
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
    connection: AsyncConnection, bulk: BulkEngine, incoming: Incoming, *, lock: bool
) -> dict[Row, Any]:
    """Rows that are there, by natural key: id, then the columns."""
    found = await bulk.find(
        connection,
        incoming.table,
        TARGETS[incoming.table.name],
        incoming.keys,
        incoming.columns,
        lock=lock,
    )
    return {incoming.keys[int(row[0])]: tuple(row)[1:] for row in found}


def _compare(incoming: Incoming, lines: Sequence[int], found: Mapping[Row, Any]) -> _Sorted:
    if not found:
        return _Sorted(list(range(len(incoming.rows))), [], {})
    new: list[int] = []
    changes: list[tuple[int, UpdatedImage]] = []
    ids: dict[int, int] = {}
    for place, (key, row) in enumerate(zip(incoming.keys, incoming.rows, strict=True)):
        there = found.get(key)
        if there is None:
            new.append(place)
            continue
        ids[place] = there[0]
        before = there[1:]
        if before == row:
            continue
        differs = compress(count(), map(operator.ne, before, row))
        columns = [n for n in differs if row[n] is not None]
        if columns:
            image = UpdatedImage(
                line=lines[incoming.origins[place]],
                id=there[0],
                columns=columns,
                before=[before[n] for n in columns],
                after=[row[n] for n in columns],
            )
            changes.append((place, image))
    return _Sorted(new, changes, ids)


async def _update(
    connection: AsyncConnection,
    bulk: BulkEngine,
    incoming: Incoming,
    found: Mapping[Row, Any],
    sorted_: _Sorted,
) -> None:
    """Set every column that any of the rows changes; where a row does not, to what it was."""
    touched = sorted({n for _, image in sorted_.changes for n in image.columns})
    rows: list[Row] = []
    for place, image in sorted_.changes:
        before, row = found[incoming.keys[place]][1:], incoming.rows[place]
        values = (before[n] if row[n] is None else row[n] for n in touched)
        rows.append((image.id, *values))
    columns = [incoming.columns[n] for n in touched]
    await bulk.update(connection, incoming.table, columns, rows)
