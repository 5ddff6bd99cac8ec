"""Changes of tables that other teams keep, taken back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy.exc
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.foreign import ForeignTable, is_refusal, quoted, rows_of
from adapters.database.foreign_rows import CHANGED, Image, Texts, packed, refused_row, unpacked
from adapters.database.foreign_sieve import Said
from adapters.ports.errors import Denied

_TOGETHER: Final = 1_000
"""Rows that one statement takes back."""
_DELETED: Final = "was deleted since"


@dataclass
class TakenBack:
    """What became of changes that were to be undone."""

    restored: int = 0
    conflicts: list[tuple[Texts, str]] = field(default_factory=list[tuple[Texts, str]])
    """Keys of rows that stay as they are, and why."""

    def add(self, other: "TakenBack") -> None:
        """Add what became of some more changes."""
        self.restored += other.restored
        self.conflicts += other.conflicts

    def packed(self) -> bytes:
        """It as the side table keeps it."""
        return packed([self.restored, self.conflicts])

    @classmethod
    def unpacked(cls, content: bytes) -> Self:
        """What was packed."""
        restored, conflicts = unpacked(content)
        return cls(restored, [(tuple(key), reason) for key, reason in conflicts])


class _Unclear(Exception):
    """Which rows of a group went in cannot be told."""


async def take_back(
    connection: AsyncConnection, table: ForeignTable, key: Sequence[str], images: Sequence[Image]
) -> TakenBack:
    """Undo changes, the newest first, of rows that are still as the import left them.

    Rows go together. If their server refuses a group, its halves are tried, down to single rows.

    Args:
        connection: In a transaction.
        table: Where they are.
        key: Columns of the key.
        images: The changes, the oldest first.

    Raises:
        Denied: The table lacks a column.
    """
    for name in dict.fromkeys((*key, *(name for each in images for name in each.columns))):
        if name not in table.columns:
            raise Denied(
                f"{table.title} has no column {name} any more, and rows cannot be taken back "
                "without it; rename it back or add it again, and retry"
            )
    done = TakenBack()
    for group in _groups(reversed(images)):
        await _halves(_Group(connection, table, key, group), done)
    return done


def _groups(images: Iterable[Image]) -> Iterator[Sequence[Image]]:
    """Images in their order; those of a group are alike, and each is of another row."""
    group, keys = list[Image](), set[Texts]()
    for image in images:
        is_full = len(group) >= _TOGETHER or image.key in keys
        if group and (is_full or _kind_of(image) != _kind_of(group[0])):
            yield group
            group, keys = list[Image](), set[Texts]()
        group.append(image)
        keys.add(image.key)
    if group:
        yield group


def _kind_of(image: Image) -> tuple[tuple[str, ...], bool, bool]:
    return image.columns, image.before is None, image.after is None


@dataclass(frozen=True)
class _Group:
    """Changes of one kind that are undone together."""

    connection: AsyncConnection
    table: ForeignTable
    key: Sequence[str]
    images: Sequence[Image]

    def part(self, images: Sequence[Image]) -> "_Group":
        return _Group(self.connection, self.table, self.key, images)

    async def undo(self) -> Sequence[str | None]:
        """Undo the changes; of each row, why it stays.

        Raises:
            _Unclear: See the class.
        """
        first, sql = self.images[0], self.table.sql
        if first.after is None:
            return await self._put_back()
        if first.before is None:
            query = f"DELETE FROM {sql} t USING"
        else:
            sets = (f"{quoted(name)} = {self._value(name, 'b')}" for name in first.columns)
            query = f"UPDATE {sql} t SET {', '.join(sets)} FROM"
        query += f" {self._source} WHERE {self._meets}"
        # By the key alone at first, so that an index finds the row.
        for n, name in enumerate(first.columns):
            query += f" AND t.{quoted(name)}::text IS NOT DISTINCT FROM s.a{n}"
        undone = await self._places(f"{query} RETURNING s.nth")
        there = undone
        if len(undone) < len(self.images):
            there = await self._places(
                f"SELECT s.nth FROM {self._source} JOIN {sql} t ON {self._meets}"
            )
        # Of a row that the import made nothing is left to do if it is gone.
        gone = None if first.before is None else _DELETED
        return [
            None if n in undone else CHANGED if n in there else gone
            for n in range(1, len(self.images) + 1)
        ]

    async def _put_back(self) -> Sequence[str | None]:
        columns = self.images[0].columns
        names = ", ".join(map(quoted, columns))
        values = ", ".join(self._value(name, "b") for name in columns)
        keys = ", ".join(f"t.{quoted(name)}::text" for name in self.key)
        query = (
            f"INSERT INTO {self.table.sql} AS t ({names}) OVERRIDING SYSTEM VALUE"
            f" SELECT {values} FROM {self._source} ORDER BY s.nth"
            f" ON CONFLICT DO NOTHING RETURNING {keys}"
        )
        made = {tuple(row) for row in await rows_of(self.connection, query, *self._given)}
        if len(self.images) == 1:
            return [None if made else CHANGED]
        back = [None if image.key in made else CHANGED for image in self.images]
        if back.count(None) != len(made):
            # A trigger of theirs has made other keys of them.
            raise _Unclear
        return back

    async def _places(self, query: str) -> set[int]:
        return {nth for (nth,) in await rows_of(self.connection, query, *self._given)}

    @property
    def _meets(self) -> str:
        columns = self.table.columns
        return " AND ".join(
            f"t.{quoted(name)} = {columns[name].value(f's.k{n}')}"
            for n, name in enumerate(self.key)
        )

    def _value(self, name: str, of: str) -> str:
        place = self.images[0].columns.index(name)
        return self.table.columns[name].value(f"s.{of}{place}")

    @property
    def _source(self) -> str:
        """The changes as something to select from."""
        count = len(self.images[0].columns)
        names = [f"k{n}" for n in range(len(self.key))]
        names += [f"{of}{n}" for of in ("b", "a") for n in range(count)]
        arrays = ", ".join(f"${n}::text[]" for n in range(1, len(names) + 1))
        return f"unnest({arrays}) WITH ORDINALITY AS s ({', '.join(names)}, nth)"

    @property
    def _given(self) -> Sequence[list[str | None]]:
        nothing = (None,) * len(self.images[0].columns)
        rows = [(*i.key, *(i.before or nothing), *(i.after or nothing)) for i in self.images]
        return [list(column) for column in zip(*rows, strict=True)]


async def _halves(group: _Group, done: TakenBack) -> None:
    """Undo a group, or its halves if their server refuses it."""
    reasons: Sequence[str | None]
    images = group.images
    try:
        async with group.connection.begin_nested():
            reasons = await group.undo()
    except (sqlalchemy.exc.DBAPIError, _Unclear) as error:
        if not isinstance(error, _Unclear) and not is_refusal(error):
            raise
        if len(images) > 1:
            half = len(images) // 2
            await _halves(group.part(images[:half]), done)
            await _halves(group.part(images[half:]), done)
            return
        reasons = [refused_row(0, Said.of(error), group.table).reason]
    for image, reason in zip(images, reasons, strict=True):
        if reason is None:
            done.restored += 1
        else:
            done.conflicts.append((image.key, reason))
