"""What a changed declaration says of rows that are stored: tables alone do not show it.

A currency, a list of choices, a bound: the column stays as it is, and its values may be wrong.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Row, Select, func, null, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.base import DOMAIN
from adapters.types.countries import country_names
from adapters.types.tables import SCHEMA, columns_of, earlier_field, register_table, type_of
from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.declared_fields import (
    DeclaredField,
    DeclaredRule,
    DeclaredTarget,
    field_spec,
    measure_otherwise,
)
from workflows.shared.declared_types import DeclaredType
from workflows.shared.durations import duration_text
from workflows.shared.fields import NUMBERS
from workflows.shared.notations import Notation
from workflows.shared.row_rules import broken_rules
from workflows.shared.timestamps import local_time

_Any = tuple[Any, ...]
_PAGE: Final = 5_000
_SHOWN: Final = 40
_LISTED: Final = 10
_READING: Final = (
    *("choices", "minimum", "maximum", "pattern", "max_length", "words", "currency", "zone"),
    *("clock", "kind", "units", "blanks", "past", "part", "label", "unknown"),
)
"""Words of a field that say which values it has."""
_OF_TYPE: Final = ("strategy", "left_out", "unmapped", "may_import", "checks", "target")
"""Words of a type that say what imports do from now on."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One change of what a type means.

    Attributes:
        says: What changes.
        loses: What is wrong with stored rows, or removed of them; None: nothing.
    """

    says: str
    loses: str | None = None


async def meanings_of(
    connection: AsyncConnection, declared: DeclaredType, before: DeclaredType | None
) -> Sequence[Meaning]:
    """What changes for stored rows and for imports, beyond the shape of the table.

    Args:
        connection: To the database, as it is before the change.
        declared: The version that is wanted.
        before: The version that is in force; None: there is none.
    """
    if before is None or before.digest == declared.digest:
        return ()
    stored = _Stored(connection, before, await columns_of(connection, SCHEMA, before.table_name))
    found = [each for name in declared.fields async for each in _of_field(declared, name, stored)]
    found += [each async for each in _of_rules(declared, stored)]
    for word in _OF_TYPE:
        old, new = getattr(before, word), getattr(declared, word)
        if old != new:
            found.append(Meaning(f"{word}: {_written(old)} becomes {_written(new)}"))
    if before.target is None and declared.target is not None:
        rows = await stored.total()
        if rows:
            table = f"{SCHEMA}.{before.table_name}"
            found.append(Meaning(f"{rows:,} stored rows stay in {table}; no import changes them"))
    if declared.retention != before.retention:
        found.append(await _of_retention(declared, stored))
    return found


class _Stored:
    """Rows of the version that is in force.

    Args:
        connection: To the database.
        before: The version.
        columns: Columns that its table has.
    """

    def __init__(
        self, connection: AsyncConnection, before: DeclaredType, columns: Sequence[str]
    ) -> None:
        self._connection = connection
        self._columns = frozenset(columns)
        self._table = DOMAIN[register_table(before)]
        self.before = before

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._columns and name in self._table.c

    async def count(self, condition: ColumnElement[bool]) -> int:
        """How many rows meet a condition."""
        if not self._columns:
            return 0
        query = select(func.count()).select_from(self._table).where(condition)
        return (await self._connection.execute(query)).scalar_one()

    async def total(self) -> int:
        """How many rows there are."""
        return await self.count(self._table.c.version > 0)

    async def filled(self, name: str) -> int:
        """How many rows have a value of a column."""
        return await self.count(self._table.c[name].is_not(null())) if self.has(name) else 0

    async def blank(self, name: str) -> int:
        """How many rows have none."""
        if not self.has(name):
            return await self.total()
        return await self.count(self._table.c[name].is_(null()))

    async def older_than(self, days: int) -> int:
        """How many rows were last updated so long ago."""
        return await self.count(self._table.c.updated_at < datetime.now(UTC) - timedelta(days=days))

    async def values(self, name: str) -> AsyncIterator[Sequence[tuple[Any, int]]]:
        """Each value of a column, and how many rows have it, page by page."""
        own = self._table.c[name]
        query = select(own, func.count()).where(own.is_not(null())).group_by(own)
        async for page in self._pages(query):
            yield [(value, number) for value, number in page]

    async def rows(self, names: Sequence[str]) -> AsyncIterator[Sequence[Sequence[Any]]]:
        """The cells of some columns, column by column, page by page; blank if there is none."""
        if not self._columns:
            return
        own = [self._table.c[name] if self.has(name) else null() for name in names]
        query = select(*own).select_from(self._table)
        async for page in self._pages(query):
            yield list(zip(*page, strict=True))

    async def _pages(self, query: Select[*_Any]) -> AsyncIterator[Sequence[Row[*_Any]]]:
        # A cursor uses its table up to the end of its transaction, even if all of it is read.
        async with self._connection.begin_nested() as within:
            async with self._connection.stream(query) as rows:
                async for page in rows.partitions(_PAGE):
                    yield page
            await within.rollback()


async def _of_field(declared: DeclaredType, name: str, stored: _Stored) -> AsyncIterator[Meaning]:
    field, earlier = declared.fields[name], earlier_field(declared, stored.before, name)
    if earlier is None:
        if field.required and (rows := await stored.blank(name)):
            yield Meaning(f"{name}: new and required", f"{_rows(rows)} without {name}")
        return
    own = name if name in stored.before.fields else str(field.was)
    if field.required and not earlier.required and (rows := await stored.blank(own)):
        yield Meaning(f"{name}: required from now on", f"{_rows(rows)} without {name}")
    if field.default != earlier.default:
        said = f"{_written(earlier.default)} becomes {_written(field.default)}"
        yield Meaning(f"{name}: a blank cell: {said}; stored values stay")
    if said := "; ".join(_other_meanings(earlier, field)):
        rows = await stored.filled(own)
        loses = f"the meaning of {_values(rows)} of {name}" if rows else None
        yield Meaning(f"{name}: {said}; stored values stay as they are", loses)
        return
    if any(getattr(field, word) != getattr(earlier, word) for word in _READING):
        async for each in _unread(name, field, own, earlier, stored):
            yield each


def _other_meanings(earlier: DeclaredField, field: DeclaredField) -> Iterator[str]:
    """What changes, if every stored value means something else or nothing."""
    kinds = {earlier.kind, field.kind}
    if "duration" in kinds and len(kinds) > 1:
        yield f"{earlier.kind} becomes {field.kind} (a duration is stored in milliseconds)"
    words = [word for word in ("to", "table", "row_key") if kinds == {"reference"}]
    if None not in (earlier.currency, field.currency):
        words.append("currency")
    if measure_otherwise(earlier, field):
        words.append("units")
    for word in words:
        old, new = getattr(earlier, word), getattr(field, word)
        if old != new:
            yield f"{word}: {_written(old)} becomes {_written(new)}"


async def _unread(
    name: str, field: DeclaredField, own: str, earlier: DeclaredField, stored: _Stored
) -> AsyncIterator[Meaning]:
    """The stored values that the field would refuse in a file."""
    said = f"{name}: " + "; ".join(
        f"{word}: {_written(getattr(earlier, word))} becomes {_written(getattr(field, word))}"
        for word in _READING
        if getattr(field, word) != getattr(earlier, word)
    )
    if not stored.has(own) or (type_of(field) != type_of(earlier) and type_of(field) != "TEXT"):
        # What does not fit another type of column, its statement shows.
        yield Meaning(said)
        return
    countries = country_names() if field.kind == "country" else None
    spec = field_spec(name, field.model_copy(update={"default": None}), countries)
    notation = Notation.POINT if spec.kind in NUMBERS else None
    wrong, every, example = 0, 0, None
    async for page in stored.values(own):
        cells = [_cell(value, earlier, field) for value, _ in page]
        values, _ = read_cells(spec, cells, notation)
        for (value, number), found in zip(page, values, strict=True):
            every += number
            if isinstance(found, Flaw) or (found is None and value != ""):
                wrong += number
                reason = found.reason if isinstance(found, Flaw) else "would be blank"
                example = example or f"{str(value)[:_SHOWN]!r} {reason}"
    loses = f"{wrong:,} of {_values(every)} of {name}: {example}" if wrong else None
    yield Meaning(said, loses)


def _cell(value: Any, earlier: DeclaredField, field: DeclaredField) -> Any:
    """A stored value as a file would have it."""
    if earlier.kind == "duration":
        return duration_text(value)
    if isinstance(value, datetime):
        is_local = value.tzinfo is not None and field.zone is None
        return str(local_time(value, earlier.zone or "UTC") if is_local else value)
    return value if isinstance(value, bool | int) else str(value)


async def _of_rules(declared: DeclaredType, stored: _Stored) -> AsyncIterator[Meaning]:
    """The stored rows that break a rule that is new."""
    old = set(map(_key_of, _rules_of(stored.before)))
    for rule in _rules_of(declared):
        if _key_of(rule) in old:
            continue
        said = f"a rule is new: {_key_of(rule)}"
        now = {name: declared.fields[name] for name in rule.names}
        then = {name: earlier_field(declared, stored.before, name) for name in now}
        if any(each is not None and type_of(each) != type_of(now[n]) for n, each in then.items()):
            yield Meaning(f"{said}; its fields change, and stored rows are not checked")
            continue
        own = [
            name if name in stored.before.fields else str(field.was) for name, field in now.items()
        ]
        wanted = declared.model_copy(update={"rules": (rule,), "period": None})
        wrong = 0
        async for page in stored.rows(own):
            cells = dict(zip(now, page, strict=True))
            wrong += sum(1 for _ in broken_rules(wanted, cells))
        yield Meaning(said, f"{_rows(wrong)} that break it" if wrong else None)


def _rules_of(declared: DeclaredType) -> Iterable[DeclaredRule]:
    yield from declared.rules
    if declared.period is not None:
        first, last = declared.period
        yield DeclaredRule(compare=(first, "<=", last))


def _key_of(rule: DeclaredRule) -> str:
    return rule.model_dump_json(exclude_defaults=True, exclude={"says"})


async def _of_retention(declared: DeclaredType, stored: _Stored) -> Meaning:
    said = f"retention: {_written(stored.before.retention)} becomes {_written(declared.retention)}"
    days = declared.kept_days
    rows = 0 if days is None else await stored.older_than(days)
    loses = f"{_rows(rows)}, last updated more than {declared.retention} ago" if rows else None
    return Meaning(said, loses)


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, DeclaredTarget):
        return ", ".join(_target_words(value))
    words = cast("Iterable[Any]", value) if isinstance(value, tuple | dict) else (value,)
    listed = [str(each) for each in words]
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return (", ".join(listed[:_LISTED]) or "none") + more


def _target_words(target: DeclaredTarget) -> Iterator[str]:
    """What a file says of a target."""
    for word, value in target.model_dump(exclude_defaults=True).items():
        pairs = target.columns.items() if word == "columns" else ()
        yield f"{word} {' '.join('='.join(pair) for pair in pairs) or value}"


def _rows(number: int) -> str:
    return f"{number:,} stored row{'' if number == 1 else 's'}"


def _values(number: int) -> str:
    return f"{number:,} stored value{'' if number == 1 else 's'}"
