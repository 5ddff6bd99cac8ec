"""Rows of declared types in tables of the teams that declared them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database import foreign, foreign_rows, foreign_undo
from adapters.database.foreign import ForeignColumn, ForeignDatabases, ForeignTable, Step
from adapters.database.foreign_rows import Image, RowWriter, Written
from adapters.database.foreign_undo import TakenBack
from adapters.database.models.every import metadata
from adapters.database.models.types import type_versions
from adapters.ports.errors import Denied
from adapters.types.tables import SCHEMA, Change, defaults_of_new, type_of
from workflows.shared.declared_fields import DeclaredTarget
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation, TableChanged

_PAGE: Final = 5_000
_VERSION: Final = "alembic_version"
"""Table that says at which version docflow's tables are."""
_HOW: Final[Mapping[str, foreign_rows.Strategy]] = {
    "merge": "merge",
    "replace": "merge",
    "append": "append",
    "update_only": "update_only",
    "create_only": "create_only",
}
"""How the rows of a document meet those that are there."""
_RIGHTS: Final = """
SELECT current_user::text, ARRAY(
  SELECT r FROM unnest($2::text[]) AS r
  WHERE NOT has_table_privilege(format('%I.%I', $1::text, $3::text)::regclass, r)
), EXISTS (
  SELECT FROM pg_language WHERE lanname = 'plpgsql' AND has_language_privilege(oid, 'USAGE')
)
"""


def target_in(declared: DeclaredType) -> DeclaredTarget:
    """The target of a type whose rows go to a table of its team."""
    assert declared.target is not None
    assert declared.target.table is not None
    return declared.target


def key_columns(declared: DeclaredType) -> tuple[str, ...]:
    """Columns of their table that name a row."""
    return tuple(_columns(declared, declared.natural_key).values())


