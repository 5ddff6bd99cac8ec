"""States of transfers, routes, and who may work on a sequence key.

Who may work on a sequence key: rows of runs, which Temporal keeps alive or ends.

A row belongs to a run and not to a process: a worker that is killed loses no turn, since its run
continues. The rows of a run go with its end, in the store of transfers, or with the sweep.

A watch reserves a place for each event before it is sent. Its key is not known yet: until the run
has stood in line for one, or needs none, it is before every later event of that watch.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Delete,
    Executable,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    not_,
    null,
    or_,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.transfers.records import Transfer, TransferState
from adapters.database.engine import Database
from adapters.database.models.transfers import (
    jobconfig,
    jobconfig_changes,
    jobstatus,
    transfer_turns,
    transfers,
)
from adapters.database.records import SqlOldRows, clean, is_visible, record_of
from adapters.ports.records import OpenRow
from workflows.shared.runs import Visible
from workflows.transfers.events import TransferStatus
from workflows.transfers.routes import RouteRemark, RouteRule, require_unchanged
from workflows.transfers.runs import file_job_id

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtext('docflow turns'), hashtext(:key))")
_RESERVED: Final = "watch "
"""Keys of reservations begin so, with watch and queue; those of lines are hashes."""
_turns: Final = transfer_turns.c


class SqlSequenceLocks:
    """Who may work on a sequence key, in the order of arrival.

    All that a run has is given back by the state of its end in `SqlTransferStore`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self, watch: str, queue: str | None) -> datetime | None:
        """The last place that is reserved for an event of a watch; None: none is."""
        newest = select(func.max(_turns.arrived)).where(_turns.key == _reserved(watch, queue))
        async with self._database.reading() as connection:
            return (await connection.execute(newest)).scalar_one()

    async def reserve(self, watch: str, queue: str | None, run: str, place: datetime) -> None:
        """Keep a place for the job of an event that a watch is about to send.

        Args:
            watch: Its name: its events keep the order of their places.
            queue: Where its events go, routed already; None: they are routed.
            run: Workflow id of the job; one that has a place keeps it.
            place: Behind those that are reserved already.
        """
        async with self._database.reading() as connection:
            await self._add(connection, _reserved(watch, queue), run, place)

    async def take(self, key: str, run: str, arrived: datetime) -> Sequence[str]:
        """Stand in line, or see how far one is.

        Args:
            key: What runs write one after the other.
            run: Workflow id; it stands in line once.
            arrived: Of its event: the earlier one comes first, unless another has begun. The
                place that was reserved for it counts instead.

        Returns:
            Workflow ids of those before it, the one whose turn it is first; none: it is its turn.
        """
        own, reservation = _hashed(key), is_reserved() & (_turns.run == run)
        place = select(_turns.key, _turns.arrived).where(reservation)
        line = (
            select(_turns.run, _turns.begun)
            .where(_turns.key == own)
            # A run that has begun stays first, even when an earlier event arrives late.
            .order_by(_turns.begun.desc(), _turns.arrived, _turns.run)
        )
        async with self._database.transaction() as connection:
            # Of two that ask at the same moment neither would see the other's row.
            await connection.execute(_LOCK, {"key": own})
            reserved = (await connection.execute(place)).first()
            await self._add(connection, own, run, reserved.arrived if reserved else arrived)
            runs = [each.run for each in await connection.execute(line)]
            before = runs[: runs.index(run)]
            if reserved and not before:
                before = [*(await connection.execute(_unplaced(*reserved))).scalars()]
            if not before:
                mine = (_turns.key == own) & (_turns.run == run)
                await connection.execute(update(transfer_turns).where(mine).values(begun=True))
                await connection.execute(delete(transfer_turns).where(reservation))
        return before

    async def unreserve(self, run: str) -> None:
        """Give up the place that was reserved for a run, of which it needs none."""
        async with self._database.reading() as connection:
            await connection.execute(given_back(run).where(is_reserved()))

    async def _add(
        self, connection: AsyncConnection, key: str, run: str, arrived: datetime
    ) -> None:
        row = {"key": key, "run": run, "arrived": arrived, "begun": False}
        await connection.execute(insert(transfer_turns).values(row).on_conflict_do_nothing())


def given_back(run: str) -> Delete:
    """Statement that removes all that a job has."""
    return delete(transfer_turns).where(_turns.run == run)


def _reserved(watch: str, queue: str | None) -> str:
    return f"{_RESERVED}{watch} {queue or ''}"


def is_reserved() -> ColumnElement[bool]:
    """The row is a reservation."""
    return _turns.key.startswith(_RESERVED)


