"""`jobconfig` in the database."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.transfers import jobconfig, jobconfig_changes
from contracts.transfers import RouteRemark, RouteRule


class SqlRouteStore:
    """Tables of rules; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def version(self) -> str:
        """How many changes there were, and the number of the last one.

        Of two at the same moment the one with the lower number may be committed later.
        """
        query = select(func.count(), func.max(jobconfig_changes.c.id))
        async with self._database.reading() as connection:
            number, last = (await connection.execute(query)).one()
        return f"{number}/{last or 0}"

    async def rules(self) -> Sequence[RouteRule]:
        """All of them, those that are disabled included."""
        query = select(jobconfig.c.record).order_by(jobconfig.c.queue, jobconfig.c.rule)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).scalars().all()
        # Of a hundred thousand that takes a second: runs are served meanwhile.
        return await asyncio.to_thread(lambda: list(map(RouteRule.model_validate_json, found)))

    async def unusable(self) -> Sequence[RouteRemark]:
        """None: every row was checked when it was written."""
        return ()

    async def put(self, rule: RouteRule) -> None:
        """Insert or replace a rule; the change stands in the trail."""
        key = {"queue": rule.queue, "rule": rule.rule}
        record = clean(rule.model_dump_json())
        put = (
            self._insert(jobconfig)
            .values(**key, record=record)
            .on_conflict_do_update(index_elements=list(key), set_={"record": record})
        )
        async with self._database.transaction() as connection:
            is_new = await _record(connection, rule.queue, rule.rule) is None
            await connection.execute(put)
            await self._note(connection, rule, "added" if is_new else "changed")

    async def remove(self, queue: str, rule: str, by: str | None) -> bool:
        """Remove a rule; False: there is none."""
        own = (jobconfig.c.queue == queue) & (jobconfig.c.rule == rule)
        async with self._database.transaction() as connection:
            record = await _record(connection, queue, rule)
            if record is None:
                return False
            await connection.execute(delete(jobconfig).where(own))
            gone = RouteRule.model_validate_json(record)
            changed = {"by": by, "changed_at": datetime.now(UTC)}
            await self._note(connection, gone.model_copy(update=changed), "removed")
        return True

    async def trail(self, limit: int = 200) -> Sequence[tuple[RouteRule, str]]:
        """Changes, the newest first, each with what was done."""
        query = select(jobconfig_changes).order_by(jobconfig_changes.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            return [
                (RouteRule.model_validate_json(row.record), row.change)
                for row in await connection.execute(query)
            ]

    async def _note(self, connection: AsyncConnection, rule: RouteRule, change: str) -> None:
        await connection.execute(
            self._insert(jobconfig_changes).values(
                queue=rule.queue,
                rule=rule.rule,
                change=change,
                record=clean(rule.model_dump_json()),
                at=datetime.now(UTC),
            )
        )


async def _record(connection: AsyncConnection, queue: str, rule: str) -> str | None:
    query = (
        select(jobconfig.c.record)
        .where(jobconfig.c.queue == queue, jobconfig.c.rule == rule)
        .with_for_update()
    )
    return (await connection.execute(query)).scalar_one_or_none()
