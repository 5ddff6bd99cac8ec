"""The audit (who changed what, when and from where), and the tokens of programs."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, RowMapping, and_, exists, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.access import api_tokens, audit
from adapters.database.models.runs import runs
from adapters.database.records import SqlOldRows, clean, is_visible
from adapters.ports.access import (
    PREFIX,
    USE_NOTED_EACH,
    Act,
    ApiToken,
    AuditEntry,
    AuditFilter,
    UploadGrant,
    hash_of,
)
from workflows.shared.runs import Visible

_LONGEST: Final = 1_000
"""Characters of a text that is kept."""
_BEGINNING: Final = 4
"""Characters of a secret that are stored, for people."""
_MOST_TOKENS: Final = 1_000
_LARGEST_ID: Final = 2**63 - 1


class SqlAudit:
    """The audit; every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, act: Act, status: int | None = None) -> None:
        """Note what somebody is about to do, or has been refused.

        The act gets the number of its entry, and the organisation of the run that it is about.

        Args:
            act: What they do.
            status: Of the answer, if it is known.
        """
        organisation: Any = act.organisation_id
        if act.object is not None:
            named = or_(runs.c.id == clean(act.object), runs.c.key == clean(act.object))
            of_run = select(runs.c.organisation_id).where(named).limit(1).scalar_subquery()
            organisation = func.coalesce(of_run, act.organisation_id)
        row = {
            **_changed(act, status),
            "at": datetime.now(UTC),
            "organisation_id": organisation,
            "who": _text(act.who),
            "by": act.by,
            "action": act.action,
            "from_where": _text(act.from_where),
            "request_id": _text(act.request_id),
        }
        async with self._database.reading() as connection:
            noted = insert(audit).values(row).returning(audit.c.id, audit.c.organisation_id)
            act.id, act.organisation_id = (await connection.execute(noted)).one()

    async def end(self, act: Act, status: int) -> None:
        """Note how what somebody began has ended, and what it has changed."""
        values = {**_changed(act, status), "organisation_id": act.organisation_id}
        async with self._database.reading() as connection:
            await connection.execute(update(audit).where(audit.c.id == act.id).values(values))

    async def list(self, wanted: AuditFilter, limit: int) -> Sequence[AuditEntry]:
        """Entries, the newest first."""
        query = select(audit).where(*_conditions(wanted)).order_by(audit.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings()
            return [AuditEntry.model_validate(dict(row)) for row in rows]


class SqlApiTokens:
    """The tokens of programs; every method raises `Unavailable` without the database.

    Args:
        database: Where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        name: str,
        organisation_id: int | None,
        roles: Sequence[str],
        secret: str,
        made_by: str,
        expires_at: datetime | None,
        upload: UploadGrant | None = None,
    ) -> ApiToken:
        """Keep a new token by the hash of its secret."""
        row = {
            "name": clean(name),
            "organisation_id": organisation_id,
            "roles": list(roles),
            "sha256": hash_of(secret),
            "beginning": secret[:_BEGINNING],
            "made_by": clean(made_by),
            "made_at": datetime.now(UTC),
            "expires_at": expires_at,
            "session": upload and upload.session,
            "upload": upload and _storable(upload.model_dump()),
        }
        async with self._database.reading() as connection:
            made = await connection.execute(insert(api_tokens).values(row).returning(api_tokens))
            return _token(made.mappings().one())

    async def list(self, organisations: Collection[int], others: bool) -> Sequence[ApiToken]:
        """The newest tokens of some organisations, the newest first; at most 1,000.

        Upload tokens, which last for minutes, are not among them.

        Args:
            organisations: Whose.
            others: Those of no organisation as well.
        """
        visible = Visible(organisations, others)
        lasting = api_tokens.c.session.is_(None)
        query = select(api_tokens).where(is_visible(api_tokens.c.organisation_id, visible), lasting)
        query = query.order_by(api_tokens.c.id.desc()).limit(_MOST_TOKENS)
        async with self._database.reading() as connection:
            return [_token(row) for row in (await connection.execute(query)).mappings()]

    async def find(self, id: int) -> tuple[ApiToken, str] | None:
        """A token and the hash of its secret; None: there is none of this number."""
        if not 0 < id <= _LARGEST_ID:
            return None
        async with self._database.reading() as connection:
            found = await connection.execute(select(api_tokens).where(api_tokens.c.id == id))
            row = found.mappings().one_or_none()
        return None if row is None else (_token(row), row["sha256"])

    async def newest_of(self, session: str) -> ApiToken | None:
        """The newest upload token of a session; None: there is none."""
        tokens = api_tokens.c
        query = select(api_tokens).where(tokens.session == session).order_by(tokens.id.desc())
        async with self._database.reading() as connection:
            row = (await connection.execute(query.limit(1))).mappings().one_or_none()
        return None if row is None else _token(row)

    async def is_revoked(self, session: str) -> bool:
        """Whether any upload token of a session was revoked: that ends the session."""
        tokens = api_tokens.c
        query = select(exists().where(tokens.session == session, tokens.revoked_at.is_not(None)))
        async with self._database.reading() as connection:
            return bool((await connection.execute(query)).scalar_one())

    async def embedding_origins(self) -> Collection[str]:
        """The sites that upload tokens name which are valid now."""
        tokens = api_tokens.c
        is_valid = and_(tokens.expires_at > datetime.now(UTC), tokens.revoked_at.is_(None))
        query = select(tokens.upload["origins"]).where(is_valid, tokens.session.is_not(None))
        async with self._database.reading() as connection:
            found = await connection.scalars(query.distinct())
            return {origin for origins in found for origin in origins}

    async def note_use(self, id: int) -> None:
        """Note that a token is in use, unless that was noted less than a minute ago."""
        now, used = datetime.now(UTC), api_tokens.c.last_used_at
        is_due = or_(used.is_(None), used < now - USE_NOTED_EACH)
        change = update(api_tokens).where(api_tokens.c.id == id, is_due).values(last_used_at=now)
        async with self._database.reading() as connection:
            await connection.execute(change)

    async def revoke(self, id: int) -> None:
        """Make a token invalid, with its whole session; one that is revoked stays as it is."""
        tokens = api_tokens.c
        session = select(tokens.session).where(tokens.id == id).scalar_subquery()
        named = or_(tokens.id == id, tokens.session == session)
        own = update(api_tokens).where(named, tokens.revoked_at.is_(None))
        async with self._database.reading() as connection:
            await connection.execute(own.values(revoked_at=datetime.now(UTC)))


def _token(row: RowMapping) -> ApiToken:
    beginning = f"{PREFIX}{row['id']}_{row['beginning']}"
    return ApiToken.model_validate({**row, "beginning": beginning})


def old_audit(database: Database) -> SqlOldRows:
    """Entries of the audit, by their age."""
    return SqlOldRows(database, audit, audit.c.at, true())


def old_upload_tokens(database: Database) -> SqlOldRows:
    """Upload tokens, by when they expired."""
    tokens = api_tokens.c
    return SqlOldRows(database, api_tokens, tokens.expires_at, tokens.session.is_not(None))


def _changed(act: Act, status: int | None) -> dict[str, Any]:
    return {
        "object": _text(act.object),
        "before": _storable(act.before),
        "after": _storable(act.after),
        "reason": _text(act.reason),
        "status": status,
    }


def _text(text: str | None) -> str | None:
    return None if text is None else clean(text[:_LONGEST])


def _storable(value: Any) -> Any:
    """JSON without the characters that PostgreSQL refuses."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {clean(str(name)): _storable(each) for name, each in items}
    if isinstance(value, list | tuple):
        return [_storable(each) for each in cast("Sequence[Any]", value)]
    return value


def _conditions(wanted: AuditFilter) -> Sequence[ColumnElement[bool]]:
    columns = audit.c
    visible = Visible(wanted.organisations, wanted.others)
    conditions = [is_visible(columns.organisation_id, visible)]
    for column, value in (
        (columns.who, wanted.who),
        (columns.action, wanted.action),
        (columns.object, wanted.object),
        (columns.organisation_id, wanted.organisation),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.since is not None:
        conditions.append(columns.at >= wanted.since)
    if wanted.before is not None:
        conditions.append(columns.id < wanted.before)
    return conditions
