"""Rejected messages, leases, and the removal of rows by age."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, TypeAdapter
from pydantic_core import from_json
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    CursorResult,
    RowMapping,
    Table,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.database.models.imports import rejected_messages
from adapters.database.models.runs import leases
from adapters.ports.batches import Claim, LeaseWait
from adapters.ports.records import (
    REJECTED_BODY_BYTES,
    OpenRejections,
    RejectedFilter,
    RejectedMessage,
)
from workflows.shared.cells import Cell
from workflows.shared.contracts import BlobRef, Problem, built_when_used
from workflows.shared.runs import Visible

_PROBLEMS: Final = TypeAdapter(tuple[Problem, ...], config=built_when_used())
R = TypeVar("R", bound=BaseModel)
_SURROGATES: Final = {code: "\ufffd" for code in (0, *range(0xD800, 0xE000))}


def clean(text: str) -> str:
    """Text without the characters that PostgreSQL refuses (NUL, halves of surrogate pairs)."""
    return text.translate(_SURROGATES)


def is_visible(organisation: ColumnElement[Any], visible: Visible) -> ColumnElement[bool]:
    """Whether a person may see a row.

    Args:
        organisation: Column with the organisation that the row belongs to; null: to none.
        visible: What the person may see.
    """
    own = organisation.in_(sorted(visible.organisations))
    return or_(own, organisation.is_(None)) if visible.others else own


def literals(values: Sequence[str]) -> BindParameter[Any]:
    """Values for `in_` that stand in the text of the statement, and not in its parameters.

    A prepared statement uses an index of some rows only where its text says that it asks for those.
    """
    return bindparam(None, list(values), expanding=True, literal_execute=True)


def record_of(record: type[R], row: RowMapping, texts: Sequence[str] = (), **more: Any) -> R:
    """A record of a row.

    Args:
        record: Its class.
        row: As the database has it.
        texts: Columns that hold JSON; if one is null, the field has its default.
        more: Fields that are no columns.
    """
    columns = dict[str, Any](row)
    parsed = {name: from_json(text) for name in texts if (text := columns.pop(name)) is not None}
    return record.model_validate({**columns, **parsed, **more})


def dump_problems(problems: Iterable[Problem]) -> str:
    """Problems as JSON."""
    return json.dumps([problem.model_dump(exclude_defaults=True) for problem in problems])


def load_problems(text: str) -> tuple[Problem, ...]:
    """Problems from JSON."""
    return _PROBLEMS.validate_json(text)


def dump_cells(cells: Sequence[Cell]) -> str:
    """Cells as JSON; dates and times become an object that names what they are."""
    return json.dumps(list(cells), default=_marked)


def load_cells(text: str) -> list[Cell]:
    """Cells from JSON, of the types they had."""
    return [_unmarked(cell) for cell in json.loads(text)]


def _marked(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    raise TypeError(f"{type(value).__name__} is not a cell")


def _unmarked(value: Any) -> Cell:
    if isinstance(value, dict):
        ((kind, text),) = value.items()  # pyright: ignore[reportUnknownVariableType]
        return (datetime if kind == "datetime" else date).fromisoformat(str(text))  # pyright: ignore[reportUnknownArgumentType]
    return value


_LARGEST_ID: Final = 2**63 - 1
_UNKNOWN_SHA256: Final = ""
"""In rows of earlier releases."""


_IS_OPEN: Final = and_(
    rejected_messages.c.resubmitted_at.is_(None), rejected_messages.c.dismissed_at.is_(None)
)


class SqlRejectedMessages:
    """Rejected messages; every method raises `Unavailable` when the database is unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def probe(self) -> None:
        """See whether messages can be recorded: the database is not a standby, and has room."""
        await self._database.probe_by_writing()

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same id and body of the same queue are kept once."""
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(rejected_messages)
                .values(
                    queue=queue,
                    message_id=None if message_id is None else clean(message_id),
                    reason=clean(reason),
                    description=clean(description),
                    body=_bounded(body),
                    body_sha256=hashlib.sha256(body).hexdigest(),
                    truncated=len(body) > REJECTED_BODY_BYTES,
                    received_at=datetime.now(UTC),
                )
                .on_conflict_do_nothing(index_elements=["queue", "message_id", "body_sha256"])
            )

    async def list(
        self, limit: int = 50, wanted: RejectedFilter | None = None
    ) -> Sequence[RejectedMessage]:
        """The newest first."""
        columns = rejected_messages.c
        query = select(rejected_messages).order_by(columns.id.desc()).limit(limit)
        wanted = wanted or RejectedFilter()
        if wanted.queue is not None:
            query = query.where(columns.queue == clean(wanted.queue))
        if wanted.reason is not None:
            query = query.where(columns.reason == clean(wanted.reason))
        if wanted.is_open is not None:
            query = query.where(_IS_OPEN if wanted.is_open else ~_IS_OPEN)
        if wanted.before is not None:
            query = query.where(columns.id < min(wanted.before, _LARGEST_ID))
        async with self._database.reading() as connection:
            return [_message(row) for row in await connection.execute(query)]

    async def open(self) -> Sequence[OpenRejections]:
        """What was neither sent again nor dismissed, by queue."""
        columns = rejected_messages.c
        query = (
            select(columns.queue, func.count(), func.min(columns.received_at))
            .where(_IS_OPEN)
            .group_by(columns.queue)
            .order_by(columns.queue)
        )
        async with self._database.reading() as connection:
            return [OpenRejections(*row) for row in await connection.execute(query)]

    async def get(self, id: int) -> RejectedMessage | None:
        """One message; there is none with a number beyond the range of the column."""
        if not 0 < id <= _LARGEST_ID:
            return None
        query = select(rejected_messages).where(rejected_messages.c.id == id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _message(row)

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(rejected_messages)
                .where(rejected_messages.c.id == id)
                .values(resubmitted_at=datetime.now(UTC))
            )

    async def dismiss(self, id: int, by: str, note: str | None) -> None:
        """Note that nobody has to look at the message any more."""
        values = {"by": clean(by), "note": None if note is None else clean(note)}
        async with self._database.transaction() as connection:
            await connection.execute(
                update(rejected_messages)
                .where(rejected_messages.c.id == id)
                .values(dismissed_at=datetime.now(UTC), **values)
            )

    async def mark_dead_letter_resubmitted(
        self, queue: str, message_id: str | None, body: bytes
    ) -> None:
        """Note that a message was sent again from its dead letter queue, where it is recorded."""
        columns = rejected_messages.c
        id = None if message_id is None else clean(message_id)
        async with self._database.transaction() as connection:
            await connection.execute(
                update(rejected_messages)
                .where(
                    columns.queue == queue,
                    columns.message_id.is_not_distinct_from(id),
                    columns.body_sha256.in_((hashlib.sha256(body).hexdigest(), _UNKNOWN_SHA256)),
                    columns.resubmitted_at.is_(None),
                )
                .values(resubmitted_at=datetime.now(UTC))
            )


def _bounded(body: bytes) -> bytes:
    """The first 64 KiB, cut between two characters where the body is UTF-8."""
    if len(body) <= REJECTED_BODY_BYTES:
        return body
    end = REJECTED_BODY_BYTES
    while end > REJECTED_BODY_BYTES - 4 and body[end] & 0xC0 == 0x80:
        end -= 1
    return body[:end]


def _message(row: Any) -> RejectedMessage:
    return RejectedMessage(
        id=row.id,
        queue=row.queue,
        message_id=row.message_id,
        reason=row.reason,
        description=row.description,
        body=row.body.decode("utf-8", "replace"),
        truncated=row.truncated,
        received_at=row.received_at,
        resubmitted_at=row.resubmitted_at,
        dismissed_at=row.dismissed_at,
        by=row.by,
        note=row.note,
    )


_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('docflow leases'), hashtext(:resource))")
"""Two runs that ask for a resource for the first time do not see each other's rows."""