def started_by(key: str, job: str) -> str:
    """Workflow id of the run that a reserved event starts: its job, where it names the queue."""
    _, _, queue = key.split(" ")
    return job if queue else job.rpartition("/")[0]


def _unplaced(key: str, arrived: datetime) -> Select[str]:
    """The first event of a watch before a moment whose sequence key is not known yet."""
    other = transfer_turns.alias().c
    stands = exists().where(other.run == _turns.run, other.key != key)
    return (
        select(_turns.run)
        .where(_turns.key == key, _turns.arrived < arrived, ~stands)
        .order_by(_turns.arrived)
        .limit(1)
    )


def _hashed(key: str) -> str:
    """Keys are longer than an index entry may be."""
    return hashlib.sha256(key.encode()).hexdigest()


class SqlRouteStore:
    """Tables of rules; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

    async def put(self, rule: RouteRule, *, expected: RouteRule | None = None) -> None:
        """Insert or replace a rule; the change stands in the trail.

        Raises:
            RuleViolation: It is not as expected any more.
        """
        key = {"queue": rule.queue, "rule": rule.rule}
        record = clean(rule.model_dump_json())
        put = (
            insert(jobconfig)
            .values(**key, record=record)
            .on_conflict_do_update(index_elements=list(key), set_={"record": record})
        )
        async with self._database.transaction() as connection:
            before = await _record(connection, rule.queue, rule.rule)
            if expected is not None:
                found = None if before is None else RouteRule.model_validate_json(before)
                require_unchanged(found, expected)
            await connection.execute(put)
            await self._note(connection, rule, "added" if before is None else "changed")

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
            insert(jobconfig_changes).values(
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


OPEN: Final = tuple(
    status.value
    for status in (
        TransferStatus.READ_MESSAGE,
        TransferStatus.ASSIGNED,
        TransferStatus.NO_ASSIGNED,
    )
)

_ID: Final = (len(file_job_id("")) - len("/job") + 1, 64)
"""Where the id of a job has that of its transfer: first character and length."""


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Transfers that have not ended and have not changed since, by the run that would end them.

    Reservations of events without such a row as well, as where a look was broken off.
    """
    is_open = transfers.c.status.in_(OPEN)
    opened = select(transfers.c.run, transfers.c.at, null().label("key")).where(
        is_open, transfers.c.at <= before, transfers.c.run > after
    )
    turns = transfer_turns.c
    reserved = select(turns.run, turns.arrived, turns.key).where(
        is_reserved(),
        turns.arrived <= before,
        turns.run > after,
        ~exists().where(is_open, transfers.c.transfer_id == func.substr(turns.run, *_ID)),
    )
    rows = await connection.execute(union_all(opened, reserved).order_by("run").limit(limit))
    return [OpenRow(row.run, row.at, row.key and started_by(row.key, row.run)) for row in rows]


async def terminate(
    connection: AsyncConnection, run: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a transfer as failed, and let the next run of its sequence key have its turn."""
    query = select(transfers).where(transfers.c.run == run).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.status not in OPEN:
        await connection.execute(given_back(run))
        return False
    if unchanged_since not in (None, row.at):
        return False
    now, status = datetime.now(UTC), TransferStatus.FAILED.value
    cleaned = clean(reason)[:1_500]
    own = transfers.c.transfer_id == row.transfer_id
    await connection.execute(
        update(transfers).where(own).values(status=status, reason=cleaned, by=None, at=now)
    )
    await connection.execute(
        insert(jobstatus).values(
            transfer_id=row.transfer_id,
            at=now,
            status=status,
            queue=row.queue,
            job=row.job,
            file=row.file,
            reason=cleaned,
        )
    )
    await connection.execute(given_back(file_job_id(row.transfer_id)))
    return True


_TRAIL: Final = ("transfer_id", "at", "status", "queue", "job", "file", "reason", "by")
_KEPT: Final = (
    *("account_id", "organisation_id", "type", "subject", "queue", "job", "file"),
    *("run", "receipt", "kept", "size"),
)
"""What a row that leaves it out does not change."""
_SAME: Final = ("status", "queue", "job", "reason", "by", "run")
_SUCCEEDED: Final = TransferStatus.SUCCEEDED.value
_READ: Final = TransferStatus.READ_MESSAGE.value
_ENDED: Final = (_SUCCEEDED, TransferStatus.FAILED.value)
_NAMES: Final = tuple(column.name for column in transfers.columns)
_NEW: Final = {
    column.name: bindparam(f"new_{column.name}", type_=column.type) for column in transfers.columns
}
_BY_JOB: Final = bindparam("new_by_job", type_=Boolean())
_ITS_ROW: Final = transfers.c.transfer_id == _NEW["transfer_id"]
_DIGEST: Final = select(transfers.c.digest).where(_ITS_ROW)


class StateWriter:
    """Writes states of transfers, each with its line in the trail.

    Args:
        database: With their tables.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, row: Transfer) -> bool:
        """Write a state, and give its turn back where it is an end.

        Returns:
            False: the row is that of another event, and stays as it was.
        """
        values = {f"new_{name}": value for name, value in _values(row).items()}
        by_job = _is_by_job(row)
        values["new_by_job"] = by_job
        async with self._database.reading() as connection:
            digest = await self._written(connection, values)
            is_own = by_job or row.digest is None or digest in (None, row.digest)
            if is_own and row.status.value not in OPEN:
                await connection.execute(given_back(file_job_id(row.transfer_id)))
        return is_own

    async def _written(self, connection: AsyncConnection, values: Mapping[str, Any]) -> str | None:
        """Write the row and its line; the digest of the row, as it is now."""
        while True:
            done = (await connection.execute(_BOTH, values)).one()
            if done.is_written:
                return values["new_digest"]
            if done.is_known:
                return done.digest
            # Another one was inserted since the statement began, which the next one sees.

    async def note(self, row: Transfer) -> None:
        """Write a line of the trail alone."""
        values = _values(row)
        async with self._database.reading() as connection:
            await connection.execute(_NOTE, {name: values[name] for name in _TRAIL})


