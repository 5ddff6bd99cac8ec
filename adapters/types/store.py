"""Declared types in the database: which are in force, and every version that runs may use."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection, delete, exists, func, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.engine import acquire_advisory_lock
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.base import DOMAIN
from adapters.database.models.every import metadata
from adapters.database.models.runs import runs
from adapters.database.models.types import declared_types, type_versions
from adapters.types.files import builtin_types, own_types
from adapters.types.meanings import Meaning, meanings_of
from adapters.types.tables import (
    SCHEMA,
    Change,
    changes_to,
    columns_of,
    declared_of,
    dropping,
    locking,
    register_table,
)
from adapters.types.targets import Fit, TargetTables, is_own_table
from workflows.shared.declared_fields import meant, nearest
from workflows.shared.declared_types import ORGANISATION, DeclaredType, check_references
from workflows.shared.errors import RuleViolation

_LOCK: Final = "docflow type apply"
_NAMED: Final = 5
"""Runs that a refusal lists."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What puts a version in force.

    Attributes:
        declared: The version.
        before: The version that is in force; None: there is none.
        changes: Statements that lead its table there.
        meanings: What changes beyond the table.
        notes: What a table of a team does that the type does not show.
    """

    declared: DeclaredType
    before: DeclaredType | None
    changes: Sequence[Change]
    meanings: Sequence[Meaning]
    notes: Sequence[str] = ()

    @property
    def losses(self) -> Sequence[str]:
        """What stored rows would lose, for people."""
        found = (each.loses for each in (*self.changes, *self.meanings))
        return [each for each in found if each is not None]


@dataclass(frozen=True, slots=True)
class Removed:
    """A type that is out of force.

    Attributes:
        declared: The version that was in force.
        table: docflow's own table of its rows; None: its rows go elsewhere.
        rows: How many that table has, or had.
        dropped: That table is gone.
    """

    declared: DeclaredType
    table: str | None
    rows: int
    dropped: bool


class SqlDeclaredTypes:
    """The declared types of an installation.

    Every method raises `Unavailable` when the database is unavailable or busy.

    Args:
        database: Where they are kept.
        targets: Tables of teams; when absent, only docflow's own database may have them.
    """

    def __init__(self, database: Database, targets: TargetTables | None = None) -> None:
        self._database = database
        self._targets = targets or TargetTables(ForeignDatabases(database))

    async def in_force(self) -> Mapping[str, DeclaredType]:
        """The version of each declared type that new runs use, by name."""
        async with self._database.reading() as connection:
            return await _in_force(connection)

    async def check_tables(self, declared: DeclaredType) -> None:
        """See that the tables which references of a type name have the columns that they name.

        Raises:
            RuleViolation: One does not.
        """
        async with self._database.reading() as connection:
            await _check_tables(connection, declared, {})

    async def version(self, digest: str) -> DeclaredType | None:
        """One version of a type; None: it was never in force here."""
        query = select(type_versions.c.declaration).where(type_versions.c.digest == digest)
        async with self._database.reading() as connection:
            text = (await connection.execute(query)).scalar_one_or_none()
        return None if text is None else declared_of(text)

    async def written_by(self, name: str, digest: str | None = None) -> Sequence[DeclaredType]:
        """The types of which an import writes rows: its own, and those of rows that it creates.

        They are as they are now, or as they last were, whatever version the import has.

        Args:
            name: Of the type of the import.
            digest: The version that the import has; None: that in force.

        Returns:
            None, if there is no such declared type.
        """
        version = None if digest is None else await self.version(digest)
        async with self._database.reading() as connection:
            known = {**builtin_types(), **await _in_force(connection)}
            own = known.get(name) or await _last_version(connection, name)
        if own is None:
            return ()
        created = sorted(own.creates if version is None else version.creates)
        return (own, *(known[each] for each in created if each in known))

    async def with_rows(self, organisation_id: int) -> Sequence[str]:
        """Names of the types that have, or may have, rows of an organisation or rows without one.

        Types that are no longer in force are among them, and those whose rows go elsewhere; types
        about people and clubs are not.
        """
        versions = type_versions.c
        last = select(versions.declaration).ext(distinct_on(versions.name))
        last = last.order_by(versions.name, versions.created_at.desc(), versions.digest)
        async with self._database.reading() as connection:
            of_teams = [declared_of(each) for each in (await connection.scalars(last)).all()]
            return [
                each.name
                for each in (*builtin_types().values(), *of_teams)
                if each.target is not None or await _has_rows(connection, each, organisation_id)
            ]

    async def plan(self, *declared: DeclaredType) -> Sequence[Plan]:
        """What would put versions in force together; nothing is changed.

        Args:
            declared: The versions; they may refer to each other.

        Raises:
            RuleViolation: One cannot be put in force.
        """
        async with self._database.streaming() as connection:
            plans = await _plans(connection, declared)
        return [_with(plan, await self._planned(plan.declared)) for plan in plans]

    async def apply(
        self, *declared: DeclaredType, by: str | None = None, allow_loss: bool = False
    ) -> Sequence[Plan]:
        """Put versions in force, all or none: make or change their tables, and use them for runs.

        Appliers take turns. A second call with the same versions changes nothing.

        Args:
            declared: The versions; they may refer to each other.
            by: Who applies them.
            allow_loss: Carry out what loses values.

        Returns:
            What was carried out.

        Raises:
            RuleViolation: Values would be lost, or one cannot be put in force, or does not fit a
                table of its team; nothing is changed.
        """
        async with self._database.transaction() as connection:
            await acquire_advisory_lock(connection, _LOCK)
            plans = await _plans(connection, declared, alone=True)
            losing = [plan for plan in plans if plan.losses]
            if losing and not allow_loss:
                raise RuleViolation(
                    "\n".join(
                        f"{plan.declared.name}: this would lose {'; '.join(plan.losses)}. Keep "
                        "what stored rows need, or say --allow-loss"
                        for plan in losing
                    )
                )
            done: list[Plan] = []
            for plan in plans:
                of_team = _is_of_a_team(plan.declared)
                there = await self._targets.apply(plan.declared) if of_team else Fit()
                for change in plan.changes:
                    await connection.exec_driver_sql(change.sql)
                await _put_in_force(connection, plan.declared, by)
                done.append(_with(plan, there))
        return done

    async def _planned(self, declared: DeclaredType) -> Fit:
        return await self._targets.plan(declared) if _is_of_a_team(declared) else Fit()

    async def remove(
        self, name: str, *, drop_table: bool = False, allow_loss: bool = False
    ) -> Removed:
        """Take a type out of force; runs that are open go on with their version.

        Args:
            name: Of the type.
            drop_table: Drop its table as well.
            allow_loss: Drop it even if it has rows.

        Raises:
            RuleViolation: There is no such type, another one refers to it, rows would be lost, or
                an open import needs the table; nothing is changed.
        """
        async with self._database.transaction() as connection:
            await acquire_advisory_lock(connection, _LOCK)
            in_force = await _in_force(connection)
            if name not in in_force:
                known = meant(name, in_force) + f"there are {', '.join(in_force)}"
                known = known if in_force else "there are no declared types"
                raise RuleViolation(f"there is no declared type {name}; {known}")
            declared = in_force[name]
            table = f"{SCHEMA}.{declared.table_name}"
            _refuse_referred(declared, in_force, drop_table=drop_table)
            if drop_table:
                await _refuse_open(connection, name)
            has_table = bool(await columns_of(connection, SCHEMA, declared.table_name))
            rows = await _rows_of(connection, declared, alone=drop_table) if has_table else 0
            if drop_table and rows and not allow_loss:
                raise RuleViolation(
                    f"{table} has {rows:,} row{'' if rows == 1 else 's'}, which would be lost. "
                    "Write them into a file with `docflow type export`, then say --allow-loss"
                )
            of_name = declared_types.c.name == name
            await connection.execute(delete(declared_types).where(of_name))
            for change in dropping(declared) if drop_table else ():
                await connection.exec_driver_sql(change)
        is_own = has_table or declared.target is None
        return Removed(declared, table if is_own else None, rows, dropped=drop_table)


async def known_table(
    connection: AsyncConnection, name: str, digest: str | None
) -> DeclaredType | None:
    """Make the table of a version known to this process.

    Args:
        connection: To the database that keeps the versions.
        name: Of the type.
        digest: Of the version; None: the type is not a declared one.

    Returns:
        The version, if a team has declared it.
    """
    if digest is None or name in own_types():
        return None
    query = select(type_versions.c.declaration).where(type_versions.c.digest == digest)
    text = (await connection.execute(query)).scalar_one_or_none()
    if text is None:
        return None
    declared = declared_of(text)
    register_table(declared)
    return declared


async def later_versions(
    connection: AsyncConnection, name: str, since: datetime
) -> Sequence[DeclaredType]:
    """The versions of a type that were put in force since a moment, in order.

    The one in force is the last of them: it may be an earlier one that was applied again.
    """
    versions, types = type_versions.c, declared_types.c
    query = (
        select(versions.declaration)
        .join_from(
            type_versions,
            declared_types,
            types.digest == versions.digest,
            isouter=True,
        )
        .where(
            versions.name == name,
            func.greatest(versions.created_at, func.coalesce(types.applied_at, since)) > since,
        )
        .order_by(types.digest.is_not(None), versions.created_at, versions.digest)
    )
    return [declared_of(text) for text in (await connection.execute(query)).scalars()]


def _is_of_a_team(declared: DeclaredType) -> bool:
    """Whether rows go into a table of the team that declares the type."""
    return declared.target is not None and declared.target.table is not None


def _with(plan: Plan, there: Fit) -> Plan:
    """A plan with what it does in a database of a team."""
    return replace(plan, changes=[*plan.changes, *there.changes], notes=there.notes)


def refuse_own(declared: DeclaredType) -> None:
    """See that a type of a team has a name and a table of its own.

    Raises:
        RuleViolation: docflow has a type or a table of that name.
    """
    if declared.name in own_types():
        at = declared.at("name")
        raise RuleViolation(
            f"{at}: {declared.name} is a type of docflow's own; choose another name"
        )
    if declared.table_name in metadata.tables:
        raise RuleViolation(
            f"{declared.at('table')}: {declared.table_name} is a table of docflow's own; write "
            "`table:` with another name"
        )


def _refuse_other_table(
    declared: DeclaredType, before: DeclaredType | None, known: Mapping[str, DeclaredType]
) -> None:
    """See that a type keeps its table, and shares it with no other type.

    Raises:
        RuleViolation: It does not.
    """
    if before is not None and before.table_name != declared.table_name:
        raise RuleViolation(
            f"{declared.at('table')}: its rows are in {before.table_name}, and would not be seen "
            f"any more; write 'table: {before.table_name}', or declare a type of another name"
        )
    for other in known.values():
        if other.name not in (declared.name, *builtin_types()) and (
            other.table_name == declared.table_name
        ):
            raise RuleViolation(
                f"{declared.at('table')}: the table {declared.table_name} is that of the type "
                f"{other.name}; choose another one"
            )


def _refuse_referred(
    declared: DeclaredType, in_force: Mapping[str, DeclaredType], *, drop_table: bool
) -> None:
    """See that no other type refers to one that goes.

    Raises:
        RuleViolation: One does.
    """
    table = f"{SCHEMA}.{declared.table_name}"
    for other in in_force.values():
        for name, field in other.fields.items():
            if other.name != declared.name and (
                field.to == declared.name or (drop_table and field.table == table)
            ):
                raise RuleViolation(
                    f"{other.name}: {name} refers to {field.to or field.table}; remove "
                    f"{other.name} first, or apply it without this field"
                )


async def _refuse_open(connection: AsyncConnection, name: str) -> None:
    """See that no open import needs the table of a type.

    Raises:
        RuleViolation: One does.
    """
    # An import that is undone needs no table: if the table goes, so do its rows.
    is_undone = runs.c.answers_at != runs.c.id
    query = select(runs.c.id, runs.c.own_state).where(
        runs.c.kind == name, runs.c.ended_at.is_(None), ~is_undone
    )
    found = (await connection.execute(query.order_by(runs.c.created_at, runs.c.id))).all()
    if found:
        named = ", ".join(f"{run} ({state.lower()})" for run, state in found[:_NAMED])
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise RuleViolation(
            f"{SCHEMA}.{name} is needed by open imports: {named}{more}. Answer or cancel them "
            "first, or remove the type without --drop-table"
        )


async def _has_rows(
    connection: AsyncConnection, declared: DeclaredType, organisation_id: int
) -> bool:
    """Whether the table of a type has rows of an organisation, or rows without one."""
    if declared.name in builtin_types():
        table = DOMAIN[declared.table_name]
    elif await columns_of(connection, SCHEMA, declared.table_name):
        table = DOMAIN[register_table(declared)]
    else:
        return False
    some = exists().select_from(table)
    if ORGANISATION in declared.scope:
        some = some.where(table.c[ORGANISATION] == str(organisation_id))
    return bool(await connection.scalar(select(some)))


async def _rows_of(connection: AsyncConnection, declared: DeclaredType, *, alone: bool) -> int:
    """How many rows a type has; nobody adds one meanwhile, if that is wanted."""
    table = DOMAIN[register_table(declared)]
    if alone:
        await connection.exec_driver_sql(locking(declared))
    return (await connection.execute(select(func.count()).select_from(table))).scalar_one()


async def _plans(
    connection: AsyncConnection, declared: Sequence[DeclaredType], *, alone: bool = False
) -> Sequence[Plan]:
    """What leads to versions, once it is seen that they may be put in force.

    Raises:
        RuleViolation: One may not.
    """
    in_force = await _in_force(connection)
    among = {each.name: each for each in declared}
    known = {**builtin_types(), **in_force, **among}
    plans: list[Plan] = []
    done: set[str] = set()
    for each in declared:
        refuse_own(each)
        check_references(each, known)
        await _check_tables(connection, each, among)
        _refuse_other_table(each, in_force.get(each.name), known)
        before = in_force.get(each.name)
        # Of a type that was removed, rows may still be there.
        last = before or await _last_version(connection, each.name)
        meanings = await meanings_of(connection, each, last)
        changes = await connection.run_sync(partial(_changes, each, last, alone))
        # The schema is made once.
        new = [change for change in changes if change.sql not in done]
        done |= {change.sql for change in new}
        plans.append(Plan(each, before, new, meanings))
    for other in in_force.values():
        # A changed type may be none any more that others can refer to.
        if other.name not in among:
            check_references(other, known)
            await _check_tables(connection, other, among, alone=True)
    return plans


async def _last_version(connection: AsyncConnection, name: str) -> DeclaredType | None:
    """The newest version that a type has had; None: it is new."""
    versions = type_versions.c
    query = select(versions.declaration).where(versions.name == name)
    newest = query.order_by(versions.created_at.desc(), versions.digest).limit(1)
    text = (await connection.execute(newest)).scalar_one_or_none()
    return None if text is None else declared_of(text)


def _changes(
    declared: DeclaredType, before: DeclaredType | None, alone: bool, connection: Connection
) -> Sequence[Change]:
    return changes_to(connection, declared, before, alone=alone)


async def _check_tables(
    connection: AsyncConnection,
    declared: DeclaredType,
    among: Mapping[str, DeclaredType],
    *,
    alone: bool = False,
) -> None:
    """See that the tables which references name have the columns that they name.

    Args:
        connection: To the database.
        declared: The type that refers.
        among: Types that are put in force.
        alone: Look at the tables of those alone.

    Raises:
        RuleViolation: One does not.
    """
    made = {f"{SCHEMA}.{each.table_name}": each for each in among.values()}
    for name, field in declared.fields.items():
        if field.table is None or (alone and field.table not in made):
            continue
        for column in (field.row_key or ())[:-1]:
            if column not in declared.scope:
                raise RuleViolation(
                    f"{declared.at('fields', name, 'row_key')}: {name}: 'row_key' names {column} "
                    "before the column that is stored, and 'scope' has no such name; list the "
                    "stored column last, and add the others to 'scope'"
                )
        schema, _, table = field.table.rpartition(".")
        there = made.get(field.table)
        if there is None and await is_own_table(connection, schema or "public", table):
            raise RuleViolation(
                f"{declared.at('fields', name, 'table')}: {name}: {field.table} is a table of "
                "docflow's own; name a table or view of yours, or a declared type with 'to'"
            )
        columns: Collection[str] = (
            await columns_of(connection, schema or "public", table)
            if there is None
            else (*there.natural_key, *there.fields)
        )
        if not columns:
            raise RuleViolation(
                f"{declared.at('fields', name, 'table')}: {name}: there is no table or view "
                f"{field.table}; make it, or correct 'table'"
            )
        named = [("row_key", column) for column in field.row_key or ()]
        for word, column in (*named, ("label", field.label)):
            if column is not None and column not in columns:
                raise RuleViolation(
                    f"{declared.at('fields', name, word)}: {name}: {field.table} has no column "
                    f"{column}; correct {word!r}: {nearest(column, columns)}"
                )


async def _in_force(connection: AsyncConnection) -> Mapping[str, DeclaredType]:
    versions, types = type_versions.c, declared_types.c
    query = (
        select(types.name, versions.declaration)
        .join(type_versions, versions.digest == types.digest)
        .order_by(types.name)
    )
    rows = (await connection.execute(query)).all()
    return {name: declared_of(text) for name, text in rows}


async def _put_in_force(
    connection: AsyncConnection, declared: DeclaredType, by: str | None
) -> None:
    now = datetime.now(UTC)
    version = {
        "digest": declared.digest,
        "name": declared.name,
        "declaration": declared.canonical,
        "created_at": now,
    }
    await connection.execute(insert(type_versions).values(version).on_conflict_do_nothing())
    current = {"digest": declared.digest, "applied_at": now, "applied_by": by}
    await connection.execute(
        insert(declared_types)
        .values(name=declared.name, **current)
        .on_conflict_do_update(
            index_elements=["name"],
            set_=current,
            where=declared_types.c.digest != declared.digest,
        )
    )
