"""Records of partners, and the sessions that are in use."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.transfers import partner_sessions, partners
from adapters.database.records import clean
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('docflow leases'), hashtext(:name))")


class SqlPartnerStore:
    """Tables of partners; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> Partner | None:
        """One; None: there is none."""
        query = select(partners.c.record).where(partners.c.name == name)
        async with self._database.reading() as connection:
            record = (await connection.execute(query)).scalar_one_or_none()
        return None if record is None else Partner.model_validate_json(record)

    async def all(self) -> Sequence[Partner]:
        """All, by name."""
        query = select(partners.c.record).order_by(partners.c.name)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).scalars()
            return [Partner.model_validate_json(each) for each in found]

    async def put(self, partner: Partner, *, expected: int | None = None) -> Partner:
        """Insert or replace; it is given the next revision.

        Raises:
            RuleViolation: Another person has changed it meanwhile.
        """
        query = select(partners.c.revision).where(partners.c.name == partner.name)
        async with self._database.transaction() as connection:
            known = (await connection.execute(query.with_for_update())).scalar_one_or_none()
            if expected is not None and known != expected:
                raise RuleViolation(
                    f"partner {partner.name} was changed meanwhile: look at it again"
                )
            revised = partner.model_copy(update={"revision": (known or 0) + 1})
            values = {"revision": revised.revision, "record": clean(revised.model_dump_json())}
            await connection.execute(
                insert(partners)
                .values(name=partner.name, **values)
                .on_conflict_do_update(index_elements=["name"], set_=values)
            )
        return revised

    async def remove(self, name: str) -> bool:
        """Remove a record; False: there is none."""
        async with self._database.transaction() as connection:
            found = await connection.execute(delete(partners).where(partners.c.name == name))
            return bool(found.rowcount)

    async def lease(self, name: str, owner: str, slots: int, seconds: float) -> bool:
        """Take or prolong one of a partner's sessions; False: all are taken."""
        now, sessions = datetime.now(UTC), partner_sessions.c
        until = now + timedelta(seconds=seconds)
        take = (
            insert(partner_sessions)
            .values(name=name, owner=owner, until=until)
            .on_conflict_do_update(index_elements=["name", "owner"], set_={"until": until})
        )
        others = select(func.count()).where(sessions.name == name, sessions.owner != owner)
        async with self._database.transaction() as connection:
            # Two that ask at the same moment count one after the other.
            await connection.execute(_LOCK, {"name": name})
            await connection.execute(
                delete(partner_sessions).where(sessions.name == name, sessions.until < now)
            )
            if (await connection.execute(others)).scalar_one() >= slots:
                return False
            await connection.execute(take)
        return True

    async def release(self, name: str, owner: str) -> None:
        """Give a session back."""
        sessions = partner_sessions.c
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(partner_sessions).where(sessions.name == name, sessions.owner == owner)
            )