def _columns(declared: DeclaredType, names: Sequence[str]) -> dict[str, str]:
    """The columns of fields and of names in the scope, but of those that are not stored."""
    found = {name: target_in(declared).column(name) for name in names}
    return {name: column for name, column in found.items() if column is not None}


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows by the names of a type, as their table takes them."""

    columns: tuple[str, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, declared: DeclaredType, names: Sequence[str]) -> "_Rows":
        stored = _columns(declared, names)
        return cls(
            tuple(stored.values()), tuple(n for n, name in enumerate(names) if name in stored)
        )

    def taken(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        if rows and len(self.places) == len(rows[0]):
            return rows
        return [[row[place] for place in self.places] for row in rows]


@dataclass(frozen=True, slots=True)
class Fit:
    """How a type fits a table of its team.

    Attributes:
        changes: The statement that is left to do.
        notes: Columns whose values the type does not decide alone.
    """

    changes: Sequence[Change] = ()
    notes: Sequence[str] = ()


class TargetTables:
    """Reads and writes tables of teams, each part of an import once.

    Every method raises `Unavailable` if the database is unavailable or busy, and `Denied` if the
    table is not what the type says.

    Args:
        databases: Where the tables are.
    """

    def __init__(self, databases: ForeignDatabases) -> None:
        self._databases = databases

    @cached_property
    def turns(self) -> asyncio.Semaphore:
        """Limits how many hold a connection of docflow's database while they use another one.

        Without it, a database that hangs would use up all connections to docflow's own.
        """
        return asyncio.Semaphore(self._databases.at_once)

    @asynccontextmanager
    async def _opened(
        self, declared: DeclaredType, *, dry: bool = False
    ) -> AsyncGenerator[tuple[AsyncConnection, ForeignTable]]:
        target = target_in(declared)
        async with self._databases.transaction(target.database, dry=dry) as connection:
            table = await foreign.described(connection, target.schema_name, target.name)
            yield connection, table

    async def plan(self, declared: DeclaredType) -> Fit:
        """See that a type fits its table, and what is left to do.

        Raises:
            RuleViolation: It does not fit; the message says what does not.
        """
        target = target_in(declared)
        try:
            async with self._opened(declared) as (connection, table):
                await _refuse_own(connection, declared)
                faults = [*_faults(declared, table)]
                if not faults:
                    faults = [*await _missing_rights(connection, declared)]
                if faults:
                    raise RuleViolation(f"{declared.at('target')}: " + "; ".join(faults))
                is_ready = await foreign.has_table(connection, target.schema_name, foreign.SIDE)
        except Denied as error:
            raise RuleViolation(f"{declared.at('target')}: {error}") from error
        side = Change(foreign.side_table(target.schema_name), at=place_of(target))
        return Fit(() if is_ready else (side,), _notes(declared, table))

    async def apply(self, declared: DeclaredType) -> Fit:
        """Make the side table, if it is missing; nothing else of theirs is changed.

        Raises:
            RuleViolation: The type does not fit; or their database refuses the statement, which
                the message has.
        """
        fit, target = await self.plan(declared), target_in(declared)
        for change in fit.changes:
            try:
                async with self._databases.transaction(target.database) as connection:
                    await connection.exec_driver_sql(change.sql)
            except Denied as error:
                async with self._databases.transaction(target.database) as connection:
                    user = (await connection.exec_driver_sql("SELECT current_user")).scalar_one()
                side = f"{foreign.quoted(target.schema_name)}.{foreign.SIDE}"
                grant = f"GRANT SELECT, INSERT, UPDATE, DELETE ON {side} TO {foreign.quoted(user)}"
                raise RuleViolation(
                    f"{declared.name}: {error}. Let the owner of the schema {target.schema_name} "
                    f"in {place_of(target)} run these statements, then apply again:\n"
                    f"{change.sql};\n{grant};"
                ) from error
        return fit

    async def write(
        self,
        declared: DeclaredType,
        step: Step,
        names: Sequence[str],
        pages: AsyncIterator[tuple[Sequence[Sequence[Any]], Sequence[int]]],
        strategy: str,
        scope: Mapping[str, Any],
        *,
        blanks_keep: bool = False,
        dry: bool = False,
    ) -> Written:
        """Write rows, once for each step of a run, in one transaction.

        If an earlier attempt, of which docflow knows nothing, wrote other rows in this step, these
        are taken back first.

        Args:
            declared: Their type.
            step: Part of a run, with the digest of its rows.
            names: What the rows have values for.
            pages: The rows, and the line of each; not read if the step was done before.
            strategy: How they meet rows that are there; `replace` also removes what the scope
                holds beside them.
            scope: Values that bound what `replace` removes.
            blanks_keep: A value that is absent leaves what is there.
            dry: Find out only; nothing is written.

        Returns:
            What was done, now or before; the place of a row is its line.

        Raises:
            RuleViolation: `replace` has no scope.
            TableChanged: A column is gone, or is of another kind than when the type was applied.
        """
        rows, target = _Rows.of(declared, names), target_in(declared)
        bounds: Mapping[str, Any] = _bounds(declared, scope) if strategy == "replace" else {}
        key = key_columns(declared)
        fields = {column: name for name, column in _columns(declared, names).items()}

        async with self._opened(declared, dry=dry) as (connection, table):
            _refuse_changed(declared, table, (*names, *_defaulted(declared, names)))

            async def act() -> bytes:
                writer = RowWriter(
                    *(connection, table, key, rows.columns, _HOW[strategy]),
                    blanks_keep=blanks_keep,
                    defaults=_of_new(declared, names),
                )
                places = [rows.columns.index(name) for name in key] if rows.columns else []
                done, held = Written(), list[Sequence[Any]]()
                async for page, lines in pages:
                    taken = rows.taken(page)
                    done.add(await writer.write(taken), lines, fields)
                    done.pack_full()
                    if strategy == "replace":
                        held += [[row[place] for place in places] for row in taken]
                if strategy == "replace":
                    await foreign_rows.remove_absent(connection, table, key, bounds, held, done)
                return done.packed()

            async def undo(packed: bytes) -> None:
                await _take_back_all(connection, table, key, packed)

            packed = await foreign.once(connection, target.schema_name, step, act, undo)
        return Written.unpacked(packed)

    async def remove_absent(
        self,
        declared: DeclaredType,
        step: Step,
        names: Sequence[str],
        pages: AsyncIterator[tuple[Sequence[Sequence[Any]], Sequence[int]]],
        scope: Mapping[str, Any],
        *,
        dry: bool = False,
    ) -> Written:
        """Remove the rows of a scope whose keys are not among some, once; what was done.

        Args:
            declared: The type.
            step: Of a run.
            names: Parts of the keys.
            pages: The keys; not read if the step was done before.
            scope: Values that bound what is removed.
            dry: Find out only; nothing is removed.

        Raises:
            RuleViolation: The type has no scope with a column there.
        """
        rows, target, key = _Rows.of(declared, names), target_in(declared), key_columns(declared)
        bounds = _bounds(declared, scope)
        async with self._opened(declared, dry=dry) as (connection, table):

            async def act() -> bytes:
                places, held = [rows.columns.index(name) for name in key], list[Sequence[Any]]()
                async for page, _ in pages:
                    held += [[row[place] for place in places] for row in rows.taken(page)]
                gone = Written()
                await foreign_rows.remove_absent(connection, table, key, bounds, held, gone)
                return gone.packed()

            async def undo(packed: bytes) -> None:
                await _take_back_all(connection, table, key, packed)

            packed = await foreign.once(connection, target.schema_name, step, act, undo)
        return Written.unpacked(packed)

    async def forget(self, declared: DeclaredType, *runs: str) -> None:
        """Remove what their side table remembers of runs, once docflow has it."""
        target = target_in(declared)
        async with self._databases.transaction(target.database) as connection:
            await foreign.forget(connection, target.schema_name, *runs)

    async def remembered(self, declared: DeclaredType, run: str) -> Mapping[str, Sequence[bytes]]:
        """What each step of a run changed that their side table remembers, packed in blocks."""
        target = target_in(declared)
        async with self._opened(declared) as (connection, _):
            found = await foreign.remembered(connection, target.schema_name, run)
        return {name: Written.unpacked(packed).every_block() for name, packed in found}

    async def settle(
        self, declared: DeclaredType, run: str, is_known: Callable[[str], bool]
    ) -> None:
        """Take back what an attempt wrote that died before docflow could note it.

        Args:
            declared: The type.
            run: Of whom.
            is_known: Whether docflow has noted a step.
        """
        key, target = key_columns(declared), target_in(declared)
        async with self._opened(declared) as (connection, table):
            for name, packed in await foreign.remembered(connection, target.schema_name, run):
                if not is_known(name):
                    await _take_back_all(connection, table, key, packed)
            await foreign.forget(connection, target.schema_name, run)

    async def take_back(
        self, declared: DeclaredType, run: str, images: Sequence[Image], step: str = "take back"
    ) -> TakenBack:
        """Undo changes, once for each step of a run, of rows that are as the import left them."""
        key, target = key_columns(declared), target_in(declared)
        async with self._opened(declared) as (connection, table):

            async def act() -> bytes:
                return (await foreign_undo.take_back(connection, table, key, images)).packed()

            packed = await foreign.once(connection, target.schema_name, Step(run, step), act)
        return TakenBack.unpacked(packed)

    async def known(
        self,
        declared: DeclaredType,
        scope: Mapping[str, Any],
        names: Sequence[str],
        firsts: Sequence[str],
    ) -> Sequence[tuple[str | None, ...]]:
        """Values of some fields, in rows of a scope whose first field is one of some texts."""
        if not firsts or not names or declared.target is None or declared.target.table is None:
            return ()
        columns = _columns(declared, names)
        bounds = {c: scope[n] for n, c in _columns(declared, declared.stored_scope).items()}
        async with self._opened(declared) as (connection, table):
            _refuse_changed(declared, table, (*names, *declared.stored_scope))
            return await foreign_rows.known(connection, table, [*columns.values()], bounds, firsts)

    async def keys(
        self, declared: DeclaredType, scope: Mapping[str, Any], name: str, most: int
    ) -> Sequence[str]:
        """Values of a field in rows of a scope, so many at most.

        There are none in a file, and for a process that may not use the database.
        """
        target, found = declared.target, list[str]()
        if target is None or target.table is None or not self._databases.has(target.database):
            return ()
        async with aclosing(self.read(declared, scope, (name,))) as pages:
            async for page in pages:
                found += [value for (value,) in page if value is not None]
                if len(found) >= most:
                    break
        return found[:most]

    async def read(
        self, declared: DeclaredType, scope: Mapping[str, Any], names: Sequence[str]
    ) -> AsyncGenerator[Sequence[tuple[str | None, ...]]]:
        """Rows of a scope by key, as texts, a page at a time; an absent value may be any."""
        columns = [*_columns(declared, names).values()]
        bounded = [name for name in declared.stored_scope if name in scope]
        bounds = {c: scope[n] for n, c in _columns(declared, bounded).items()}
        async with self._opened(declared) as (connection, table):
            for name in (*columns, *bounds):
                if name not in table.columns:
                    raise Denied(f"{table.title} has no column {name}; add it, or correct `target`")
            order = key_columns(declared)
            async for page in foreign_rows.stored(connection, table, columns, bounds, order, _PAGE):
                yield page


def _of_new(declared: DeclaredType, names: Sequence[str]) -> Mapping[str, Any]:
    """Columns that a file lacks and new rows have a default in, with it."""
    defaults, absent = defaults_of_new(declared), _defaulted(declared, names)
    return {column: defaults[name] for name, column in _columns(declared, absent).items()}


def _defaulted(declared: DeclaredType, names: Sequence[str]) -> Sequence[str]:
    """Fields that a file lacks and new rows have a default in."""
    return [name for name in defaults_of_new(declared) if name not in names]


async def _take_back_all(
    connection: AsyncConnection, table: ForeignTable, key: Sequence[str], packed: bytes
) -> None:
    """Take back what an attempt has written of which docflow knows nothing."""
    for block in reversed(Written.unpacked(packed).every_block()):
        await foreign_undo.take_back(connection, table, key, foreign_rows.unpack_images(block))


def _bounds(declared: DeclaredType, scope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Columns that bound what `replace` removes, with their values.

    Raises:
        RuleViolation: There are none.
    """
    bounds = {c: scope[n] for n, c in _columns(declared, declared.stored_scope).items()}
    if not bounds:
        raise RuleViolation(
            f"'replace' would remove every row of {target_in(declared).table}: the type has no "
            "scope with a column there; use strategy 'merge'"
        )
    return bounds