def _is_by_job(row: Transfer) -> bool:
    """Whether the job itself writes it: the event that its job was started by has the id."""
    assigned = row.status is TransferStatus.ASSIGNED
    return row.run == file_job_id(row.transfer_id) and not assigned


def _is_held() -> ColumnElement[bool]:
    """The row says the same, as another attempt at the step wrote it, or is of another event."""
    same = and_(*(transfers.c[name].is_not_distinct_from(_NEW[name]) for name in _SAME))
    other = and_(transfers.c.digest != _NEW["digest"], not_(_BY_JOB))
    return exists().where(_ITS_ROW, or_(same, other))


def _newest() -> Any:
    """Insert a row, or replace what it changes in an older one."""
    adding = insert(transfers)
    new = adding.excluded
    # Not known of rows without a digest, which is as good as no.
    is_other = func.coalesce(transfers.c.digest != new.digest, False)
    changed = {
        **{name: new[name] for name in ("status", "at", "reason", "by")},
        **{
            name: case((is_other, new[name]), else_=func.coalesce(new[name], transfers.c[name]))
            for name in _KEPT
        },
        "digest": func.coalesce(new.digest, transfers.c.digest),
    }
    # What succeeded is not carried out again, and a note on a run does not open what has failed: a
    # clock that is fast, or a run that was terminated while it wrote, would hide the end.
    replaces_end = or_(
        new.status.in_(_ENDED),
        and_(
            transfers.c.status != _SUCCEEDED,
            or_(new.status != _READ, new.reason.is_(None)),
        ),
    )
    is_newer = or_(
        and_(
            transfers.c.at < new.at,
            or_(transfers.c.status.not_in(_ENDED), replaces_end),
        ),
        # Of one moment the end counts; and an end counts whatever the clock said of the
        # machine that wrote the state before it.
        and_(
            or_(transfers.c.at == new.at, new.status.in_(_ENDED)),
            transfers.c.status.not_in(_ENDED),
        ),
    )
    values = select(*(_NEW[name] for name in _NAMES)).where(not_(_is_held()))
    return adding.from_select(_NAMES, values).on_conflict_do_update(
        index_elements=["transfer_id"],
        set_=changed,
        # Looked at again in the row that is locked: another event may have come meanwhile.
        where=case((is_other, _BY_JOB), else_=is_newer),
    )


def _both() -> Executable:
    """Row and trail in one; `is_known` and `digest` are of the row as it was before."""
    newest = _newest().returning(transfers.c.transfer_id).cte("newest")
    is_written, is_known = exists(select(newest)), exists().where(_ITS_ROW)
    is_news = and_(not_(_is_held()), or_(is_written, is_known))
    line = select(*(_NEW[name] for name in _TRAIL)).where(is_news)
    trail = insert(jobstatus).from_select(_TRAIL, line).on_conflict_do_nothing()
    return select(
        is_written.label("is_written"),
        is_known.label("is_known"),
        _DIGEST.scalar_subquery().label("digest"),
    ).add_cte(trail.cte("trail"))


# Made once: a row is written three times for each event.
_BOTH: Final = _both()
_NOTE: Final = insert(jobstatus).on_conflict_do_nothing()


