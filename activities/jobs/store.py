"""Records of jobs and their tasks: a projection that people read."""

import base64
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError
from sqlalchemy import (
    Column,
    ColumnElement,
    Executable,
    Select,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.jobs.ports import JobAlias, TaskPage, TaskSpan
from adapters.database.engine import Database
from adapters.database.models.jobs import (
    job_aliases,
    jobs,
    tasks,
    webhook_deliveries,
    webhook_hosts,
    webhook_messages,
    webhook_secrets,
)
from adapters.database.models.jobs import tasks as rows
from adapters.database.records import clean, is_visible
from adapters.ports.records import OpenRow
from workflows.jobs.definitions import STAGES
from workflows.jobs.records import LARGEST_INTEGER, JobRecord, JobStatus, TaskRecord, TaskStatus
from workflows.jobs.runs import job_workflow_id
from workflows.shared.contracts import built_when_used
from workflows.shared.errors import RuleViolation
from workflows.shared.runs import Visible


class SqlJobAliases:
    """Aliases of jobs; every method raises `Unavailable` when the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, alias: str) -> JobAlias | None:
        """What is kept of a foreign id; None: nothing."""
        query = select(job_aliases).where(job_aliases.c.alias == alias)
        async with self._database.reading() as connection:
            kept = (await connection.execute(query)).one_or_none()
        return None if kept is None else JobAlias(kept.alias, kept.digest, kept.job_id)

    async def claim(self, alias: JobAlias) -> JobAlias:
        """Keep an alias, unless it is taken; what is kept."""
        row = {"alias": alias.alias, "digest": alias.digest, "job_id": alias.job_id}
        query = select(job_aliases).where(job_aliases.c.alias == alias.alias)
        async with self._database.transaction() as connection:
            await connection.execute(
                insert(job_aliases)
                .values(**row, created_at=datetime.now(UTC))
                .on_conflict_do_nothing()
            )
            kept = (await connection.execute(query)).one()
        return JobAlias(kept.alias, kept.digest, kept.job_id)

    async def move(self, alias: JobAlias) -> None:
        """Let an alias name another job: the one that it named was never started."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(job_aliases)
                .where(job_aliases.c.alias == alias.alias, job_aliases.c.digest == alias.digest)
                .values(job_id=alias.job_id)
            )

    async def release(self, alias: JobAlias) -> None:
        """Forget an alias whose job will never be started; one that has changed stays."""
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(job_aliases).where(
                    job_aliases.c.alias == alias.alias,
                    job_aliases.c.digest == alias.digest,
                    job_aliases.c.job_id == alias.job_id,
                )
            )


_OPEN: Final = tuple(
    status.value for status in (JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.PARKED)
)
_OPEN_TASKS: Final = (TaskStatus.QUEUED.value, TaskStatus.PROCESSING.value)


def cancelled_tasks(condition: ColumnElement[bool], now: datetime) -> Update:
    """Shows open tasks as cancelled."""
    return (
        update(tasks)
        .where(condition, tasks.c.status.in_(_OPEN_TASKS))
        .values(status=TaskStatus.CANCELLED.value, updated_at=now)
    )


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Jobs that have not ended and have not changed since, by workflow id."""
    id: ColumnElement[Any] = literal(job_workflow_id("")) + jobs.c.job_id
    rows = await connection.execute(
        select(id.label("id"), jobs.c.updated_at)
        .where(jobs.c.status.in_(_OPEN), jobs.c.updated_at <= before, id > after)
        .order_by(id)
        .limit(limit)
    )
    return [OpenRow(row.id, row.updated_at) for row in rows]


async def terminate(
    connection: AsyncConnection, workflow_id: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a job as terminated, and its open tasks as cancelled."""
    job_id = workflow_id.rpartition("/")[2]
    own = jobs.c.job_id == job_id
    query = select(jobs.c.status, jobs.c.updated_at, jobs.c.attempt).where(own).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.status not in _OPEN or unchanged_since not in (None, row.updated_at):
        return False
    now = datetime.now(UTC)
    status = JobStatus.TERMINATED.value
    await connection.execute(
        update(jobs)
        .where(own)
        .values(status=status, error_details=clean(reason)[:1_500], updated_at=now)
    )
    tasks_of_it = and_(tasks.c.parent_job_id == job_id, tasks.c.attempt == row.attempt)
    await connection.execute(cancelled_tasks(tasks_of_it, now))
    return True


_FOUND: Final = 10
_PREFIX: Final = 8
"""Hex digits of an id that are enough to look for it."""
_JOB_COLUMNS: Final = tuple(column.name for column in jobs.columns)
_TASK_COLUMNS: Final = tuple(column.name for column in rows.columns)


