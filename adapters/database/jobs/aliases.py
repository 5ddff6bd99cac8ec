"""The ids that foreign systems give to jobs."""

from datetime import UTC, datetime

from sqlalchemy import delete, select, update

from adapters.database.engine import Database
from adapters.database.models.webhooks import job_aliases
from adapters.ports.jobs import JobAlias


class SqlJobAliases:
    """Aliases; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert

    async def get(self, alias: str) -> JobAlias | None:
        """What is kept of a foreign id; None: nothing."""
        query = select(job_aliases).where(job_aliases.c.alias == alias)
        async with self._database.reading() as connection:
            kept = (await connection.execute(query)).one_or_none()
        return None if kept is None else JobAlias(kept.alias, kept.digest, kept.job_id)

    async def claim(self, alias: JobAlias) -> JobAlias:
        """Keep an alias, unless it is taken; what is kept."""
        row = {"alias": alias.alias, "digest": alias.digest, "job_id": alias.job_id}
        query = select(job_aliases).where(job_aliases.c.alias == alias.alias)
        async with self._database.transaction() as connection:
            await connection.execute(
                self._insert(job_aliases)
                .values(**row, created_at=datetime.now(UTC))
                .on_conflict_do_nothing()
            )
            kept = (await connection.execute(query)).one()
        return JobAlias(kept.alias, kept.digest, kept.job_id)

    async def move(self, alias: JobAlias) -> None:
        """Let an alias name another job: the one that it named was never started."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(job_aliases)
                .where(job_aliases.c.alias == alias.alias, job_aliases.c.digest == alias.digest)
                .values(job_id=alias.job_id)
            )

    async def release(self, alias: JobAlias) -> None:
        """Forget an alias whose job will never be started; one that has changed stays."""
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(job_aliases).where(
                    job_aliases.c.alias == alias.alias,
                    job_aliases.c.digest == alias.digest,
                    job_aliases.c.job_id == alias.job_id,
                )
            )
