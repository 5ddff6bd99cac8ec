"""Who is signed in to the pages, on every gateway of an installation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import CursorResult, RowMapping, delete, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.access import sessions
from adapters.database.records import SqlOldRows, clean
from adapters.ports.access import USE_NOTED_EACH, Session, hash_of

_MOST: Final = 1_000


class SqlSessions:
    """Sessions and sign-in links, each found by a secret of which only the hash is kept.

    Every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: Session, secret: str, now: datetime) -> None:
        """Keep a new one."""
        row = {
            "sha256": hash_of(secret),
            "subject": clean(session.subject),
            "name": session.name and clean(session.name),
            "email": session.email and clean(session.email),
            "organisations": list(session.organisations),
            "roles": sorted(session.roles),
            "roles_in": {str(id): sorted(roles) for id, roles in session.roles_in.items()},
            "provider": session.provider,
            "token_id": session.token_id,
            "id_token": session.id_token,
            "is_link": session.is_link,
            "made_at": now,
            "seen_at": now,
            "expires_at": session.expires_at,
        }
        async with self._database.reading() as connection:
            await connection.execute(insert(sessions).values(row))

    async def find(self, secret: str) -> Session | None:
        """A session, also one that is over; None: there is none."""
        query = select(sessions).where(_is(secret), ~sessions.c.is_link)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
        return None if row is None else _session(row)

    async def note_use(self, secret: str, now: datetime) -> None:
        """Note that a session is in use, unless that was noted less than a minute ago."""
        is_due = sessions.c.seen_at < now - USE_NOTED_EACH
        async with self._database.reading() as connection:
            await connection.execute(
                update(sessions).where(_is(secret), is_due).values(seen_at=now)
            )

    async def take_link(self, secret: str, now: datetime) -> Session | None:
        """Use up a link; None: there is none, it is over, or somebody has used it."""
        own = delete(sessions).where(_is(secret), sessions.c.is_link, sessions.c.expires_at > now)
        async with self._database.reading() as connection:
            row = (await connection.execute(own.returning(sessions))).mappings().one_or_none()
        return None if row is None else replace(_session(row), is_link=False)

    async def end(self, secret: str) -> None:
        """End a session, if there is one."""
        async with self._database.reading() as connection:
            await connection.execute(delete(sessions).where(_is(secret)))

    async def end_all(self, subject: str) -> int:
        """End every session of a person, and their links; how many."""
        own = delete(sessions).where(sessions.c.subject == clean(subject))
        async with self._database.reading() as connection:
            return cast(CursorResult[Any], await connection.execute(own)).rowcount

    async def list(self, now: datetime, since: datetime) -> Sequence[Session]:
        """The newest that are not over; at most 1,000.

        Args:
            now: The moment.
            since: Sessions whose last use lies before it are over.
        """
        columns = sessions.c
        in_use = or_(columns.is_link, columns.seen_at > since)
        query = select(sessions).where(columns.expires_at > now, in_use)
        query = query.order_by(columns.made_at.desc()).limit(_MOST)
        async with self._database.reading() as connection:
            return [_session(row) for row in (await connection.execute(query)).mappings()]


def old_sessions(database: Database) -> SqlOldRows:
    """Sessions and links, by the moment that they end at the latest."""
    return SqlOldRows(database, sessions, sessions.c.expires_at, true())


def _is(secret: str) -> Any:
    return sessions.c.sha256 == hash_of(secret)


def _session(row: RowMapping) -> Session:
    known: dict[str, Any] = {name: value for name, value in row.items() if name != "sha256"}
    known["organisations"], known["roles"] = tuple(row["organisations"]), tuple(row["roles"])
    known["roles_in"] = {int(id): tuple(roles) for id, roles in row["roles_in"].items()}
    return Session(**known)
