"""The audit: who changed what, when and from where."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, cast

from sqlalchemy import ColumnElement, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.access import audit
from adapters.database.models.runs import runs
from adapters.database.records import SqlOldRows, clean
from workflows.shared.contracts import PlainRecord, served

_LONGEST: Final = 1_000
"""Characters of a text that is kept."""
Actor = Literal["person", "token", "command"]
"""How somebody acts: signed in, by a program's token, or at a machine of docflow."""


class AuditEntry(PlainRecord):
    """A change that somebody made, or tried to make."""

    id: Annotated[int, served("Number of the entry", 7)]
    at: Annotated[datetime, served("When it began", "2026-05-04T10:00:00Z")]
    organisation_id: Annotated[int | None, served("Organisation that it concerns", 3)]
    who: Annotated[str, served("Who acted", "ann")]
    by: Annotated[Actor, served("How they acted", "person")]
    action: Annotated[str, served("Operation of the API, page or command", "cancelImport")]
    object: Annotated[str | None, served("What it was done to", "run/P1/T1")]
    before: Annotated[Any, served("What was changed, as it was", None)]
    after: Annotated[Any, served("What was changed, as it is now", {"enabled": False})]
    reason: Annotated[str | None, served("Why, in the words of who acted", "wrong file")]
    from_where: Annotated[str | None, served("Address of the client, or machine", "10.0.0.7")]
    request_id: Annotated[str | None, served("Header X-Request-Id of the request", None)]
    status: Annotated[
        int | None,
        served("Status of the answer; null: it was begun, and its end is not known", 202),
    ]


@dataclass
class Act:
    """What somebody does, as it is noted.

    An endpoint that knows what it changes adds `object`, `before`, `after` and `reason`.
    """

    who: str
    by: Actor
    action: str
    organisation_id: int | None = None
    """That of the run which `object` names comes before it."""
    object: str | None = None
    before: Any = None
    after: Any = None
    reason: str | None = None
    from_where: str | None = None
    request_id: str | None = None
    id: int | None = None
    """Number of its entry; None: it has none yet."""


@dataclass(frozen=True)
class AuditFilter:
    """Which entries are wanted."""

    organisations: Collection[int] = ()
    """Those whose entries may be seen."""
    others: bool = False
    """Entries of no organisation may be seen as well."""
    who: str | None = None
    action: str | None = None
    object: str | None = None
    organisation: int | None = None
    since: datetime | None = None
    before: int | None = None
    """Number of the last entry of the page before."""


class SqlAudit:
    """The audit; every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, act: Act, status: int | None = None) -> None:
        """Note what somebody is about to do, or has been refused; the act gets its number.

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
            found = await connection.execute(insert(audit).values(row).returning(audit.c.id))
            act.id = found.scalar_one()

    async def end(self, act: Act, status: int) -> None:
        """Note how what somebody began has ended, and what it has changed."""
        values = _changed(act, status)
        if act.organisation_id is not None:
            values["organisation_id"] = func.coalesce(audit.c.organisation_id, act.organisation_id)
        async with self._database.reading() as connection:
            await connection.execute(update(audit).where(audit.c.id == act.id).values(values))

    async def list(self, wanted: AuditFilter, limit: int) -> Sequence[AuditEntry]:
        """Entries, the newest first."""
        query = select(audit).where(*_conditions(wanted)).order_by(audit.c.id.desc()).limit(limit)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings()
            return [AuditEntry.model_validate(dict(row)) for row in rows]


def old_audit(database: Database) -> SqlOldRows:
    """Entries of the audit, by their age."""
    return SqlOldRows(database, audit, audit.c.at, true())


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
    own = columns.organisation_id.in_(sorted(wanted.organisations))
    conditions = [or_(own, columns.organisation_id.is_(None)) if wanted.others else own]
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
