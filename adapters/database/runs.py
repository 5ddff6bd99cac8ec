"""Runs of every pipeline: one list, one way to find one, and what they wait for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CursorResult,
    Select,
    Text,
    and_,
    func,
    literal,
    or_,
    select,
    union,
    update,
)
from sqlalchemy import cast as cast_to
from sqlalchemy.dialects.postgresql import TSQUERY, insert

from adapters.database.engine import Database
from adapters.database.models.runs import COMPLETE, REVISION, folded, runs
from adapters.database.records import SqlOldRows, is_visible
from adapters.ports.records import OpenRow
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.runs import ACCEPTED, RunChange, RunFilter, RunRecord, RunState, Visible

_FOUND: Final = 10
_CAUSES: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""
_HEX: Final = frozenset("0123456789abcdef")
SEARCHED_WITHIN: Final = 10_000
"""So many runs are looked at for a text within the words of their titles."""
_FIRST_WORDS: Final = (r"^(([^ ]+ ){9}[^ ]+) .*$", r"\1")
"""Leaves ten of a text: each of them costs a look at the index."""
_COLUMNS: Final = tuple(runs.c[name] for name in RunRecord.model_fields)


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of docflow an organisation uses."""

    open_runs: int
    rows: int
    """Of runs since a moment, as far as they are known."""
    size: int
    """Bytes of their files."""
    since: datetime | None
    """When the first of them was accepted; None: there is none."""


class EndedRuns(PlainRecord):
    """Runs that ended within a step of time."""

    at: Annotated[datetime, served("Beginning of the step", "2026-01-03T10:00:00Z")]
    state: Annotated[RunState, served("How they ended", RunState.COMPLETED)]
    number: Annotated[int, served("How many", 12)]


class OpenRuns(PlainRecord):
    """Runs of a pipeline that have not ended."""

    pipeline: Annotated[str, served("Whose runs", "its-name")]
    state: Annotated[RunState, served("Where they stand", RunState.RUNNING)]
    number: Annotated[int, served("How many", 2)]
    since: Annotated[datetime, served("The longest in this state", "2026-01-03T10:00:00Z")]


class WaitingRuns(PlainRecord):
    """Runs of a pipeline that need a person for the same reason."""

    pipeline: Annotated[str, served("Whose runs", "its-name")]
    own_state: Annotated[str, served("The state that the pipeline gives them", "parked")]
    reason: Annotated[str | None, served("Why; null: their rows do not say", "no such sheet")]
    number: Annotated[int, served("How many", 2)]
    since: Annotated[datetime, served("The longest wait", "2026-01-03T10:00:00Z")]


class RunsOverview(PlainRecord):
    """What runs have done since a moment, and where those stand that are open."""

    since: Annotated[datetime, served("The moment", "2026-01-03T10:00:00Z")]
    step: Annotated[int, served("Seconds of a step of time", 3600)]
    ended: Annotated[Sequence[EndedRuns], served("Steps in which runs ended", [])]
    open: Annotated[Sequence[OpenRuns], served("Runs that have not ended", [])]
    waiting: Annotated[
        Sequence[WaitingRuns], served(f"The {_CAUSES} reasons for which most runs wait", [])
    ]
    rows: Annotated[int, served("Rows of the runs that ended, as far as they are known", 1200)]
    size: Annotated[int, served("Bytes of their files", 48000)]