async def _refuse_own(connection: AsyncConnection, declared: DeclaredType) -> None:
    """See that a table is a team's, and none of docflow's own in any of its databases.

    Raises:
        RuleViolation: It is docflow's own.
    """
    target = target_in(declared)
    is_own = await is_own_table(connection, target.schema_name, target.name)
    if is_own or target.schema_name == SCHEMA:
        raise RuleViolation(
            f"{declared.at('target', 'table')}: {target.schema_name}.{target.name} is a table of "
            "docflow's own; name a table of yours"
        )


async def is_own_table(connection: AsyncConnection, schema: str, name: str) -> bool:
    """Return whether a table is docflow's own, and no table of rows of a declared type."""
    if name == foreign.SIDE:
        return True
    is_own = name in metadata.tables or name == _VERSION
    for mark in (_VERSION, type_versions.name):
        is_own = is_own and await foreign.has_table(connection, schema, mark)
    return is_own


def place_of(target: DeclaredTarget) -> str:
    """What to call the database of a table of a team."""
    return "docflow's database" if target.database is None else f"the database {target.database}"


def _refuse_changed(declared: DeclaredType, table: ForeignTable, names: Sequence[str]) -> None:
    """See that a table still fits the version of a type that a run keeps.

    Raises:
        TableChanged: A column is gone, or does not take the kind of its field any more.
    """
    faults = [*_unfit(declared, table, names)]
    if not faults:
        return
    lost = [
        f"ADD COLUMN {foreign.quoted(own)} {_type_in(declared, name)}"
        for name, own in _columns(declared, names).items()
        if own not in table.columns
    ]
    cure = f" (`ALTER TABLE {table.sql} {', '.join(lost)}`, or rename it back)" if lost else ""
    raise TableChanged(
        f"{'; '.join(faults)}. This import keeps the version of the type that it began with: let "
        f"the table fit that version again{cure}, and retry"
    )


