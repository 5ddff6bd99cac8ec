"""Rows of tables that other teams keep: written, removed, taken back, and read.

Values travel as text, and their server reads them as it would read a literal.
"""

import json
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, Self

import sqlalchemy.exc
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import foreign_sieve
from adapters.database.foreign import (
    ForeignColumn,
    ForeignTable,
    is_refusal,
    quoted,
    rows_of,
    state_of,
)
from adapters.database.foreign_sieve import UNIQUE, Said
from adapters.ports.errors import Denied

Strategy = Literal["merge", "append", "update_only", "create_only"]
_REFERS: Final = "23503"
_BOUND: Final = "\1g"
"""Stands for a parameter until colons, which names may have, are no parameters any more."""
Texts = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """A row before and after a change, as texts.

    Attributes:
        key: Its key, as it is stored.
        columns: What `before` and `after` are values of.
        before: None: the row was not there.
        after: None: the row is gone.
        place: Of the row that did it, among those that were given; None: it was removed.
    """

    key: Texts
    columns: tuple[str, ...]
    before: Texts | None
    after: Texts | None
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that their table did not take.

    Attributes:
        place: Among the rows that were given.
        column: That their server named.
        reason: What it said.
    """

    place: int
    column: str | None
    reason: str


_BLOCK: Final = 5_000
"""Images that are packed together."""
_OF_BLOCKS: Final = b"B"
"""Begins what holds blocks; an earlier release wrote all in one."""
_LENGTH: Final = 4
"""Bytes before each block."""


@dataclass
class Written:
    """What became of some rows.

    Attributes:
        blocks: Images of rows before, packed; the oldest first.
        images: The other ones.
        kept: Places of rows that differ from theirs, which the strategy leaves as it is.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    refused: list[Refused] = field(default_factory=list[Refused])
    images: list[Image] = field(default_factory=list[Image])
    kept: list[int] = field(default_factory=list[int])
    blocks: list[bytes] = field(default_factory=list[bytes])

    def add(
        self, other: "Written", lines: Sequence[int] = (), names: Mapping[str, str] | None = None
    ) -> None:
        """Add what became of some more rows, of which no images are packed.

        Args:
            other: Of these rows.
            lines: What to call each of their places; none: as they are.
            names: What to call columns.
        """
        self.created += other.created
        self.updated += other.updated
        self.unchanged += other.unchanged
        self.deleted += other.deleted
        self.images += [
            replace(each, place=lines[each.place]) if lines and each.place is not None else each
            for each in other.images
        ]
        self.kept += [lines[place] for place in other.kept] if lines else other.kept
        for each in other.refused:
            column = None if each.column is None else (names or {}).get(each.column, each.column)
            place = lines[each.place] if lines else each.place
            self.refused.append(Refused(place, column, each.reason))

    def pack_full(self, block: int = _BLOCK) -> None:
        """Pack images of which there are enough for a block: they take less room then."""
        while len(self.images) >= block:
            self.blocks.append(pack_images(self.images[:block]))
            del self.images[:block]

    def every_block(self) -> Sequence[bytes]:
        """All images, packed; the oldest first."""
        return [*self.blocks, *([pack_images(self.images)] if self.images else ())]

    def every_image(self) -> Sequence[Image]:
        """All images, the oldest first."""
        return [*(each for block in self.blocks for each in unpack_images(block)), *self.images]

    def packed(self) -> bytes:
        """It as the side table keeps it."""
        counts = (self.created, self.updated, self.unchanged, self.deleted)
        refused = [(each.place, each.column, each.reason) for each in self.refused]
        parts = (packed([counts, refused, self.kept]), *self.every_block())
        return _OF_BLOCKS + b"".join(len(each).to_bytes(_LENGTH) + each for each in parts)

    @classmethod
    def unpacked(cls, content: bytes) -> Self:
        """What was packed."""
        if content.startswith(_OF_BLOCKS):
            head, *blocks = _parts(content)
            counts, refused, kept = unpacked(head)
            images = list[Image]()
        else:
            counts, refused, listed, kept = unpacked(content)
            blocks, images = [], [*map(_image, listed)]
        created, updated, unchanged, deleted = counts
        rejected = [Refused(*each) for each in refused]
        return cls(created, updated, unchanged, deleted, rejected, images, kept, blocks)