class SqlRuns:
    """The table of runs; every method raises `Unavailable` when the database is unavailable.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, wanted: RunFilter) -> Sequence[RunRecord]:
        """Runs, the newest change first, or the oldest."""
        conditions = [_with_text(wanted)] if wanted.text else _conditions(wanted)
        query = select(*_COLUMNS).where(*conditions).order_by(*_order(runs.c, wanted))
        return await self._found(query.limit(wanted.limit))

    async def find(self, text: str, visible: Visible) -> Sequence[RunRecord]:
        """Runs that a person may mean by a text, the newest change first; at most 10.

        Args:
            text: A workflow id, a key or short form, or 8 hexadecimal digits or more that one
                begins with.
            visible: Which of them the person may see.
        """
        query = select(*_COLUMNS).where(_is_named(runs.c, text), _is_visible(visible))
        query = query.order_by(*_order(runs.c))
        return await self._found(query.limit(_FOUND))

    async def get(self, id: str, visible: Visible) -> RunRecord | None:
        """A run by its workflow id, or by that of the run that takes its answers."""
        named = or_(runs.c.id == id, runs.c.answers_at == id)
        query = select(*_COLUMNS).where(named, _is_visible(visible)).limit(1)
        return next(iter(await self._found(query)), None)

    async def usage(self, organisation_id: int, since: datetime) -> Usage:
        """What an organisation has in progress, and what it has brought since a moment."""
        own = runs.c.organisation_id == organisation_id
        is_open = select(func.count()).where(own, runs.c.ended_at.is_(None))
        rows = func.sum(cast_to(runs.c.counts["rows"].astext, BigInteger))
        query = select(
            is_open.scalar_subquery().label("open_runs"),
            func.coalesce(rows, 0).label("rows"),
            func.coalesce(func.sum(runs.c.size), 0).label("size"),
            func.min(runs.c.created_at).label("since"),
        ).where(own, runs.c.created_at >= since)
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).one()
        return Usage(found.open_runs, int(found.rows), int(found.size), found.since)

    async def overview(self, visible: Visible, since: datetime, step: timedelta) -> RunsOverview:
        """What runs have done since a moment, and where those stand that are open.

        Args:
            visible: Which of them the person may see.
            since: The moment, at which the first step begins.
            step: Length of the steps of time.
        """
        seen, number = _is_visible(visible), func.count().label("number")
        at = func.date_bin(step, runs.c.ended_at, since).label("at")
        rows = func.sum(cast_to(runs.c.counts["rows"].astext, BigInteger))
        done = (runs.c.changed_at >= since, runs.c.ended_at >= since, seen)
        ended = select(at, runs.c.state, number).where(*done).group_by(at, runs.c.state)
        brought = select(func.coalesce(rows, 0), func.coalesce(func.sum(runs.c.size), 0))
        longest = func.min(runs.c.changed_at).label("since")
        is_open = select(runs.c.pipeline, runs.c.state, number, longest)
        is_open = is_open.where(runs.c.ended_at.is_(None), seen)
        alike = (runs.c.pipeline, runs.c.own_state, runs.c.reason)
        waiting = select(*alike, number, longest).where(runs.c.needs_attention, seen)
        waiting = waiting.group_by(*alike).order_by(number.desc(), longest)
        async with self._database.reading() as connection:

            async def found(query: Select[*tuple[Any, ...]]) -> Sequence[Mapping[str, Any]]:
                return [dict(each) for each in (await connection.execute(query)).mappings()]

            [(all_rows, all_bytes)] = await connection.execute(brought.where(*done))
            return RunsOverview.model_validate(
                {
                    "since": since,
                    "step": step.total_seconds(),
                    "ended": await found(ended.order_by(at, runs.c.state)),
                    "open": await found(is_open.group_by(runs.c.pipeline, runs.c.state)),
                    "waiting": await found(waiting.limit(_CAUSES)),
                    "rows": int(all_rows),
                    "size": int(all_bytes),
                }
            )

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
        query = select(*_COLUMNS, runs.c.revision).where(new, *_conditions(wanted))
        query = query.order_by(runs.c.revision, runs.c.id)
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
        query = select(*_COLUMNS).where(runs.c.answers_at.in_(list(ids)))
        found = await self._found(query)
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
    return is_visible(runs.c.organisation_id, visible)


def _with_text(wanted: RunFilter) -> ColumnElement[bool]:
    """One of the first runs that a person looks for by a text, together with all other wishes.

    An index finds what begins a word. If a page is full of the first ones, it isn't asked: a word
    that most runs have would make it slow. What stands within a word is looked for in these alone.
    """
    text, others = wanted.text or "", _conditions(replace(wanted, text=None))
    first = select(*_COLUMNS, runs.c.words).where(*others).order_by(*_order(runs.c, wanted))
    first = first.limit(SEARCHED_WITHIN).subquery()
    said = or_(_begins_words(first.c, text), _within(first.c, text))
    some = select(first.c.id, first.c.changed_at).where(said)
    some = some.order_by(*_order(first.c, wanted)).limit(wanted.limit).cte("some")
    is_short = select(func.count()).select_from(some).scalar_subquery() < wanted.limit
    others_of_it = select(runs.c.id, runs.c.changed_at).where(_begins_words(runs.c, text), *others)
    found = union(select(some), others_of_it.where(is_short)).subquery()
    page = select(found.c.id).order_by(*_order(found.c, wanted)).limit(wanted.limit)
    return runs.c.id.in_(page)


def _order(columns: Any, wanted: RunFilter | None = None) -> Sequence[ColumnElement[Any]]:
    at = columns.changed_at
    return (at if wanted and wanted.oldest_first else at.desc(), columns.id)


def _begins_words(columns: Any, text: str) -> ColumnElement[bool]:
    """Each word of a text begins one of the run, or the text names it."""
    words = func.nullif(func.regexp_replace(folded(literal(text, Text)), *_FIRST_WORDS), "")
    prefixes = cast_to("'" + func.replace(words, " ", "':* & '") + "':*", TSQUERY)
    return or_(columns.words.op("@@")(prefixes), _is_named(columns, text))


def _is_named(columns: Any, text: str) -> ColumnElement[bool]:
    """What people write for an id: all of it, its key, or the first digits of a digest or UUID."""
    named = or_(*(columns[name] == text for name in ("id", "key", "short")))
    lower = text.lower()
    if len(lower) >= _PREFIX and set(lower) <= _HEX:
        # A range, which the index of any collation answers; `g` comes after every hex digit.
        return or_(named, and_(columns.key >= lower, columns.key < f"{lower}g"))
    return named


def _within(columns: Any, text: str) -> ColumnElement[bool]:
    return columns.title.icontains(text, autoescape=True)


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
    if wanted.reason:
        conditions.append(runs.c.reason.icontains(wanted.reason, autoescape=True))
    if wanted.text:
        conditions.append(or_(_begins_words(runs.c, wanted.text), _within(runs.c, wanted.text)))
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
    if wanted.until is not None:
        conditions.append(runs.c.changed_at < wanted.until)
    if wanted.before is not None:
        at, moment = runs.c.changed_at, wanted.before
        behind = at > moment if wanted.oldest_first else at < moment
        same = and_(at == moment, runs.c.id > wanted.behind) if wanted.behind else None
        conditions.append(behind if same is None else or_(behind, same))
    return conditions