class SqlJobStore:
    """Tables `jobs` and `tasks` (schema `app` on PostgreSQL).

    Writes are upserts, so that each may be repeated. Every method raises `Unavailable` when the
    database does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_job(self, record: JobRecord) -> None:
        """Insert or replace the record of a job; an older attempt never replaces a newer one."""
        adding = insert(jobs)
        changed: dict[str, Any] = {
            name: adding.excluded[name]
            for name in _JOB_COLUMNS
            if name not in ("job_id", "created_at")
        }
        # A rerun without a foreign id is found by that of the request before.
        changed["alias"] = func.coalesce(adding.excluded.alias, jobs.c.alias)
        query = adding.on_conflict_do_update(
            index_elements=["job_id"],
            set_=changed,
            where=or_(
                jobs.c.attempt < adding.excluded.attempt,
                and_(
                    jobs.c.attempt == adding.excluded.attempt,
                    jobs.c.updated_at <= adding.excluded.updated_at,
                ),
            ),
        )
        async with self._database.transaction() as connection:
            await connection.execute(query, [_row(record, jobs)])

    async def put_tasks(self, tasks: Sequence[TaskRecord]) -> None:
        """Insert or replace records of tasks; key: (job, attempt, stage, ordinal)."""
        if not tasks:
            return
        async with self._database.transaction() as connection:
            await connection.execute(_FROM_JSON, {"sent": _as_json(tasks)})

    async def cancel_tasks(self, job_id: str, attempt: int, stage: int | None = None) -> None:
        """Show tasks that have not ended as cancelled; those of a stage, or of all."""
        condition = and_(rows.c.parent_job_id == job_id, rows.c.attempt == attempt)
        if stage is not None:
            condition &= rows.c.stage == stage
        async with self._database.transaction() as connection:
            await connection.execute(cancelled_tasks(condition, datetime.now(UTC)))

    async def job(self, job_id: str) -> JobRecord | None:
        """One job; None: there is none."""
        found = await self._jobs(select(jobs).where(jobs.c.job_id == job_id))
        return found[0] if found else None

    async def find(self, prefix_or_alias: str, visible: Visible) -> Sequence[JobRecord]:
        """Jobs whose id begins so (8 hex digits and more), or whose alias it is; at most 10.

        Args:
            prefix_or_alias: What a person writes.
            visible: Which of them the person may see.
        """
        # Texts are written cleaned.
        alias = clean(prefix_or_alias)
        asked = select(job_aliases.c.job_id).where(job_aliases.c.alias == alias)
        # Several foreign ids may ask for the same work: the record names the first of them.
        condition: ColumnElement[bool] = or_(jobs.c.alias == alias, jobs.c.job_id.in_(asked))
        text = prefix_or_alias.lower()
        if len(text) >= _PREFIX and set(text) <= set("0123456789abcdef"):
            condition = or_(condition, jobs.c.job_id.like(f"{text}%"))
        query = select(jobs).where(condition, is_visible(jobs.c.organisation_id, visible))
        query = query.order_by(jobs.c.updated_at.desc(), jobs.c.job_id)
        return await self._jobs(query.limit(_FOUND))

    async def jobs(
        self,
        visible: Visible,
        *,
        limit: int,
        status: JobStatus | None = None,
        job_type: str | None = None,
        project: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[JobRecord]:
        """Jobs, the newest change first.

        Args:
            visible: Which of them the person may see.
            limit: At most so many.
            status: Only those in it.
            job_type: Only those of this type.
            project: Only those of this project.
            before: Only those that changed earlier, UTC.
            behind: Id of the last job of a page, which changed at `before`: those of that very
                moment that come behind it as well.
        """
        query = select(jobs).where(is_visible(jobs.c.organisation_id, visible))
        query = query.order_by(jobs.c.updated_at.desc(), jobs.c.job_id).limit(limit)
        for column, value in (
            (jobs.c.status, status),
            (jobs.c.job_type, job_type and clean(job_type)),
            (jobs.c.project, project and clean(project)),
        ):
            if value is not None:
                query = query.where(column == str(value))
        if before is not None:
            at = jobs.c.updated_at
            is_later = at < before if behind is None else or_(at < before, jobs.c.job_id > behind)
            query = query.where(at <= before, is_later)
        return await self._jobs(query)

    async def tasks(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        stage: int | None = None,
        status: TaskStatus | None = None,
        limit: int = 100,
        token: str | None = None,
    ) -> TaskPage:
        """Tasks of a job's attempt, by stage and ordinal; None: the newest and what it kept.

        Raises:
            RuleViolation: The token is not one that this method has given.
        """
        place = (rows.c.stage, rows.c.ordinal)
        query = select(rows).where(rows.c.parent_job_id == job_id)
        if attempt is None:
            of_job = select(func.max(rows.c.attempt)).where(rows.c.parent_job_id == job_id)
            newest = of_job.scalar_subquery()
            # A whole stage that was kept has the rows of its own attempt.
            kept = or_(rows.c.kept, rows.c.attempt < newest).label("kept")
            others = [column for column in rows.columns if column is not rows.c.kept]
            query = select(*others, kept).where(rows.c.parent_job_id == job_id)
            query = query.where(_used_by(job_id, newest))
        else:
            query = query.where(rows.c.attempt == attempt)
        if stage is not None:
            query = query.where(rows.c.stage == stage)
        if status is not None:
            query = query.where(rows.c.status == status.value)
        if token is not None:
            query = query.where(tuple_(*place) > tuple_(*_place(token)))
        async with self._database.reading() as connection:
            result = await connection.execute(query.order_by(*place).limit(limit + 1))
            found = [TaskRecord.model_validate(dict(row)) for row in result.mappings()]
        page = found[:limit]
        more = len(found) > limit and bool(page)
        return TaskPage(tasks=page, next=_token(page[-1]) if more else None)

    async def counts(self, job_id: str, attempt: int) -> Mapping[int, Mapping[TaskStatus, int]]:
        """Stage to how many of its tasks are in which state, at an attempt and as it kept them."""
        query = (
            select(rows.c.stage, rows.c.status, func.count())
            .where(rows.c.parent_job_id == job_id, _used_by(job_id, literal(attempt)))
            .group_by(rows.c.stage, rows.c.status)
        )
        counts: dict[int, dict[TaskStatus, int]] = defaultdict(dict)
        async with self._database.reading() as connection:
            for stage, status, number in await connection.execute(query):
                counts[stage][TaskStatus(status)] = number
        return counts

    async def spans(self, job_id: str, attempt: int, most: int) -> Sequence[TaskSpan]:
        """When the tasks of an attempt were planned and seen last, by stage.

        Args:
            job_id: The job.
            attempt: Which of its attempts; what it kept is there as well.
            most: Tasks of a stage that are told apart; of a stage with more, one span for each
                status.
        """
        used = and_(rows.c.parent_job_id == job_id, _used_by(job_id, literal(attempt)))
        kept = or_(rows.c.kept, rows.c.attempt < attempt)
        grouped = (
            select(
                rows.c.stage,
                rows.c.status,
                kept.label("kept"),
                func.count().label("tasks"),
                func.min(rows.c.created_at).label("begun"),
                func.max(rows.c.updated_at).label("ended"),
            )
            .where(used)
            .group_by(rows.c.stage, rows.c.status, kept)
            .order_by(rows.c.stage, func.min(rows.c.created_at), rows.c.status)
        )
        async with self._database.reading() as connection:
            groups = [_span(row) for row in (await connection.execute(grouped)).mappings()]
            total: dict[int, int] = defaultdict(int)
            for each in groups:
                total[each.stage] += each.tasks
            few = [stage for stage, number in total.items() if number <= most]
            single = (
                select(
                    rows.c.stage,
                    rows.c.status,
                    kept.label("kept"),
                    literal(1).label("tasks"),
                    rows.c.created_at.label("begun"),
                    rows.c.updated_at.label("ended"),
                    rows.c.task_index.label("index"),
                )
                .where(used, rows.c.stage.in_(few))
                .order_by(rows.c.stage, rows.c.ordinal)
            )
            tasks = [_span(row) for row in (await connection.execute(single)).mappings()]
        many = [each for each in groups if each.stage not in few]
        return sorted([*tasks, *many], key=lambda each: each.stage)

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Jobs that have not ended."""
        async with self._database.reading() as connection:
            return await open_rows(connection, before, after, limit)

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close a job as terminated, and its open tasks as cancelled."""
        async with self._database.transaction() as connection:
            return await terminate(connection, id, reason, unchanged_since)

    async def _jobs(self, query: Select[Any]) -> Sequence[JobRecord]:
        async with self._database.reading() as connection:
            found = (await connection.execute(query)).mappings()
            return [JobRecord.model_validate(dict(row)) for row in found]


def _as_json(tasks: Sequence[TaskRecord]) -> str:
    """Tasks as one JSON text without what PostgreSQL refuses."""
    with suppress(PydanticSerializationError):
        text = _TASKS.dump_json(tasks).decode()
        if "\\u0000" not in text:
            return text
    # It holds null characters or halves of surrogate pairs, as few do.
    return json.dumps([_cleaned(each.model_dump(mode="json")) for each in tasks])


def _from_json() -> Executable:
    """An upsert of one JSON text: one by one, rows cost the client far more."""
    sent = (
        func.jsonb_to_recordset(sql_cast(bindparam("sent", type_=Text), JSONB))
        .table_valued(*(Column(each.name, each.type) for each in rows.columns), name="sent")
        .render_derived(with_types=True)
    )
    query = select(*(sent.c[name] for name in _TASK_COLUMNS))
    adding = insert(rows).from_select(_TASK_COLUMNS, query)
    key = [column.name for column in rows.primary_key.columns]
    return adding.on_conflict_do_update(
        index_elements=key,
        set_={
            name: adding.excluded[name]
            for name in _TASK_COLUMNS
            if name not in (*key, "created_at")
        },
        # What was seen earlier and is written later changes nothing.
        where=rows.c.updated_at <= adding.excluded.updated_at,
    )


_TASKS: Final = TypeAdapter[Sequence[TaskRecord]](Sequence[TaskRecord], config=built_when_used())
_FROM_JSON: Final = _from_json()


def _row(record: JobRecord | TaskRecord, table: Table) -> dict[str, Any]:
    """A record as columns; texts without what PostgreSQL refuses."""
    plain = record.model_dump(mode="json")
    names = {column.name for column in table.columns}
    moments = names & {"created_at", "updated_at", "heartbeat"}
    row = {name: _cleaned(plain[name]) for name in names - moments}
    return row | {name: getattr(record, name) for name in moments}


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            # Most texts need no look at each character.
            return value if value.isascii() and "\0" not in value else clean(value)
        case dict():
            return {_cleaned(key): _cleaned(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_cleaned(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _used_by(job_id: str, attempt: ColumnElement[int]) -> ColumnElement[bool]:
    """Tasks of an attempt, and those of the stages before its first one, which it has kept."""
    of_job = rows.c.parent_job_id == job_id
    first = select(func.min(rows.c.stage)).where(of_job, rows.c.attempt == attempt)
    kept = (
        select(rows.c.stage, func.max(rows.c.attempt))
        .where(of_job, rows.c.attempt < attempt)
        .group_by(rows.c.stage)
    )
    is_before = rows.c.stage < func.coalesce(first.scalar_subquery(), STAGES + 1)
    return or_(
        rows.c.attempt == attempt, and_(is_before, tuple_(rows.c.stage, rows.c.attempt).in_(kept))
    )


def _span(row: Mapping[Any, Any]) -> TaskSpan:
    fields: dict[str, Any] = {**row, "status": TaskStatus(row["status"])}
    return TaskSpan(**fields)


def _token(task: TaskRecord) -> str:
    return base64.urlsafe_b64encode(json.dumps([task.stage, task.ordinal]).encode()).decode()


def _place(token: str) -> tuple[int, int]:
    """Stage and ordinal of the last task of a page.

    Raises:
        RuleViolation: It is not a token of ours.
    """
    try:
        stage, ordinal = json.loads(base64.urlsafe_b64decode(token.encode()))
        place = int(stage), int(ordinal)
        if not all(0 <= each <= LARGEST_INTEGER for each in place):
            raise ValueError
        return place
    except (ValueError, TypeError, OverflowError) as error:
        raise RuleViolation(f"{token[:50]!r} is not a token of a page of tasks") from error


_ENDED: Final = tuple(
    status.value
    for status in (
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.CANCELLED,
        JobStatus.TERMINATED,
    )
)
_OF_WEBHOOKS: Final = (webhook_secrets, webhook_messages, webhook_deliveries)


class SqlJobLeftovers:
    """Rows of jobs that ended long ago; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Jobs that ended and have not changed since, and of which more than a record is left."""
        has_tasks = exists().where(tasks.c.parent_job_id == jobs.c.job_id)
        query = (
            select(jobs.c.job_id)
            .where(
                jobs.c.status.in_(_ENDED),
                jobs.c.updated_at < before,
                or_(has_tasks, jobs.c.status != JobStatus.COMPLETED.value),
            )
            .order_by(jobs.c.updated_at, jobs.c.job_id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def remove(self, job_id: str, *, keep_record: bool) -> None:
        """Remove tasks, webhooks and aliases of a job, and its record unless that is kept."""
        async with self._database.transaction() as connection:
            for table in _OF_WEBHOOKS:
                await connection.execute(delete(table).where(table.c.job_id == job_id))
            await connection.execute(delete(tasks).where(tasks.c.parent_job_id == job_id))
            if not keep_record:
                await connection.execute(delete(job_aliases).where(job_aliases.c.job_id == job_id))
                await connection.execute(delete(jobs).where(jobs.c.job_id == job_id))

    async def remove_webhooks(self, before: datetime) -> None:
        """Remove secrets of jobs without a record, and hosts that nothing was sent to since."""
        has_job = exists().where(jobs.c.job_id == webhook_secrets.c.job_id)
        hosts = webhook_hosts.c
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(webhook_secrets).where(webhook_secrets.c.created_at < before, ~has_job)
            )
            await connection.execute(
                delete(webhook_hosts).where(
                    hosts.updated_at < before,
                    or_(hosts.open_until.is_(None), hosts.open_until < datetime.now(UTC)),
                )
            )