def _values(row: Transfer) -> dict[str, Any]:
    """A row as columns; texts without what PostgreSQL refuses."""
    values = {name: getattr(row, name) for name in _NAMES}
    cleaned = {
        name: clean(value) if isinstance(value, str) else value for name, value in values.items()
    }
    receipt = None if row.receipt is None else clean(row.receipt.model_dump_json())
    kept = None if row.kept is None else clean(row.kept.model_dump_json())
    return {**cleaned, "status": row.status.value, "receipt": receipt, "kept": kept}


_FOUND: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""


class SqlTransferStore:
    """Tables of transfers; every method raises `Unavailable` when the database is down."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._states = StateWriter(database)

    async def record(self, row: Transfer) -> bool:
        """Add a state; the same one twice is one. What it leaves out stays as it was.

        Of events with the same source and id, the row is that of the one that came first, until
        the job of another one writes: Temporal has one job for both, so that one is carried out.

        Returns:
            False: the row is that of another event, and nothing was written.
        """
        return await self._states.write(row)

    async def note(self, row: Transfer) -> None:
        """Add to the states that a transfer was in, and leave its state now as it is."""
        await self._states.note(row)

    async def get(self, transfer_id: str) -> Transfer | None:
        """The state of a transfer now; None: there is none."""
        found = await self._rows(select(transfers).where(transfers.c.transfer_id == transfer_id))
        return found[0] if found else None

    async def find(self, beginning: str, visible: Visible | None = None) -> Sequence[Transfer]:
        """Transfers whose id begins so (8 hex digits and more), the newest first; at most 10.

        Args:
            beginning: Of the id.
            visible: Which of them a person may see; None: all.
        """
        text = beginning.lower()
        if len(text) < _PREFIX or set(text) - set("0123456789abcdef"):
            return ()
        # A range, which the index of any collation answers; `g` comes after every hex digit.
        id = transfers.c.transfer_id
        query = _seen(visible).where(id >= text, id < f"{text}g")
        return await self._rows(query.order_by(transfers.c.at.desc()).limit(_FOUND))

    async def trail(self, transfer_id: str) -> Sequence[TransferState]:
        """States of a transfer, the oldest first."""
        query = (
            select(jobstatus)
            .where(jobstatus.c.transfer_id == transfer_id)
            .order_by(jobstatus.c.at, jobstatus.c.status)
        )
        async with self._database.reading() as connection:
            return [*map(TransferState.model_validate, await connection.execute(query))]

    async def newest(
        self,
        *,
        limit: int,
        visible: Visible | None = None,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        reason: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[Transfer]:
        """The state of each transfer now, the newest change first.

        Args:
            limit: At most so many.
            visible: Which of them a person may see; None: all.
            status: Only those in this state.
            queue: Only those of this queue.
            account_id: Only those of this account.
            reason: Only those whose reason begins so.
            before: Only those that changed earlier, UTC.
            behind: Id of the last transfer of a page, which changed at `before`: those of that
                very moment that come behind it as well.
        """
        query = _seen(visible).order_by(transfers.c.at.desc(), transfers.c.transfer_id)
        for column, value in (
            (transfers.c.status, status and status.value),
            (transfers.c.queue, queue),
            (transfers.c.account_id, account_id),
        ):
            if value is not None:
                query = query.where(column == value)
        if reason is not None:
            query = query.where(transfers.c.reason.startswith(reason, autoescape=True))
        if before is not None:
            at, id = transfers.c.at, transfers.c.transfer_id
            is_later = at < before if behind is None else or_(at < before, id > behind)
            query = query.where(at <= before, is_later)
        return await self._rows(query.limit(limit))

    async def count(self, status: TransferStatus) -> int:
        """How many transfers are in a state now."""
        query = select(func.count()).where(transfers.c.status == status.value)
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Transfers that have not ended."""
        async with self._database.reading() as connection:
            return await open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a transfer as failed, and let the next run have its turn."""
        async with self._database.transaction() as connection:
            return await terminate(connection, id, reason, unchanged_since)

    async def _rows(self, query: Select[Any]) -> Sequence[Transfer]:
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings()
            return [record_of(Transfer, row, ("receipt", "kept")) for row in found]


def _seen(visible: Visible | None) -> Select[Any]:
    query = select(transfers)
    organisation = transfers.c.organisation_id
    return query if visible is None else query.where(is_visible(organisation, visible))


_ENDED_STATES: Final = transfers.c.status.not_in(OPEN)


def old_transfers(database: Database) -> SqlOldRows:
    """Transfers that have ended, with every state that they were in; their receipts stay."""
    return SqlOldRows(database, transfers, transfers.c.at, _ENDED_STATES, also=(jobstatus,))