class SqlLeases:
    """The leases of all runs; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, owner: str, claims: Sequence[Claim], keep: timedelta) -> LeaseWait | None:
        """Take leases, one resource after the other, in the order in which runs first asked.

        May be called again: a lease that the run has is renewed, and so is its place among those
        that wait. Who does not ask for `keep` loses that place.

        Args:
            owner: Workflow id of the run.
            claims: What it needs; the same resources in the same order for all runs.
            keep: How long a place is kept without being asked for.

        Returns:
            What the run waits for; None: it has all leases, until they are released.
        """
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
        await connection.execute(_LOCK, {"resource": claim.resource})
        await connection.execute(_lost(claim.resource, owner, now))
        mine = (leases.c.resource == claim.resource, leases.c.owner == owner)
        values: dict[str, Any] = {"units": claim.units, "expires_at": now + keep}
        await connection.execute(
            insert(leases)
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


_BLOB = TypeAdapter(BlobRef)


@dataclass(frozen=True, slots=True)
class OldRow:
    """A row whose time is over."""

    key: tuple[Any, ...]
    """Its primary key."""
    blobs: tuple[str, ...] = ()
    """Names of blobs that nothing else names."""


@dataclass(frozen=True, eq=False)
class SqlOldRows:
    """Rows of one table whose time is over; every method raises `Unavailable` without the database.

    Attributes:
        database: Where they are.
        table: With a primary key.
        since: When the time of a row begins; leads an index.
        condition: What else has to be true of a row.
        blob: Names a blob, as JSON, that goes with the row; None: none does.
        emptied: Columns that are overwritten instead of the row being deleted; the condition has
            to be false afterwards.
        also: Tables with rows of the same key, which go first.
    """

    database: Database
    table: Table
    since: Column[Any]
    condition: ColumnElement[bool]
    blob: Column[Any] | None = None
    emptied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    also: Sequence[Table] = ()

    async def count(self, before: datetime, most: int) -> int:
        """How many there are, counted up to `most`."""
        due = select(self.since).where(self._is_due(before)).limit(most).subquery()
        async with self.database.reading() as connection:
            found = await connection.scalar(select(func.count()).select_from(due))
        return int(found or 0)

    async def due(self, before: datetime, limit: int) -> Sequence[OldRow]:
        """The oldest of them.

        Args:
            before: The moment up to which they are no longer kept.
            limit: At most so many.
        """
        key = list(self.table.primary_key.columns)
        blobs = () if self.blob is None else (self.blob,)
        query = select(*key, *blobs).where(self._is_due(before)).order_by(self.since).limit(limit)
        async with self.database.reading() as connection:
            rows = (await connection.execute(query)).all()
        return [OldRow(tuple(row)[: len(key)], _names(row[-1]) if blobs else ()) for row in rows]

    async def remove(self, rows: Sequence[OldRow], before: datetime) -> int:
        """Remove rows in one transaction; one that has changed since it was read stays.

        Returns:
            How many were removed.
        """
        names = [column.name for column in self.table.primary_key.columns]
        keys = [row.key for row in rows]
        async with self.database.transaction() as connection:
            own = and_(_is_one_of(self.table, names, keys), self._is_due(before))
            if self.also:
                # What changes meanwhile waits, or is waited for and no longer due.
                locked = select(*self.table.primary_key.columns).where(own).with_for_update()
                keys = [tuple(row) for row in await connection.execute(locked)]
                if not keys:
                    return 0
                for table in self.also:
                    await connection.execute(delete(table).where(_is_one_of(table, names, keys)))
                own = _is_one_of(self.table, names, keys)
            change = (
                update(self.table).values(**self.emptied) if self.emptied else delete(self.table)
            )
            done = await connection.execute(change.where(own))
        return cast(CursorResult[Any], done).rowcount

    def _is_due(self, before: datetime) -> ColumnElement[bool]:
        return and_(self.since < before, self.condition)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """A kind of row, and how long it is kept."""

    what: str
    """For people."""
    days: int | None
    """None: for ever."""
    rows: SqlOldRows


def _is_one_of(
    table: Table, names: Sequence[str], keys: Sequence[tuple[Any, ...]]
) -> ColumnElement[bool]:
    if len(names) == 1:
        return table.c[names[0]].in_([key[0] for key in keys])
    return tuple_(*(table.c[name] for name in names)).in_(keys)


def _names(blob: str | None) -> tuple[str, ...]:
    return () if blob is None else (_BLOB.validate_json(blob).name,)