def _parts(content: bytes) -> Iterator[bytes]:
    place = len(_OF_BLOCKS)
    while place < len(content):
        begin = place + _LENGTH
        place = begin + int.from_bytes(content[place:begin])
        yield content[begin:place]


def pack_images(images: Sequence[Image]) -> bytes:
    """Images as bytes."""
    return packed(_listed(images))


def unpack_images(content: bytes) -> Sequence[Image]:
    """What was packed."""
    return [*map(_image, unpacked(content))]


def packed(content: Any) -> bytes:
    """Plain values as bytes."""
    return zlib.compress(json.dumps(content, ensure_ascii=False).encode())


def unpacked(content: bytes) -> Any:
    """What was packed."""
    return json.loads(zlib.decompress(content))


def _listed(images: Sequence[Image]) -> Any:
    return [(each.key, each.columns, each.before, each.after, each.place) for each in images]


def _image(parts: Sequence[Any]) -> Image:
    key, columns, before, after, place = parts
    return Image(
        tuple(key),
        tuple(columns),
        None if before is None else tuple(before),
        None if after is None else tuple(after),
        place,
    )


def text_of_value(value: Any, column: ForeignColumn) -> str | None:
    """A value as their server reads it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() if column.category == "T":
            return f"{value} milliseconds"
        case Decimal():
            return format(value, "f")
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return str(value)


def refused_row(place: int, said: Said, table: ForeignTable) -> Refused:
    """A row, with the column that their server's words are about."""
    # Others show the whole row, which the report has already.
    detail = said.detail.strip() if said.state in (UNIQUE, _REFERS) else ""
    columns: Sequence[str] = ()
    if said.table in ("", table.name):
        named = table.constraints.get(said.constraint, ())
        columns = (said.column,) if said.column else named
    if not detail and len(columns) > 1:
        detail = f"columns {', '.join(columns)}"
    line = (said.message.strip() or said.state).splitlines()[0]
    reason = f"{line} ({detail})" if detail else line
    return Refused(place, columns[0] if len(columns) == 1 else None, reason[:500])


class _Suppressed(Exception):
    """Their table took fewer rows than it was given."""


_SUPPRESSED: Final = "the table did not take the row: a trigger, rule or policy of it keeps it out"
_TWICE: Final = "has the key of an earlier row, as the table compares keys; remove one of them"
_THERE: Final = "there is a row of this key already; strategy 'append' changes none"
CHANGED: Final = "was changed since"
_MISSING: Final = "there is no row of this key to update; strategy 'update_only' creates none"


