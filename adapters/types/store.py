"""Declared types in the database: which are in force, and every version that runs may use."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.engine import acquire_advisory_lock
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.database.models.every import metadata
from adapters.database.models.types import declared_types, type_versions
from adapters.types.files import builtin_types
from adapters.types.tables import Change, changes_to, declared_of
from adapters.types.targets import TargetTables
from workflows.shared.declared_types import DeclaredType, check_references
from workflows.shared.errors import RuleViolation

_LOCK: Final = "docflow types apply"


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

    async def version(self, digest: str) -> DeclaredType | None:
        """One version of a type; None: it was never in force here."""
        query = select(type_versions.c.declaration).where(type_versions.c.digest == digest)
        async with self._database.reading() as connection:
            text = (await connection.execute(query)).scalar_one_or_none()
        return None if text is None else declared_of(text)

    async def plan(
        self, declared: DeclaredType, among: Mapping[str, DeclaredType] | None = None
    ) -> Sequence[Change]:
        """The statements that lead the database to a version; nothing is changed.

        Args:
            declared: The version.
            among: Types that would be put in force with it, by name.

        Raises:
            RuleViolation: No statement leads there.
        """
        async with self._database.reading() as connection:
            changes = await _changes(connection, declared, among)
        there = await self._targets.plan(declared) if _is_of_a_team(declared) else ()
        return [*changes, *there]

    async def apply(
        self,
        declared: DeclaredType,
        among: Mapping[str, DeclaredType] | None = None,
        *,
        by: str | None = None,
        allow_loss: bool = False,
    ) -> Sequence[Change]:
        """Put a version in force: make or change its table, and use it for new runs.

        Appliers take turns. A second call with the same version changes nothing.

        Args:
            declared: The version.
            among: Types that are put in force with it, by name; it may refer to them.
            by: Who applies it.
            allow_loss: Carry out statements that lose values.

        Returns:
            The statements that were carried out.

        Raises:
            RuleViolation: Values would be lost, or no statement leads there; nothing is changed. Or
                the type does not fit a table of its team.
        """
        async with self._database.transaction() as connection:
            await acquire_advisory_lock(connection, _LOCK)
            changes = await _changes(connection, declared, among)
            losses = [change.loses for change in changes if change.loses is not None]
            if losses and not allow_loss:
                raise RuleViolation(
                    f"{declared.name}: this would lose {'; '.join(dict.fromkeys(losses))}. Keep "
                    "the fields, or say --allow-loss"
                )
            there = await self._targets.apply(declared) if _is_of_a_team(declared) else ()
            for change in changes:
                await connection.exec_driver_sql(change.sql)
            await _put_in_force(connection, declared, by)
        return [*changes, *there]


def _is_of_a_team(declared: DeclaredType) -> bool:
    """Whether rows go into a table of the team that declares the type."""
    return declared.target is not None and declared.target.table is not None


def _refuse_own(declared: DeclaredType) -> None:
    if declared.name in builtin_types():
        raise RuleViolation(f"{declared.name} is a type of docflow's own; choose another name")
    if declared.table_name in metadata.tables:
        raise RuleViolation(
            f"{declared.name}: {declared.table_name} is a table of docflow's own; write `table:` "
            "with another name"
        )


def _refuse_other_table(declared: DeclaredType, known: Mapping[str, DeclaredType]) -> None:
    """See that a type keeps its table, and shares it with no other type.

    Raises:
        RuleViolation: It does not.
    """
    before = known.get(declared.name)
    if before is not None and before.table_name != declared.table_name:
        raise RuleViolation(
            f"{declared.name}: its rows are in {before.table_name}, and would not be seen any "
            f"more; write 'table: {before.table_name}', or declare a type of another name"
        )
    for other in known.values():
        if other.name not in (declared.name, *builtin_types()) and (
            other.table_name == declared.table_name
        ):
            raise RuleViolation(
                f"{declared.name}: the table {declared.table_name} is that of the type "
                f"{other.name}; choose another one"
            )


async def _changes(
    connection: AsyncConnection,
    declared: DeclaredType,
    among: Mapping[str, DeclaredType] | None = None,
) -> Sequence[Change]:
    """The statements that lead to a version, once it is seen that it may be put in force.

    Raises:
        RuleViolation: It may not.
    """
    _refuse_own(declared)
    in_force = {**builtin_types(), **await _in_force(connection)}
    check_references(declared, {**in_force, **(among or {}), declared.name: declared})
    _refuse_other_table(declared, in_force)
    return await connection.run_sync(lambda plain: changes_to(plain, declared))


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