def _type_in(declared: DeclaredType, name: str) -> str:
    field = declared.fields.get(name)
    return "TEXT" if field is None else type_of(field)


def _faults(declared: DeclaredType, table: ForeignTable) -> Sequence[str]:
    """What does not fit between a type and its table."""
    names = (*declared.scope, *declared.fields)
    columns = _columns(declared, names)
    faults = [*_unfit(declared, table, names, cure="; map it in target.columns")]
    key = key_columns(declared)
    if frozenset(key) not in table.unique:
        faults.append(
            f"no unique index of {table.title} has just the columns {', '.join(key)}; the key of "
            "the type must be one of theirs"
        )
    if not table.has_trigger:
        faults += [
            f"{table.title}.{each.name} is NOT NULL without a default, and no field fills it"
            for each in table.columns.values()
            if each.needed
            and not (each.has_default or each.is_filled or each.identity)
            and each.name not in columns.values()
            and declared.strategy != "update_only"
        ]
    return faults


def _unfit(
    declared: DeclaredType, table: ForeignTable, names: Sequence[str], *, cure: str = ""
) -> Iterator[str]:
    """Fields and parts of the scope that have no column, or one that does not take their kind."""
    for name, own in _columns(declared, names).items():
        found = table.columns.get(own)
        if found is None:
            yield f"{table.title} has no column {own} for {name}{cure}"
        elif (fault := _fault(declared, name, found)) is not None:
            yield f"{name} does not fit {table.title}.{own} ({found.written}): {fault}"


