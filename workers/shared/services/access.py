"""The audit and the tokens of programs, for admins."""

import secrets
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from adapters.database.access import SqlApiTokens, SqlAudit
from adapters.database.engine import Database
from adapters.ports.access import PREFIX, Act, ApiToken, AuditEntry, AuditFilter
from workers.shared.services.errors import Forbidden, NotFound, Refused
from workers.shared.services.identity import ADMIN, Identity, acting_user, require_role

_SECRET_BYTES: Final = 32


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
