"""Records of jobs and tasks, on every database."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from activities.jobs.ports import JobAlias
from activities.jobs.store import SqlJobAliases, SqlJobStore
from adapters.database.engine import Database
from workers.jobs.service import JobQueries
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.services.lists import Cursor
from workflows.jobs.records import FailedTask, JobRecord, JobStatus, TaskRecord, TaskStatus, task_id
from workflows.jobs.runs import job_workflow_id
from workflows.shared.errors import RuleViolation
from workflows.shared.runs import Visible

ID = "5eed" * 16
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERY = Visible((), others=True)


def a_job(**fields: Any) -> JobRecord:
    given: dict[str, Any] = {
        "job_id": ID,
        "job_type": "pieces",
        "status": JobStatus.PROCESSING,
        "total_stages": 2,
        "parameters": {"n": 1, "text": "a\0b \N{SNOWMAN}"},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return JobRecord(**(given | fields))


def a_task(ordinal: int, **fields: Any) -> TaskRecord:
    given: dict[str, Any] = {
        "task_id": task_id(ID, 1, str(ordinal)),
        "parent_job_id": ID,
        "stage": 1,
        "task_index": str(ordinal),
        "ordinal": ordinal,
        "task_type": "piece",
        "status": TaskStatus.QUEUED,
        "parameters": {"number": ordinal},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return TaskRecord(**(given | fields))


@pytest.fixture
def store(database: Database) -> SqlJobStore:
    return SqlJobStore(database)


async def test_a_job_is_kept_as_it_was_put(store: SqlJobStore) -> None:
    failed = FailedTask(task_id="5eed5eed-1-0", stage=1, task_index="0", reason="crooked")
    record = a_job(
        stage_results={"1": {"tasks": 1}},
        result_data={"found": [1.5, None]},
        failed_tasks=(failed,),
        failed_count=7,
        alias="theirs",
    )
    await store.put_job(record)
    found = await store.job(ID)
    # PostgreSQL keeps no NUL.
    assert found == record.model_copy(
        update={"parameters": {"n": 1, "text": "a\N{REPLACEMENT CHARACTER}b \N{SNOWMAN}"}}
    )
    assert await store.job("f" * 64) is None


async def test_an_older_attempt_or_look_never_replaces_a_newer_one(store: SqlJobStore) -> None:
    newer = a_job(attempt=2, updated_at=NOW + timedelta(seconds=2))
    await store.put_job(a_job())
    await store.put_job(newer)
    await store.put_job(a_job(status=JobStatus.FAILED, updated_at=NOW + timedelta(days=1)))
    await store.put_job(newer.model_copy(update={"status": JobStatus.FAILED, "updated_at": NOW}))
    found = await store.job(ID)
    assert found is not None and (found.attempt, found.status) == (2, JobStatus.PROCESSING)


async def test_tasks_of_a_rerun_include_those_of_the_stages_it_kept(store: SqlJobStore) -> None:
    first, failed, again = (
        a_task(ordinal, stage=stage, attempt=attempt, task_id=task_id(ID, stage, str(ordinal)))
        for ordinal, stage, attempt in ((0, 1, 1), (1, 2, 1), (1, 2, 2))
    )
    await store.put_tasks([first, failed, again])
    found = (await store.tasks(ID)).tasks
    assert [(task.stage, task.attempt) for task in found] == [(1, 1), (2, 2)]


async def test_a_job_is_found_by_every_foreign_id(store: SqlJobStore, database: Database) -> None:
    await store.put_job(a_job(alias="theirs"))
    await SqlJobAliases(database).claim(JobAlias("another", "digest", ID))
    await store.put_job(a_job(attempt=2))
    for name in ("theirs", "another"):
        assert [each.job_id for each in await store.find(name, EVERY)] == [ID]
    assert (await store.find(ID, EVERY))[0].alias == "theirs"


async def test_a_job_is_found_by_its_beginning_or_its_alias(store: SqlJobStore) -> None:
    other = f"5eed5eed{'0' * 56}"
    await store.put_job(a_job(alias="theirs"))
    await store.put_job(a_job(job_id=other, updated_at=NOW + timedelta(seconds=1)))

    async def found(text: str) -> list[str]:
        return [record.job_id for record in await store.find(text, EVERY)]

    assert await found("5eed5eed") == [other, ID]
    assert await found("5EED5EED5") == [ID]
    assert await found("theirs") == [ID]
    assert await found("5eed5ee") == await found("%%%%%%%%") == []


async def test_jobs_are_listed_by_what_is_asked_for(store: SqlJobStore) -> None:
    for number in range(4):
        await store.put_job(
            a_job(
                job_id=f"{number}" * 64,
                project="P1" if number % 2 else "P2",
                status=JobStatus.FAILED if number == 3 else JobStatus.COMPLETED,
                updated_at=NOW + timedelta(seconds=number),
            )
        )

    async def listed(**which: Any) -> list[str]:
        return [record.job_id[0] for record in await store.jobs(EVERY, **{"limit": 10, **which})]

    assert await listed() == ["3", "2", "1", "0"]
    assert await listed(limit=2) == ["3", "2"]
    assert await listed(project="P1") == ["3", "1"]
    assert await listed(status=JobStatus.FAILED) == ["3"]
    assert await listed(job_type="others") == []
    assert await listed(before=NOW + timedelta(seconds=2)) == ["1", "0"]


async def test_tasks_are_paged_by_stage_and_ordinal(store: SqlJobStore) -> None:
    tasks = [a_task(number) for number in range(5)]
    tasks += [a_task(0, stage=2, task_id="x-2-0", status=TaskStatus.FAILED)]
    await store.put_tasks(list(reversed(tasks)))
    await store.put_tasks([a_task(9, attempt=0)])
    first = await store.tasks(ID, limit=4)
    assert first.next is not None
    second = await store.tasks(ID, limit=4, token=first.next)
    assert [*first.tasks, *second.tasks] == tasks
    assert second.next is None
    assert (await store.tasks(ID, stage=2)).tasks == [tasks[-1]]
    assert (await store.tasks(ID, status=TaskStatus.FAILED)).tasks == [tasks[-1]]
    assert [task.ordinal for task in (await store.tasks(ID, attempt=0)).tasks] == [9]
    with pytest.raises(RuleViolation, match="is not a token"):
        await store.tasks(ID, token="planted")


async def test_names_with_a_nul_find_nothing(store: SqlJobStore) -> None:
    assert not await store.find("a\0", EVERY)
    assert not await store.jobs(EVERY, limit=1, project="a\0")
    assert not await store.jobs(EVERY, limit=1, job_type="a\0")


async def test_a_task_is_put_again_unless_it_was_seen_later(store: SqlJobStore) -> None:
    late = NOW + timedelta(seconds=9)
    done = a_task(0, status=TaskStatus.COMPLETED, result_data={"a": 1}, updated_at=late)
    await store.put_tasks([a_task(0)])
    await store.put_tasks([done])
    await store.put_tasks([a_task(0, status=TaskStatus.PROCESSING)])
    await store.put_tasks([])
    assert (await store.tasks(ID)).tasks == [done.model_copy(update={"created_at": NOW})]


async def test_tasks_are_counted_and_open_ones_cancelled(store: SqlJobStore) -> None:
    await store.put_tasks(
        [
            a_task(0, status=TaskStatus.COMPLETED),
            a_task(1),
            a_task(2, status=TaskStatus.PROCESSING),
            a_task(0, stage=2),
        ]
    )
    await store.cancel_tasks(ID, 1, 1)
    assert await store.counts(ID, 1) == {
        1: {TaskStatus.COMPLETED: 1, TaskStatus.CANCELLED: 2},
        2: {TaskStatus.QUEUED: 1},
    }


async def test_a_job_that_was_terminated_is_closed_with_its_tasks(store: SqlJobStore) -> None:
    done = f"6{ID[1:]}"
    await store.put_job(a_job())
    await store.put_job(a_job(job_id=done, status=JobStatus.COMPLETED))
    await store.put_tasks([a_task(0), a_task(1, status=TaskStatus.COMPLETED)])
    later = NOW + timedelta(hours=1)
    [row] = await store.open_rows(later, "", 10)
    assert (row.id, row.changed_at) == (job_workflow_id(ID), NOW)
    assert await store.open_rows(later, row.id, 10) == []
    assert await store.open_rows(NOW - timedelta(hours=1), "", 10) == []
    assert not await store.terminate(row.id, "its run is gone", later)
    assert await store.terminate(row.id, "its run is gone", NOW)
    assert not await store.terminate(row.id, "its run is gone")
    found = await store.job(ID)
    assert found is not None
    assert (found.status, found.error_details) == (JobStatus.TERMINATED, "its run is gone")
    states = [task.status for task in (await store.tasks(ID)).tasks]
    assert states == [TaskStatus.CANCELLED, TaskStatus.COMPLETED]


async def test_jobs_that_changed_at_once_are_listed_page_by_page(store: SqlJobStore) -> None:
    ids = [f"{number:064x}" for number in range(45)]
    for id in ids:
        await store.put_job(a_job(job_id=id))
    unused: Any = None
    queries = JobQueries(store, unused, unused, {})
    operator = Identity("olga", (), frozenset({OPERATOR}))
    found: list[str] = []
    before: Cursor | None = None
    while True:
        page = await queries.list(operator, before=before, limit=20)
        found += [job.job_id for job in page.jobs]
        if page.next is None:
            break
        before = Cursor.read(str(page.next))
    assert found == ids