def _notes(declared: DeclaredType, table: ForeignTable) -> Sequence[str]:
    """What a type that fits leaves to NOT NULL columns and to their defaults."""
    columns = _columns(declared, (*declared.scope, *declared.fields))
    notes = [
        f"{name}: 'was' has no effect: docflow renames no column of a table of yours"
        for name, field in declared.fields.items()
        if field.was is not None
    ]
    notes += [
        f"no field fills {table.title}.{each.name}, which is NOT NULL: new rows get its default"
        for each in table.columns.values()
        if each.needed
        and each.has_default
        and not (each.is_filled or each.identity)
        and each.name not in columns.values()
        and declared.strategy != "update_only"
    ]
    for name, column in columns.items():
        field, found = declared.fields.get(name), table.columns[column]
        is_given = field is None or field.required or field.default is not None
        if found.needed and not is_given and not table.has_trigger:
            default = " (its default is for files without the field)" if found.has_default else ""
            notes.append(
                f"{name} may be blank, and {table.title}.{column} is NOT NULL{default}: rows "
                "without a value are refused. Write `required: true` or `default:`"
            )
    return notes


def _fault(declared: DeclaredType, name: str, column: ForeignColumn) -> str | None:
    if column.is_filled:
        return "their server itself fills it"
    if name in declared.scope:
        return column.takes("code", zoned=False)
    field = declared.fields[name]
    return column.takes(field.kind, zoned=field.zone is not None)


async def _missing_rights(connection: AsyncConnection, declared: DeclaredType) -> Sequence[str]:
    target = target_in(declared)
    wanted = ["SELECT", "INSERT", "UPDATE"]
    if declared.strategy == "replace":
        wanted.append("DELETE")
    found = await connection.exec_driver_sql(_RIGHTS, (target.schema_name, wanted, target.name))
    row: Any = found.one()
    user, missing, has_language = foreign.quoted(row[0]), ", ".join(row[1]), bool(row[2])
    faults: list[str] = []
    if missing:
        place = f"{foreign.quoted(target.schema_name)}.{foreign.quoted(target.name)}"
        faults.append(
            f"{row[0]} lacks rights; let the owner run GRANT {missing} ON {place} TO {user}"
        )
    if not has_language:
        faults.append(
            f"{row[0]} may not use the language plpgsql; let an administrator run CREATE EXTENSION "
            f"IF NOT EXISTS plpgsql; GRANT USAGE ON LANGUAGE plpgsql TO {user}"
        )
    return faults
