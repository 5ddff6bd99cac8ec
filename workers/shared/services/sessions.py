"""Sessions of the pages, for the operators of an installation."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.database.sessions import SqlSessions
from adapters.ports.access import Session
from workers.shared.settings.sign_in import SignInSettings

LINK: Final = "docflow_link_"
"""Begins what a sign-in link carries."""
_SECRET_BYTES: Final = 32


def is_over(session: Session, settings: SignInSettings, now: datetime) -> bool:
    """Whether a session has ended by itself."""
    if session.expires_at <= now:
        return True
    idle = timedelta(minutes=settings.idle_minutes)
    return session.seen_at is not None and session.seen_at + idle <= now


async def make_link(
    store: SqlSessions,
    subject: str,
    organisations: Sequence[int],
    roles: Sequence[str],
    name: str | None,
    lasts: timedelta,
) -> str:
    """Make what signs a person in, once.

    Args:
        store: Where it is kept, by its hash.
        subject: Who they are.
        organisations: Theirs.
        roles: In each of the organisations, and for what belongs to none.
        name: That pages show.
        lasts: How long it can be used.

    Returns:
        What the sign-in page takes in the place of a token.
    """
    now = datetime.now(UTC)
    link = Session(
        subject=subject,
        organisations=tuple(organisations),
        roles=tuple(roles),
        name=name,
        expires_at=now + lasts,
        is_link=True,
    )
    secret = LINK + secrets.token_urlsafe(_SECRET_BYTES)
    await store.add(link, secret, now)
    return secret


async def open_sessions(store: SqlSessions, settings: SignInSettings) -> Sequence[Session]:
    """Sessions that are not over, and links that nobody has used, the newest first."""
    now = datetime.now(UTC)
    return await store.list(now, now - timedelta(minutes=settings.idle_minutes))
