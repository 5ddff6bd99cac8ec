"""Declared types in the database: which are in force, and every version that runs may use."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.engine import acquire_advisory_lock
from adapters.database.engine import Database
from adapters.database.models.types import declared_types, type_versions
from adapters.types.files import builtin_types
from adapters.types.tables import Change, changes_to, declared_of
from workflows.shared.declared_types import DeclaredType, check_references
from workflows.shared.errors import RuleViolation

_LOCK: Final = "docflow types apply"


class SqlDeclaredTypes:
    """The declared types of an installation.

    Every method raises `Unavailable` when the database is unavailable or busy.

    Args:
        database: Where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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

    async def plan(self, declared: DeclaredType) -> Sequence[Change]:
        """The statements that lead the database to a version; nothing is changed.

        Raises:
            RuleViolation: No statement leads there.
        """
        _refuse_own(declared)
        async with self._database.reading() as connection:
            return await connection.run_sync(lambda plain: changes_to(plain, declared))

    async def apply(
        self, declared: DeclaredType, *, by: str | None = None, allow_loss: bool = False
    ) -> Sequence[Change]:
        """Put a version in force: make or change its table, and use it for new runs.

        Appliers take turns. A second call with the same version changes nothing.

        Args:
            declared: The version.
            by: Who applies it.
            allow_loss: Carry out statements that lose values.

        Returns:
            The statements that were carried out.

        Raises:
            RuleViolation: Values would be lost, or no statement leads there; nothing is changed.
        """
        _refuse_own(declared)
        async with self._database.transaction() as connection:
            await acquire_advisory_lock(connection, _LOCK)
            known = {**builtin_types(), **await _in_force(connection)}
            check_references(declared, {**known, declared.name: declared})
            changes = await connection.run_sync(lambda plain: changes_to(plain, declared))
            losses = [change.loses for change in changes if change.loses is not None]
            if losses and not allow_loss:
                raise RuleViolation(
                    f"{declared.name}: this would lose {'; '.join(dict.fromkeys(losses))}. Keep "
                    "the fields, or say --allow-loss"
                )
            for change in changes:
                await connection.exec_driver_sql(change.sql)
            await _put_in_force(connection, declared, by)
        return changes


def _refuse_own(declared: DeclaredType) -> None:
    if declared.name in builtin_types():
        raise RuleViolation(f"{declared.name} is a type of docflow's own; choose another name")


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
