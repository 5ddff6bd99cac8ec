"""Rows of a chunk on their way, and what it has done, kept so that it can be taken back.

The values are those of the database's own form, as JSON: see `bulk.parsed`.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from pydantic_core import from_json, to_json
from sqlalchemy import Table

from activities.spreadsheets.import_rows import (
    defaults_of,
    is_elsewhere,
    natural_key,
    target_table,
)
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.rows import Row
from adapters.database.models.base import identity_of, is_stamped

_FAST: Final = 1
"""Level of compression: the next one takes twice as long for a tenth of the bytes."""


Identity = Any
"""What tells a row of a table from the others: its id or key, a tuple if the key has parts."""


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


def of_new(incoming: Incoming) -> tuple[tuple[str, ...], Row]:
    """Columns of a declared type that the file lacks and new rows have a default in; these."""
    table = incoming.table
    more = defaults_of(table, incoming.columns) if is_stamped(table) else {}
    [values] = bulk.stored(table, tuple(more), [tuple(more.values())])
    return tuple(more), values


def with_stored_words(incoming: Incoming, found: Mapping[Row, Any]) -> Incoming:
    """The rows, with what a column of JSON holds already: later files add to it."""
    places = bulk.json_places(incoming.table, incoming.columns)
    if not places:
        return incoming
    rows = [list(row) for row in incoming.rows]
    for key, row in zip(incoming.keys, rows, strict=True):
        there = found.get(key)
        for n in places:
            if row[n] is not None and there is not None and there[1][n] is not None:
                row[n] = bulk.canonical_json({**from_json(there[1][n]), **from_json(row[n])})
    return replace(incoming, rows=list(map(tuple, rows)))


class UpdatedImage(NamedTuple):
    """One row before and after.

    Attributes:
        line: Line of the file that changed it.
        id: The row.
        columns: Places of the columns that changed.
        before: Their values before.
        after: Their values after.
    """

    line: int
    id: Identity
    columns: Sequence[int]
    before: Sequence[Any]
    after: Sequence[Any]


@dataclass(frozen=True, slots=True)
class TableImages:
    """What one step of a chunk has done to one table.

    Attributes:
        table: The table.
        columns: The columns that were written.
        created: Line, identity and values of each row that was inserted.
        updated: The rows that were changed.
        deleted: Identity and values of each row that was removed.
        held: Natural keys of rows that go in or are there, if those of others are removed.
        left: First parts of the keys of rows that were left out, if others are removed.
    """

    table: str
    columns: tuple[str, ...]
    created: Sequence[tuple[Any, ...]] = ()
    updated: Sequence[UpdatedImage] = field(default_factory=tuple[UpdatedImage, ...])
    deleted: Sequence[tuple[Any, ...]] = ()
    held: Sequence[Row] = ()
    left: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done, and nothing is to be kept."""
        return not (self.created or self.updated or self.deleted or self.held or self.left)


def pack(images: Sequence[TableImages]) -> bytes:
    """Images as compressed JSON, in the order in which they came about."""
    packed = [
        {
            "table": each.table,
            "columns": each.columns,
            "created": each.created,
            "updated": each.updated,
            "deleted": each.deleted,
            "held": each.held,
            "left": each.left,
        }
        for each in images
    ]
    return zlib.compress(to_json(packed), _FAST)


def unpack(packed: bytes, now: Mapping[str, Table] = MappingProxyType({})) -> list[TableImages]:
    """Images from compressed JSON.

    Args:
        packed: The JSON.
        now: Tables that may have changed since their version, as they are now.
    """
    found: list[TableImages] = []
    for each in from_json(zlib.decompress(packed)):
        table = target_table(each["table"], now)
        updated = [UpdatedImage(*row) for row in each["updated"]]
        ids = _identities(table, [row.id for row in updated])
        created, deleted = each["created"], each.get("deleted", ())
        made = _identities(table, [row[1] for row in created])
        gone = _identities(table, [row[0] for row in deleted])
        found.append(
            TableImages(
                table=each["table"],
                columns=tuple(each["columns"]),
                created=[(row[0], id, *row[2:]) for row, id in zip(created, made, strict=True)],
                updated=[row._replace(id=id) for row, id in zip(updated, ids, strict=True)],
                deleted=[(id, *row[1:]) for row, id in zip(deleted, gone, strict=True)],
                held=_parsed(table, natural_key(table), each.get("held", ())),
                left=tuple(each.get("left", ())),
            )
        )
    return found


def renamed(images: TableImages, names: Mapping[str, str]) -> TableImages:
    """Images by the present names of their columns.

    A column that was dropped since has no values any more.

    Args:
        images: As they were kept.
        names: Names at that time to present ones; none: of a table that keeps its columns.
    """
    if not names:
        return images
    there = [place for place, name in enumerate(images.columns) if name in names]
    places = {old: new for new, old in enumerate(there)}

    def rows(found: Sequence[tuple[Any, ...]], before: int) -> Sequence[tuple[Any, ...]]:
        return [(*row[:before], *(row[before + place] for place in there)) for row in found]

    updated: list[UpdatedImage] = []
    for image in images.updated:
        kept = [n for n, place in enumerate(image.columns) if place in places]
        columns, before, after = (
            [values[n] for n in kept] for values in (image.columns, image.before, image.after)
        )
        updated.append(
            image._replace(columns=[places[n] for n in columns], before=before, after=after)
        )
    return TableImages(
        images.table,
        tuple(names[images.columns[place]] for place in there),
        rows(images.created, 2),
        updated,
        rows(images.deleted, 1),
    )


def _identities(table: Table, values: Sequence[Any]) -> Sequence[Identity]:
    """Identities from their JSON."""
    if is_elsewhere(table):
        return list(map(tuple, values))
    names = identity_of(table)
    return (
        bulk.parsed(table, names[0], values) if len(names) == 1 else _parsed(table, names, values)
    )


def _parsed(table: Table, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows of some columns from their JSON."""
    parts = zip(*rows, strict=True) if rows else ((),) * len(names)
    parsed = (bulk.parsed(table, name, part) for name, part in zip(names, parts, strict=True))
    return list(zip(*parsed, strict=True))


def parts_of(identity: Identity) -> tuple[Any, ...]:
    """An identity as the values of its columns."""
    return cast("Row", identity) if isinstance(identity, tuple) else (identity,)


def identity_from(table: Table, row: Sequence[Any]) -> tuple[Identity, tuple[Any, ...]]:
    """Identity and values of a row as `bulk.find` returns it, without its place."""
    count = len(identity_of(table))
    return row[0] if count == 1 else tuple(row[:count]), tuple(row[count:])
