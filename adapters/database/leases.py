"""Leases, in one table."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.database.models.leases import leases
from adapters.ports.leases import Claim, LeaseWait

_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('docflow leases'), hashtext(:resource))")
"""Two runs that ask for a resource for the first time do not see each other's rows."""


class SqlLeases:
    """The leases of all runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def take(self, owner: str, claims: Sequence[Claim], keep: timedelta) -> LeaseWait | None:
        """Take leases, one resource after the other, in the order in which runs first asked."""
        for claim in claims:
            async with self._database.transaction() as connection:
                position = await self._take(connection, owner, claim, datetime.now(UTC), keep)
            if position is not None:
                return LeaseWait(claim.resource, position)
        return None

    async def _take(
        self, connection: AsyncConnection, owner: str, claim: Claim, now: datetime, keep: timedelta
    ) -> int | None:
        """None: it is granted."""
        if self._database.dialect == "postgresql":
            await connection.execute(_LOCK, {"resource": claim.resource})
        await connection.execute(_lost(claim.resource, owner, now))
        mine = (leases.c.resource == claim.resource, leases.c.owner == owner)
        values: dict[str, Any] = {"units": claim.units, "expires_at": now + keep}
        await connection.execute(
            self._insert(leases)
            .values(resource=claim.resource, owner=owner, granted=False, **values)
            .on_conflict_do_update(
                index_elements=["resource", "owner"], set_={"expires_at": now + keep}
            )
        )
        own = (await connection.execute(select(leases).where(*mine))).one()
        if own.granted:
            return None
        others = select(
            func.coalesce(func.sum(leases.c.units), 0),
            func.count().filter(~leases.c.granted),
        ).where(
            leases.c.resource == claim.resource,
            leases.c.owner != owner,
            # Those that came before have a right to what is free, also before they ask again.
            leases.c.granted | (leases.c.position < own.position),
        )
        used, ahead = (await connection.execute(others)).one()
        if used + min(claim.units, claim.limit) > claim.limit:
            return int(ahead) + 1
        await connection.execute(update(leases).where(*mine).values(granted=True))
        return None

    async def waits(self, owner: str) -> LeaseWait | None:
        """What a run waits for; None: nothing."""
        query = select(leases).where(leases.c.owner == owner, ~leases.c.granted)
        async with self._database.reading() as connection:
            own = (await connection.execute(query)).first()
            if own is None:
                return None
            ahead = await connection.scalar(
                select(func.count()).where(
                    leases.c.resource == own.resource,
                    ~leases.c.granted,
                    leases.c.position < own.position,
                )
            )
        return LeaseWait(own.resource, (ahead or 0) + 1)


def _lost(resource: str, owner: str, now: datetime) -> Any:
    """The places of others that no longer ask."""
    return delete(leases).where(
        leases.c.resource == resource,
        leases.c.owner != owner,
        ~leases.c.granted,
        leases.c.expires_at < now,
    )


async def release(connection: AsyncConnection, owner: str) -> None:
    """Release the leases and places of a run, in the transaction that ends its work."""
    await connection.execute(delete(leases).where(leases.c.owner == owner))
