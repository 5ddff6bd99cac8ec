"""One state of a transfer, written in one statement where the database can."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Executable,
    and_,
    bindparam,
    case,
    exists,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.engine import Database
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.transfers.leftovers import OPEN
from adapters.database.transfers.turns import given_back
from adapters.ports.transfers import StatusRow
from contracts.transfers import TransferStatus, file_job_id

_TRAIL: Final = ("transfer_id", "at", "status", "queue", "job", "file", "reason", "by")
_KEPT: Final = ("account_id", "type", "subject", "queue", "job", "file", "run", "receipt", "kept")
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
        insert = database.insert
        # Made once: a row is written three times for each event.
        self._newest = _newest(insert(transfers))
        self._trail = _trail(insert(jobstatus), not_(_is_held()))
        self._both = _both(insert) if database.dialect == "postgresql" else None
        self._note = insert(jobstatus).on_conflict_do_nothing()

    async def write(self, row: StatusRow) -> bool:
        """Write a state, and give its turn back where it is an end.

        Returns:
            False: the row is that of another event, and stays as it was.
        """
        values = {f"new_{name}": value for name, value in _values(row).items()}
        by_job = _is_by_job(row)
        values["new_by_job"] = by_job
        async with self._database.single() as connection:
            digest = await self._written(connection, values)
            is_own = by_job or row.digest is None or digest in (None, row.digest)
            if is_own and row.status.value not in OPEN:
                await connection.execute(given_back(file_job_id(row.transfer_id)))
        return is_own

    async def _written(self, connection: AsyncConnection, values: Mapping[str, Any]) -> str | None:
        """Write the row and its line; the digest of the row, as it is now."""
        if self._both is None:
            await connection.execute(self._trail, values)
            await connection.execute(self._newest, values)
            return (await connection.execute(_DIGEST, values)).scalar_one()
        while True:
            done = (await connection.execute(self._both, values)).one()
            if done.is_written:
                return values["new_digest"]
            if done.is_known:
                return done.digest
            # Another one was inserted since the statement began, which the next one sees.

    async def note(self, row: StatusRow) -> None:
        """Write a line of the trail alone."""
        values = _values(row)
        async with self._database.single() as connection:
            await connection.execute(self._note, {name: values[name] for name in _TRAIL})


def _is_by_job(row: StatusRow) -> bool:
    """Whether the job itself writes it: the event that its job was started by has the id."""
    assigned = row.status is TransferStatus.ASSIGNED
    return row.run == file_job_id(row.transfer_id) and not assigned


def _is_held() -> ColumnElement[bool]:
    """The row says the same, as another attempt at the step wrote it, or is of another event."""
    same = and_(*(transfers.c[name].is_not_distinct_from(_NEW[name]) for name in _SAME))
    other = and_(transfers.c.digest != _NEW["digest"], not_(_BY_JOB))
    return exists().where(_ITS_ROW, or_(same, other))


def _newest(insert: sqlite.Insert | postgresql.Insert) -> Any:
    """Insert a row, or replace what it changes in an older one."""
    new = insert.excluded
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
    return insert.from_select(_NAMES, values).on_conflict_do_update(
        index_elements=["transfer_id"],
        set_=changed,
        # Looked at again in the row that is locked: another event may have come meanwhile.
        where=case((is_other, _BY_JOB), else_=is_newer),
    )


def _trail(insert: sqlite.Insert | postgresql.Insert, where: ColumnElement[bool]) -> Any:
    values = select(*(_NEW[name] for name in _TRAIL)).where(where)
    return insert.from_select(_TRAIL, values).on_conflict_do_nothing()


def _both(insert: Any) -> Executable:
    """Row and trail in one; `is_known` and `digest` are of the row as it was before."""
    newest = _newest(insert(transfers)).returning(transfers.c.transfer_id).cte("newest")
    is_written, is_known = exists(select(newest)), exists().where(_ITS_ROW)
    trail = _trail(insert(jobstatus), and_(not_(_is_held()), or_(is_written, is_known)))
    return select(
        is_written.label("is_written"),
        is_known.label("is_known"),
        _DIGEST.scalar_subquery().label("digest"),
    ).add_cte(trail.cte("trail"))


def _values(row: StatusRow) -> dict[str, Any]:
    """A row as columns; texts without what PostgreSQL refuses."""
    values = {name: getattr(row, name) for name in _NAMES}
    cleaned = {
        name: clean(value) if isinstance(value, str) else value for name, value in values.items()
    }
    receipt = None if row.receipt is None else clean(row.receipt.model_dump_json())
    kept = None if row.kept is None else clean(row.kept.model_dump_json())
    return {**cleaned, "status": row.status.value, "receipt": receipt, "kept": kept}
