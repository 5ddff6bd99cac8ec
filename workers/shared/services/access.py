"""The audit and the tokens of programs, for admins."""

import secrets
import socket
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.database.access import SqlApiTokens, SqlAudit
from adapters.database.engine import Database
from adapters.ports.access import PREFIX, Act, ApiToken, AuditEntry, AuditFilter, UploadGrant
from workers.shared.services.errors import Forbidden, NotFound, Refused
from workers.shared.services.identity import ADMIN, MAPPER, Identity, acting_user, require_role

_SECRET_BYTES: Final = 32
_SESSION_BYTES: Final = 12


async def read_audit(
    audit: SqlAudit, who: Identity, wanted: AuditFilter, limit: int
) -> Sequence[AuditEntry]:
    """Return entries of the organisations where somebody is an admin, the newest first.

    Raises:
        Forbidden: They are an admin nowhere.
    """
    if not who.may_anywhere(ADMIN):
        raise Forbidden("the audit is for admins: your token lacks the role admin")
    visible = replace(wanted, organisations=who.where(ADMIN), others=who.may(ADMIN))
    return await audit.list(visible, limit)


@asynccontextmanager
async def noted(
    database: Database, environment: Mapping[str, str], action: str, object: str
) -> AsyncGenerator[Act]:
    """Note in the audit what a local command changes, before it does so; the block may add to it.

    Args:
        database: Where the audit is.
        environment: Of the process.
        action: The command, as it is typed; empty: it changes nothing, and is not noted.
        object: What it changes.

    Raises:
        Unavailable: The database is not available: nothing was changed.
    """
    act = Act(acting_user(environment), "command", action, object=object)
    if not action:
        yield act
        return
    audit, act.from_where = SqlAudit(database), socket.gethostname()
    await audit.begin(act)
    try:
        yield act
    except Exception:
        await audit.end(act, 1)
        raise
    await audit.end(act, 0)


class ApiTokenService:
    """The tokens of programs, for the admins of their organisations.

    Args:
        store: Where they are.
    """

    def __init__(self, store: SqlApiTokens) -> None:
        self._store = store

    async def make(
        self,
        who: Identity,
        name: str,
        organisation: int | None,
        roles: Sequence[str],
        expires_at: datetime | None,
    ) -> tuple[ApiToken, str]:
        """Make a token that is worth no more than its maker's own roles.

        Args:
            who: The maker.
            name: What will use it.
            organisation: Where its roles count; None: for what belongs to no organisation.
            roles: Its roles.
            expires_at: When it ends to be valid; None: never.

        Returns:
            The token, and its text, which cannot be read again.

        Raises:
            Forbidden: They are no admin there, lack a role, or are a program themselves.
            Refused: Its end is in the past.
        """
        for role in (ADMIN, *roles):
            require_role(who, role, organisation)
        if who.by == "token":
            # It would outlive the token that made it.
            raise Forbidden("a program cannot make tokens; ask a person who is an admin")
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise Refused(f"expires_at: {expires_at.isoformat()} is in the past")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        token = await self._store.add(name, organisation, roles, secret, who.subject, expires_at)
        return token, f"{PREFIX}{token.id}_{secret}"

    async def make_upload_token(
        self,
        who: Identity,
        name: str,
        organisation: int,
        grant: UploadGrant,
        lasts: timedelta,
    ) -> tuple[ApiToken, str]:
        """Make a token for one kind of upload by a person whom another site knows.

        Args:
            who: The maker, who may upload there.
            name: The person.
            organisation: Whose uploads they are.
            grant: What it is for; without a session it begins one.
            lasts: How long it is valid.

        Raises:
            Forbidden: They are no mapper there.
        """
        require_role(who, MAPPER, organisation)
        if not grant.session:
            session = secrets.token_urlsafe(_SESSION_BYTES)
            grant = grant.model_copy(update={"session": session})
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        until = datetime.now(UTC) + lasts
        token = await self._store.add(
            name, organisation, (MAPPER,), secret, who.subject, until, grant
        )
        return token, f"{PREFIX}{token.id}_{secret}"

    async def renew_upload_token(
        self, who: Identity, session: str, lasts: timedelta
    ) -> tuple[ApiToken, str]:
        """Make a further token of a session: it is for what the one before was, and sees the same.

        Raises:
            Refused: There is no such session where they are mappers, or it was revoked.
        """
        last = await self._store.newest_of(session)
        if (
            last is None
            or last.upload is None
            or last.organisation_id is None
            or await self._store.is_revoked(session)
            or not who.may(MAPPER, last.organisation_id)
        ):
            raise Refused(
                "session: there is no such session, or it was revoked; make a token without one"
            )
        return await self.make_upload_token(
            who, last.name, last.organisation_id, last.upload, lasts
        )

    async def embedding(self, session: str) -> UploadGrant | None:
        """What the importer of a session is for; None: no token of it is valid."""
        last = await self._store.newest_of(session)
        if last is None or last.revoked_at is not None or last.expires_at is None:
            return None
        return last.upload if last.expires_at > datetime.now(UTC) else None

    async def embedding_origins(self) -> Collection[str]:
        """The sites that may show an importer now."""
        return await self._store.embedding_origins()

    async def list(self, who: Identity) -> Sequence[ApiToken]:
        """Return the tokens that an admin may see, the newest first.

        Raises:
            Forbidden: They are an admin nowhere.
        """
        if not who.may_anywhere(ADMIN):
            raise Forbidden("API tokens are for admins: your token lacks the role admin")
        return await self._store.list(who.where(ADMIN), who.may(ADMIN))

    async def get(self, who: Identity, id: int) -> ApiToken:
        """Return one token.

        Raises:
            NotFound: There is none of this number that they may see.
        """
        found = await self._store.find(id)
        if found is None or not who.may(ADMIN, found[0].organisation_id):
            raise NotFound(f"there is no API token {id}")
        return found[0]

    async def revoke(self, who: Identity, id: int) -> ApiToken:
        """Make a token invalid, on all gateways within seconds; return it as it was.

        Raises:
            NotFound: There is none of this number that they may see.
        """
        found = await self.get(who, id)
        await self._store.revoke(id)
        return found
