"""Runs of every pipeline: one list, one way to find one, and what they wait for."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, CursorResult, Select, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from adapters.database.engine import Database
from adapters.database.models.runs import COMPLETE, REVISION, runs
from adapters.database.records import SqlOldRows
from adapters.ports.records import OpenRow
from workflows.shared.runs import ACCEPTED, RunChange, RunFilter, RunRecord, RunState, Visible

_FOUND: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""
_HEX: Final = frozenset("0123456789abcdef")


class SqlRuns:
    """The table of runs; every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, wanted: RunFilter) -> Sequence[RunRecord]:
        """Runs, the newest change first."""
        query = select(runs).order_by(runs.c.changed_at.desc(), runs.c.id)
        return await self._found(query.where(*_conditions(wanted)).limit(wanted.limit))

    async def find(self, text: str, visible: Visible) -> Sequence[RunRecord]:
        """Runs that a person may mean by a text, the newest change first; at most 10.

        Args:
            text: A workflow id, a key or short form, or 8 hexadecimal digits or more that one
                begins with.
            visible: Which of them the person may see.
        """
        named = or_(*(column == text for column in (runs.c.id, runs.c.key, runs.c.short)))
        lower = text.lower()
        if len(lower) >= _PREFIX and set(lower) <= _HEX:
            # A range, which the index of any collation answers; `g` comes after every hex digit.
            named = or_(named, and_(runs.c.key >= lower, runs.c.key < f"{lower}g"))
        query = select(runs).where(named, _is_visible(visible))
        query = query.order_by(runs.c.changed_at.desc(), runs.c.id)
        return await self._found(query.limit(_FOUND))

    async def get(self, id: str, visible: Visible) -> RunRecord | None:
        """A run by its workflow id, or by that of the run that takes its answers."""
        named = or_(runs.c.id == id, runs.c.answers_at == id)
        query = select(runs).where(named, _is_visible(visible)).limit(1)
        return next(iter(await self._found(query)), None)

    async def revision(self) -> int:
        """The revision behind which further changes come."""
        async with self._database.reading() as connection:
            return (await connection.execute(select(COMPLETE))).scalar_one() - 1

    async def changes(self, wanted: RunFilter, after: int) -> Sequence[RunChange]:
        """Runs that have changed since a revision, the oldest change first.

        All changes of a revision are given together, so that a reader can continue behind it.
        A transaction that has not ended holds up what was changed after it began.
        """
        new = and_(runs.c.revision > after, runs.c.revision < COMPLETE)
        query = select(runs).where(new, *_conditions(wanted)).order_by(runs.c.revision, runs.c.id)
        last = query.with_only_columns(runs.c.revision).limit(1).offset(wanted.limit)
        most = func.coalesce(last.scalar_subquery(), COMPLETE)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.where(runs.c.revision <= most))).mappings().all()
        return [
            RunChange(RunRecord.model_validate(dict(row)), cast("int", row["revision"]))
            for row in rows
        ]

    async def of(self, ids: Collection[str]) -> Mapping[str, RunRecord]:
        """Runs by the workflow id that takes their answers."""
        found = await self._found(select(runs).where(runs.c.answers_at.in_(list(ids))))
        return {run.answers_at: run for run in found}

    async def accept(self, run: RunRecord) -> None:
        """Add a run that has not begun, unless it has a row."""
        row = {**run.model_dump(), "state": str(run.state)}
        async with self._database.transaction() as connection:
            await connection.execute(insert(runs).values(row).on_conflict_do_nothing())

    async def wait(self, id: str, waits_for: str) -> None:
        """Note that a run waits for what it needs, by itself; one that awaits a person does not.

        Args:
            id: The workflow id that takes its answers.
            waits_for: Workflow id of the outage.
        """
        waiting = {"state": str(RunState.WAITING), "waits_for": waits_for}
        own = runs.c.answers_at == id
        await self._change(own & (runs.c.state == str(RunState.RUNNING)), waiting)

    async def resume(self, id: str) -> None:
        """Note that a run has what it waited for."""
        running = {"state": str(RunState.RUNNING), "waits_for": None}
        own = runs.c.answers_at == id
        await self._change(own & runs.c.waits_for.is_not(None), running)

    async def _change(self, condition: ColumnElement[bool], values: Mapping[str, Any]) -> None:
        # `changed_at` stays that of the row of its pipeline, by which a sweep closes it.
        async with self._database.transaction() as connection:
            await connection.execute(
                update(runs).where(condition).values(**values, revision=REVISION)
            )

    async def _found(self, query: Select[Any]) -> Sequence[RunRecord]:
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).mappings()
            return [RunRecord.model_validate(dict(row)) for row in rows]