class RowWriter:
    """Writes rows of some columns into a table, by its key.

    Args:
        connection: In a transaction.
        table: Where they go.
        key: Columns of the key.
        columns: What rows have a value for, the key among them.
        strategy: How they meet rows that are there.
        blanks_keep: A value that is absent leaves what is there.
        defaults: Further columns that new rows have a value in.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        table: ForeignTable,
        key: Sequence[str],
        columns: Sequence[str],
        strategy: Strategy,
        *,
        blanks_keep: bool = False,
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._connection, self._table = connection, table
        self._key, self._names, self._strategy = tuple(key), tuple(columns), strategy
        self._columns = [table.columns[name] for name in columns]
        self._values = [name for name in columns if name not in key]
        self._blanks_keep = blanks_keep
        self._of_new = {
            name: column.value(f"{foreign_sieve.literal(written)}::text")
            for name, value in defaults.items()
            for column in [table.columns[name]]
            if (written := text_of_value(value, column)) is not None
        }
        self._written = set[Texts]()

    async def write(self, rows: Sequence[Sequence[Any]]) -> Written:
        """Write rows; those that their server refuses are part of the result.

        All of them go in together at first. If a row is refused, their server tries each, and the
        others go in together. A row may refer to another one of these, whatever their order.
        """
        texts = [
            tuple(text_of_value(v, c) for v, c in zip(row, self._columns, strict=True))
            for row in rows
        ]
        done, left = Written(), list(enumerate(texts))
        if await self._failure(left, done) is None:
            return done
        while left:
            found = await self._sieved(left)
            done.refused += [refused for refused, waits in found.values() if not waits]
            left = [row for row in left if row[0] not in found or found[row[0]][1]]
            ready = [row for row in left if row[0] not in found]
            waiting = [row for row in left if row[0] in found]
            # Rows may refer to each other in a circle.
            if waiting and await self._failure(left, done) is None:
                break
            if not ready:
                done.refused += [found[place][0] for place, _ in waiting]
                break
            await self._halves(ready, done)
            left = waiting[::-1]
        done.refused.sort(key=lambda each: each.place)
        return done

    async def _failure(
        self, rows: Sequence[tuple[int, Texts]], done: Written
    ) -> BaseException | None:
        """Write rows together; why their server refuses one of them, and nothing is written."""
        taken = Written()
        try:
            async with self._connection.begin_nested():
                await self._take(rows, taken)
        except (sqlalchemy.exc.DBAPIError, _Suppressed) as error:
            if not isinstance(error, _Suppressed) and not is_refusal(error):
                raise
            return error
        done.add(taken)
        self._written |= {image.key for image in taken.images}
        return None

    async def _sieved(
        self, rows: Sequence[tuple[int, Texts]]
    ) -> Mapping[int, tuple[Refused, bool]]:
        """Rows that are refused one by one, in this order, and whether they miss another row.

        Rows of which a column keeps not all pass.
        """
        found: dict[int, tuple[Refused, bool]] = {}
        for place, said in await foreign_sieve.tried(self._connection, self._sieve, rows):
            if said is None:
                found[place] = Refused(place, None, _SUPPRESSED), False
            else:
                found[place] = refused_row(place, said, self._table), said.state == _REFERS
        return found

    @cached_property
    def _sieve(self) -> str:
        """The procedure that tries rows."""
        names, values = self._inserted
        insert = f"INSERT INTO {self._table.sql} AS t ({names}) VALUES ({values})"
        update = f"UPDATE {self._table.sql} t SET {self._sets} WHERE {self._meets}"
        return foreign_sieve.procedure(
            lost=[sql for _, sql in self._lost],
            find=f"SELECT {self._same} INTO is_same FROM {self._table.sql} t"
            f" WHERE {self._meets}{self._lock}",
            insert=None if self._strategy == "update_only" else insert,
            update=update if self._changes and self._values else None,
            values={
                each.name: f"({self._value(each.name)})::{each.written}" for each in self._columns
            },
        )

    async def _halves(self, rows: Sequence[tuple[int, Texts]], done: Written) -> None:
        """Write rows that go in one by one, together or in halves."""
        failed = await self._failure(rows, done)
        if failed is not None and len(rows) == 1 and state_of(failed) == UNIQUE:
            # Another session may have made the row meanwhile: then it is there now.
            failed = await self._failure(rows, done)
        if failed is None:
            return
        if len(rows) > 1:
            half = len(rows) // 2
            await self._halves(rows[:half], done)
            await self._halves(rows[half:], done)
            return
        place = rows[0][0]
        done.refused.append(
            Refused(place, None, _SUPPRESSED)
            if isinstance(failed, _Suppressed)
            else refused_row(place, Said.of(failed), self._table)
        )

    async def _take(self, rows: Sequence[tuple[int, Texts]], done: Written) -> None:
        rows = await self._kept(rows, done)
        there = await self._there(rows)
        twice = {place for place, each in there.items() if each.key in self._written}
        done.refused += [Refused(place, None, _TWICE) for place in sorted(twice)]
        rows = [row for row in rows if row[0] not in twice]
        new = [row for row in rows if row[0] not in there]
        if self._strategy == "update_only":
            done.refused += [Refused(place, None, _MISSING) for place, _ in new]
            new = []
        await self._insert(new, done)
        old = [row for row in rows if row[0] in there]
        if self._strategy == "append":
            done.refused += [Refused(place, None, _THERE) for place, _ in old]
            return
        changed = [row for row in old if not there[row[0]].is_same]
        if self._strategy == "create_only":
            done.kept += [place for place, _ in changed]
            changed = []
        done.unchanged += len(old) - len(changed)
        await self._update(changed, there, done)

    def _sent(self, rows: Sequence[tuple[int, Texts]]) -> tuple[str, list[Any]]:
        """Rows as something to select from, `s`, and its parameters."""
        arrays = ", ".join(f"${n}::text[]" for n in range(2, len(self._names) + 2))
        names = ", ".join(f"c{n}" for n in range(len(self._names)))
        source = f"unnest($1::bigint[], {arrays}) WITH ORDINALITY AS s (place, {names}, nth)"
        values = [list(column) for column in zip(*(row for _, row in rows), strict=True)]
        return source, [[place for place, _ in rows], *values]

    @property
    def _inserted(self) -> tuple[str, str]:
        """Columns of new rows, and SQL of their values."""
        values = [*map(self._value, self._names), *self._of_new.values()]
        return ", ".join(map(quoted, (*self._names, *self._of_new))), ", ".join(values)

    def _text(self, name: str) -> str:
        """SQL of the text of a column that was sent."""
        return f"s.c{self._names.index(name)}"

    def _value(self, name: str) -> str:
        return self._table.columns[name].value(self._text(name))

    @property
    def _meets(self) -> str:
        return " AND ".join(f"t.{quoted(name)} = {self._value(name)}" for name in self._key)

    @cached_property
    def _same(self) -> str:
        """SQL that is true if a stored row has the values of the one that was sent."""
        return " AND ".join(map(self._is_same, self._values)) or "true"

    @cached_property
    def _sets(self) -> str:
        return ", ".join(f"{quoted(name)} = {self._update_of(name)}" for name in self._values)

    @cached_property
    def _lost(self) -> Sequence[tuple[ForeignColumn, str]]:
        """Columns that may not keep all of a value, with SQL that is true if they do not."""
        found = ((each, each.is_lost(self._text(each.name))) for each in self._columns)
        return [(each, sql) for each, sql in found if sql is not None]

    @property
    def _changes(self) -> bool:
        """Whether rows that are there may be changed; then they are locked."""
        return self._strategy in ("merge", "update_only")

    @property
    def _lock(self) -> str:
        return " FOR UPDATE OF t" if self._changes else ""

    async def _kept(
        self, rows: Sequence[tuple[int, Texts]], done: Written
    ) -> Sequence[tuple[int, Texts]]:
        """The rows of which each column keeps all; the others are refused."""
        if not self._lost:
            return rows
        cases = "".join(f" WHEN {sql} THEN {n}" for n, (_, sql) in enumerate(self._lost))
        source, values = self._sent(rows)
        query = f"SELECT place, CASE{cases} END AS lost FROM {source}"
        found: dict[int, ForeignColumn] = {}
        for place, number in await rows_of(self._connection, query, *values):
            if number is not None:
                found[place] = self._lost[number][0]
        for place, row in rows:
            if place in found:
                column = found[place]
                shown = row[self._names.index(column.name)]
                reason = f"{shown!r:.100} cannot be kept whole as {column.written}"
                done.refused.append(Refused(place, column.name, reason))
        return [row for row in rows if row[0] not in found]

    async def _there(self, rows: Sequence[tuple[int, Texts]]) -> Mapping[int, "_There"]:
        """The rows that their table has already, by place; locked if they may be changed."""
        if not rows:
            return {}
        source, values = self._sent(rows)
        texts = [f"t.{quoted(name)}::text" for name in (*self._key, *self._values)]
        query = (
            f"SELECT s.place, {self._same}, {', '.join(texts)} FROM {source}"
            f" JOIN {self._table.sql} t ON {self._meets} ORDER BY s.place{self._lock}"
        )
        width = len(self._key)
        return {
            place: _There(is_same, tuple(rest[:width]), tuple(rest[width:]))
            for place, is_same, *rest in await rows_of(self._connection, query, *values)
        }

    def _is_same(self, name: str) -> str:
        same = self._table.columns[name].is_same(f"t.{quoted(name)}", self._text(name))
        return f"({self._text(name)} IS NULL OR {same})" if self._blanks_keep else same

    def _update_of(self, name: str) -> str:
        value = self._value(name)
        return f"coalesce({value}, t.{quoted(name)})" if self._blanks_keep else value

    async def _insert(self, rows: Sequence[tuple[int, Texts]], done: Written) -> None:
        if not rows:
            return
        source, values = self._sent(rows)
        own = self._table.own
        names, given = self._inserted
        query = (
            f"INSERT INTO {self._table.sql} AS t ({names})"
            f" SELECT {given} FROM {source} ORDER BY s.nth"
            f" RETURNING {', '.join(f't.{quoted(n)}::text' for n in (*self._key, *own))}"
        )
        made = await rows_of(self._connection, query, *values)
        if len(made) != len(rows):
            raise _Suppressed
        width = len(self._key)
        done.created += len(made)
        done.images += [
            Image(tuple(row[:width]), tuple(own), None, tuple(row[width:]), place)
            for (place, _), row in zip(rows, made, strict=True)
        ]

    async def _update(
        self,
        rows: Sequence[tuple[int, Texts]],
        there: Mapping[int, "_There"],
        done: Written,
    ) -> None:
        if not rows:
            return
        source, values = self._sent(rows)
        every = (*self._key, *self._values)
        query = (
            f"UPDATE {self._table.sql} t SET {self._sets} FROM {source} WHERE {self._meets}"
            f" RETURNING s.place, {', '.join(f't.{quoted(name)}::text' for name in every)}"
        )
        changed = await rows_of(self._connection, query, *values)
        if len(changed) != len(rows):
            raise _Suppressed
        width = len(self._key)
        # Their table may have made of a value what it held before.
        made = [
            Image(
                tuple(rest[:width]),
                tuple(self._values),
                there[place].values,
                tuple(rest[width:]),
                place,
            )
            for place, *rest in changed
            if there[place].values != tuple(rest[width:])
        ]
        done.updated += len(made)
        done.unchanged += len(changed) - len(made)
        done.images += made


@dataclass(frozen=True, slots=True)
class _There:
    """A row that their table has already."""

    is_same: bool
    key: Texts
    values: Texts


async def remove_absent(
    connection: AsyncConnection,
    table: ForeignTable,
    key: Sequence[str],
    scope: Mapping[str, Any],
    held: Sequence[Sequence[Any]],
    done: Written,
) -> None:
    """Delete the rows of a scope whose keys are not among those that a document holds.

    Args:
        connection: In a transaction.
        table: Where they are.
        key: Columns of the key.
        scope: Columns that bound the rows, at least one, with their values.
        held: Keys of the document.
        done: Gets what was removed.

    Raises:
        Denied: Their constraints keep a row; nothing is deleted.
    """
    import asyncpg

    columns = [table.columns[name] for name in key]
    arrays = ", ".join(f"CAST({_BOUND}{n} AS text[])" for n in range(len(key)))
    texts = [[text_of_value(row[n], column) for row in held] for n, column in enumerate(columns)]
    meets = " AND ".join(
        f"t.{quoted(each.name)} = {each.value(f's.c{n}')}" for n, each in enumerate(columns)
    )
    bounds = " AND ".join(
        f"t.{quoted(name)} = {table.columns[name].value(f'CAST({_BOUND}{n} AS text)')}"
        for n, name in enumerate(scope, len(key))
    )
    names = ", ".join(f"c{n}" for n in range(len(key)))
    own = table.own
    query = (
        f"DELETE FROM {table.sql} t WHERE {bounds} AND NOT EXISTS ("
        f"SELECT FROM unnest({arrays}) AS s ({names}) WHERE {meets})"
        f" RETURNING {', '.join(f't.{quoted(name)}::text' for name in (*key, *own))}"
    )
    bound = [text_of_value(value, table.columns[name]) for name, value in scope.items()]
    width = len(key)
    try:
        async for gone in _streamed(connection, query, [*texts, *bound], _BLOCK):
            done.deleted += len(gone)
            done.images += [
                Image(tuple(row[:width]), tuple(own), tuple(row[width:]), None) for row in gone
            ]
            done.pack_full()
    except (sqlalchemy.exc.DBAPIError, asyncpg.PostgresError) as error:
        if not is_refusal(error):
            raise
        refused = refused_row(0, Said.of(error), table)
        raise Denied(
            f"`replace` cannot remove what the file does not hold from {table.title}: "
            f"{refused.reason}; nothing was written. Remove the rows there, or import with "
            "strategy 'merge'"
        ) from error


async def known(
    connection: AsyncConnection,
    table: ForeignTable,
    columns: Sequence[str],
    scope: Mapping[str, Any],
    firsts: Sequence[str],
) -> Sequence[tuple[str | None, ...]]:
    """Texts of some columns in rows of a scope whose first of these is one of some texts."""
    first = table.columns[columns[0]]
    is_text = first.category == "S" and not first.is_domain
    sought = quoted(first.name) if is_text else f"{quoted(first.name)}::text"
    bounds = "".join(
        f" AND {quoted(name)} = {table.columns[name].value(f'${n}::text')}"
        for n, name in enumerate(scope, 2)
    )
    query = (
        f"SELECT {', '.join(f'{quoted(name)}::text' for name in columns)} FROM {table.sql}"
        f" WHERE {sought} = ANY ($1::text[]){bounds}"
    )
    given = [text_of_value(value, table.columns[name]) for name, value in scope.items()]
    return [tuple(row) for row in await rows_of(connection, query, [*firsts], *given)]


async def stored(
    connection: AsyncConnection,
    table: ForeignTable,
    columns: Sequence[str],
    scope: Mapping[str, Any],
    order: Sequence[str],
    page: int,
) -> AsyncGenerator[Sequence[tuple[str | None, ...]]]:
    """Rows of a scope as texts, by key, a page at a time, as they are at one moment."""
    bounds = " AND ".join(
        f"{quoted(name)} = {table.columns[name].value(f'CAST({_BOUND}{n} AS text)')}"
        for n, name in enumerate(scope)
    )
    texts = ", ".join(table.columns[name].read(quoted(name)) for name in columns)
    by = ", ".join(map(quoted, order))
    query = f"SELECT {texts} FROM {table.sql} WHERE {bounds or 'true'} ORDER BY {by}"
    given = [text_of_value(value, table.columns[name]) for name, value in scope.items()]
    async for rows in _streamed(connection, query, given, page):
        yield [tuple(row) for row in rows]


async def _streamed(
    connection: AsyncConnection, query: str, given: Sequence[Any], page: int
) -> AsyncGenerator[Sequence[Any]]:
    """What a statement returns, a page at a time; its parameters are `_BOUND` and a number."""
    statement = text(query.replace(":", "\\:").replace(_BOUND, ":g"))
    values = {f"g{n}": value for n, value in enumerate(given)}
    found = await connection.stream(statement.execution_options(yield_per=page), values)
    async for rows in found.partitions(page):
        yield rows