_NEVER_BEGAN: Final = func.lower(runs.c.own_state) == ACCEPTED
"""As an index has it."""


class AcceptedRows:
    """Rows of runs that were accepted and have not begun; they are closed as others are.

    Args:
        database: Where they are.
        pipeline: Whose runs.
    """

    def __init__(self, database: Database, pipeline: str) -> None:
        self._database = database
        self._own = _NEVER_BEGAN & (runs.c.pipeline == pipeline)

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Those that have not changed since, by the id of the run that would begin them."""
        id = runs.c.answers_at
        is_old = and_(runs.c.ended_at.is_(None), runs.c.changed_at <= before, id > after)
        query = select(id, runs.c.changed_at).where(self._own, is_old).order_by(id).limit(limit)
        async with self._database.reading() as connection:
            return [OpenRow(*row) for row in await connection.execute(query)]

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close the row of a run that was ended before it began."""
        own = and_(self._own, runs.c.answers_at == id, runs.c.ended_at.is_(None))
        now = func.now()
        closed = (
            update(runs)
            .where(own)
            .values(
                state=str(RunState.CANCELLED),
                reason=reason,
                changed_at=now,
                ended_at=now,
                revision=REVISION,
            )
        )
        async with self._database.transaction() as connection:
            done = await connection.execute(closed)
        return cast(CursorResult[Any], done).rowcount > 0


def old_unbegun(database: Database) -> SqlOldRows:
    """Rows of runs that were ended before they began; those of others go with their pipeline's."""
    return SqlOldRows(
        database, runs, runs.c.changed_at, _NEVER_BEGAN & runs.c.ended_at.is_not(None)
    )


def _is_visible(visible: Visible) -> ColumnElement[bool]:
    is_shared = runs.c.pipeline.in_(sorted(visible.shared))
    own = is_shared & runs.c.organisation_id.in_(sorted(visible.organisations))
    return or_(own, ~is_shared) if visible.others else own


def _conditions(wanted: RunFilter) -> Sequence[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.pipelines is not None:
        conditions.append(runs.c.pipeline.in_(list(wanted.pipelines)))
    if wanted.state is not None:
        state = wanted.state.lower()
        own = func.lower(runs.c.own_state)
        conditions.append((runs.c.state if state in tuple(RunState) else own) == state)
    if wanted.visible is not None:
        conditions.append(_is_visible(wanted.visible))
    if wanted.needs_attention is not None:
        also = runs.c.answers_at.in_(list(wanted.attention_of))
        needs = or_(runs.c.needs_attention, also) if wanted.attention_of else runs.c.needs_attention
        conditions.append(needs if wanted.needs_attention else ~needs)
    if wanted.owner is not None:
        conditions.append(runs.c.owner == wanted.owner)
    if wanted.text:
        named = (column == wanted.text for column in (runs.c.id, runs.c.key, runs.c.short))
        conditions.append(or_(runs.c.title.icontains(wanted.text, autoescape=True), *named))
    if wanted.id is not None:
        conditions.append(or_(runs.c.id == wanted.id, runs.c.answers_at == wanted.id))
    if wanted.ids is not None:
        conditions.append(runs.c.id.in_(list(wanted.ids)))
    if wanted.since is not None:
        conditions.append(runs.c.changed_at >= wanted.since)
    if wanted.kind is not None:
        conditions.append(runs.c.kind == wanted.kind)
    if wanted.project is not None:
        conditions.append(runs.c.project == wanted.project)
    if wanted.before is not None:
        at = runs.c.changed_at
        same = and_(at == wanted.before, runs.c.id > wanted.behind) if wanted.behind else None
        conditions.append(at < wanted.before if same is None else or_(at < wanted.before, same))
    return conditions
