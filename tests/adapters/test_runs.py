"""The table of runs follows the tables of the pipelines, and is listed as one."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import Table, delete, insert, update

from adapters.database.engine import Database, open_database
from adapters.database.models.batches import batches
from adapters.database.models.imports import import_tasks
from adapters.database.models.jobs import jobs
from adapters.database.models.runs import FOLLOWED, follow, is_followed
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.models.transfers import transfers
from adapters.database.runs import AcceptedRows, SqlRuns, Usage, old_unbegun
from workflows.batches.names import LoaderStatus
from workflows.imports.runs import ImportState
from workflows.jobs.records import JobStatus
from workflows.shared.runs import ACCEPTED, RunFilter, RunRecord, RunState, Visible
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.transfers.events import TransferStatus

NOW = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)
DIGEST = "0123456789abcdef" * 4
UUID = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"
AN_IMPORT = {
    "project_id": "P 1",
    "task_id": "T1",
    "document_type": "mto",
    "workflow_id": "import/P%201/T1",
    "created": 5,
    "problem_count": 2,
    "filename": "list.xlsx",
    "report": json.dumps({"name": "reports/x.xlsx", "size": 5}),
    "created_at": NOW,
    "updated_at": NOW,
}
A_JOB = {
    "job_id": DIGEST,
    "job_type": "hello_world",
    "stage": 1,
    "total_stages": 2,
    "parameters": {},
    "stage_results": {},
    "result_data": {},
    "attempt": 1,
    "version": 1,
    "failed_tasks": [],
    "failed_count": 0,
    "project": "P1",
    "created_at": NOW,
    "updated_at": NOW,
}
A_BATCH = {
    "case_id": 7,
    "batch_id": 1,
    "loader_status_updated_at": NOW,
    "dead_letters": 3,
    "reason": "three messages failed",
    "created_at": NOW,
    "updated_at": NOW,
}
A_TRANSFER = {
    "transfer_id": DIGEST,
    "at": NOW,
    "source": "tms",
    "event_id": "1",
    "account_id": "A",
    "queue": "jobs",
    "file": "in/a.csv",
}
A_SPREADSHEET = {
    "uuid": UUID,
    "workflow_id": f"spreadsheet/{UUID}",
    "organisation_id": 3,
    "import_type": "MEMBERSHIP",
    "filename": "members.xlsx",
    "by": "ann",
    "auto_start": False,
    "dry_run": False,
    "state_since": NOW,
    "assignee": "ann",
    "created_at": NOW,
    "updated_at": NOW,
}
OF_TABLES: Mapping[str, tuple[Table, Mapping[str, Any], str, Any]] = {
    "imports": (import_tasks, AN_IMPORT, "state", ImportState),
    "jobs": (jobs, A_JOB, "status", JobStatus),
    "batches": (batches, A_BATCH, "loader_status", LoaderStatus),
    "transfers": (transfers, A_TRANSFER, "status", TransferStatus),
    "spreadsheets": (spreadsheet_imports, A_SPREADSHEET, "state", SpreadsheetState),
}


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as opened:
        yield opened


async def written(database: Database, pipeline: str, state: str, **changes: Any) -> None:
    table, row, column, _ = OF_TABLES[pipeline]
    async with database.transaction() as connection:
        await connection.execute(insert(table).values({**row, column: state, **changes}))


async def the_run(database: Database) -> RunRecord:
    [found] = await SqlRuns(database).list(RunFilter(10))
    return found


@pytest.mark.parametrize("pipeline", OF_TABLES)
async def test_every_state_of_a_pipeline_is_one_for_people(
    database: Database, pipeline: str
) -> None:
    table, _, column, states = OF_TABLES[pipeline]
    await written(database, pipeline, next(iter(states)))
    for own in states:
        async with database.transaction() as connection:
            await connection.execute(update(table).values({column: own}))
        run = await the_run(database)
        assert (run.pipeline, run.own_state) == (pipeline, own)
        assert run.is_open is run.state.is_open
    async with database.transaction() as connection:
        await connection.execute(delete(table))
    assert await SqlRuns(database).list(RunFilter(10)) == []


@pytest.mark.parametrize(
    ("pipeline", "state", "changes", "expected"),
    [
        (
            "imports",
            "completed",
            {},
            {
                "id": "import/P%201/T1",
                "key": "P%201/T1",
                "short": "T1",
                "kind": "mto",
                "title": "list.xlsx",
                "state": RunState.COMPLETED_WITH_PROBLEMS,
                "counts": {"created": 5, "problems": 2},
                "project": "P 1",
                "links": {"report": "reports/x.xlsx"},
                "ended_at": NOW,
            },
        ),
        ("imports", "completed", {"problem_count": 0}, {"state": RunState.COMPLETED}),
        (
            "imports",
            "parked",
            {"reason": "no blob"},
            {"state": RunState.NEEDS_ATTENTION, "needs_attention": True, "reason": "no blob"},
        ),
        (
            "jobs",
            "PROCESSING",
            {},
            {
                "id": f"job/{DIGEST}",
                "key": DIGEST,
                "kind": "hello_world",
                "state": RunState.RUNNING,
                "counts": {"stage": 1, "total_stages": 2},
                "project": "P1",
            },
        ),
        (
            "jobs",
            "COMPLETED",
            {
                "stage_results": {
                    "1": {"rows": 3, "bytes": 5},
                    "2": {"rows": 4, "tasks": 1},
                    # These are no counts.
                    "3": {"rows": "many", "bytes": [7]},
                    "4": {"rows": -1},
                    "5": {"rows": 1e300},
                }
            },
            {"counts": {"stage": 1, "total_stages": 2, "rows": 7}},
        ),
        (
            "batches",
            "in-complete",
            {},
            {
                "id": "batch/7/1",
                "state": RunState.COMPLETED_WITH_PROBLEMS,
                "reason": "three messages failed",
                "counts": {"dead_letters": 3},
            },
        ),
        (
            "batches",
            "processing",
            {"attention": "redrive: no rights", "reason": None},
            {
                "state": RunState.NEEDS_ATTENTION,
                "needs_attention": True,
                "reason": "redrive: no rights",
            },
        ),
        (
            "batches",
            "in-complete",
            {"attention": "redrive: no rights"},
            {"needs_attention": False, "reason": "three messages failed"},
        ),
        (
            "transfers",
            "ReadMessage",
            {"reason": "parked: 1. ReadFile: refused"},
            {
                "id": f"transfer/{DIGEST}",
                "answers_at": f"transfer/{DIGEST}/job",
                "state": RunState.NEEDS_ATTENTION,
                "reason": "1. ReadFile: refused",
                "kind": "jobs",
                "title": "in/a.csv",
                "project": "A",
            },
        ),
        ("transfers", "ReadMessage", {"reason": "1. ReadFile"}, {"state": RunState.RUNNING}),
        ("transfers", "NoAssigned", {"queue": None}, {"kind": "event", "needs_attention": True}),
        ("transfers", "Failed", {"reason": "parked: before"}, {"state": RunState.FAILED}),
        (
            "spreadsheets",
            "COLUMN_MAPPING",
            {"waiting_since": NOW},
            {
                "id": f"spreadsheet/{UUID}",
                "key": UUID,
                "title": "members.xlsx",
                "state": RunState.NEEDS_ATTENTION,
                "owner": "ann",
                "organisation_id": 3,
            },
        ),
        ("spreadsheets", "PROCESSING", {}, {"state": RunState.RUNNING, "needs_attention": False}),
        (
            "spreadsheets",
            "COMPLETED",
            {"created": 2, "error": 1},
            {"state": RunState.COMPLETED_WITH_PROBLEMS, "counts": {"created": 2, "error": 1}},
        ),
    ],
)
async def test_the_run_follows_the_row_of_its_pipeline(
    database: Database,
    pipeline: str,
    state: str,
    changes: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> None:
    await written(database, pipeline, state, **changes)
    found = (await the_run(database)).model_dump(include=set(expected))
    assert found == expected


async def test_what_every_pipeline_brings_to_an_organisation_is_counted(
    database: Database,
) -> None:
    theirs = {"organisation_id": 3}
    brought = {"1": {"bytes": 100}, "2": {"rows": 4}}
    await written(database, "jobs", "COMPLETED", **theirs, stage_results=brought)
    await written(database, "transfers", "Succeeded", **theirs, size=1_000)
    source = json.dumps({"name": "x", "size": 10})
    await written(database, "spreadsheets", "PROCESSING", total=3, source=source)
    await written(database, "imports", "completed")
    used = await SqlRuns(database).usage(3, NOW)
    assert used == Usage(open_runs=1, rows=7, size=1_110, since=NOW)


async def test_runs_are_found_by_what_people_call_them(database: Database) -> None:
    for pipeline, (_, _, _, states) in OF_TABLES.items():
        await written(database, pipeline, next(iter(states)))
    table = SqlRuns(database)

    async def found(text: str) -> set[str]:
        return {run.id for run in await table.find(text, Visible((), others=True))}

    assert await found("T1") == await found("P%201/T1") == {"import/P%201/T1"}
    assert await found("batch/7/1") == {"batch/7/1"}
    assert await found(DIGEST[:8].upper()) == {f"job/{DIGEST}", f"transfer/{DIGEST}"}
    assert await found(DIGEST[:7]) == await found("P_201/T1") == await found("%") == set()
    nobody = Visible((2,), others=False)
    assert [run.id for run in await table.find("T1", nobody)] == []
    theirs = Visible((3,), others=False)
    assert [run.id for run in await table.find(UUID, theirs)] == [f"spreadsheet/{UUID}"]
    assert [run.id for run in await table.find(UUID, Visible((), others=True))] == []


async def test_lists_are_filtered_and_continue_where_a_page_ended(database: Database) -> None:
    for number in range(4):
        changes = {"task_id": f"T{number}", "workflow_id": f"import/P1/T{number}"}
        at = NOW + timedelta(minutes=number // 2)
        await written(database, "imports", "failed", **changes, updated_at=at)
    await written(database, "jobs", "FAILED")
    table = SqlRuns(database)
    first = await table.list(RunFilter(3, state="Failed"))
    assert [run.short for run in first[:2]] == ["T2", "T3"]
    rest = RunFilter(9, state="failed", before=first[-1].changed_at, behind=first[-1].id)
    every = [*first, *await table.list(rest)]
    assert len({run.id for run in every}) == len(every) == 5
    assert [run.id for run in await table.list(RunFilter(9, kind="hello_world"))] == [every[-1].id]
    assert len(await table.list(RunFilter(9, pipelines=["imports"], project="P 1"))) == 4
    assert await table.list(RunFilter(9, state="FAILED", project="other")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("equip", ["T1"]),
        ("LIST, equip", ["T1"]),
        ("equipment rev.3", ["T1"]),
        # A part of a word counts in the newest ones alone.
        ("quip", []),
        ("dex", ["T4"]),
        ("xlsx", ["T4", "T3", "T2", "T1"]),
        # One is written as other systems do, letter and accent.
        ("Geräte", ["T2"]),
        ("设备", ["T3"]),
        ("p 1 t3", ["T3"]),
        ("P%201/T3", ["T3"]),
        ("equip nowhere", []),
        ("%", []),
        ("' | list", ["T3", "T1"]),
        (":*", []),
        ("ﷺ" * 200, []),
    ],
)
async def test_runs_are_found_by_what_begins_their_words(
    database: Database, monkeypatch: pytest.MonkeyPatch, text: str, expected: list[str]
) -> None:
    monkeypatch.setattr("adapters.database.runs.SEARCHED_WITHIN", 1)
    names = (
        "Equipment_list P7-Rev.3.XLSX",
        "Gera\u0308te.xlsx",
        "设备清单 (list).xlsx",
        "Index.xlsx",
    )
    for number, name in enumerate(names, 1):
        changes = {"task_id": f"T{number}", "workflow_id": f"import/P%201/T{number}"}
        at = NOW + timedelta(minutes=number)
        await written(
            database, "imports", "running", **changes, filename=name, created=0, updated_at=at
        )
    table = SqlRuns(database)
    assert [run.short for run in await table.list(RunFilter(9, text=text))] == expected
    [*first] = await table.list(RunFilter(1, text=text))
    assert [run.short for run in first] == expected[:1]
    if len(expected) > 1:
        rest = RunFilter(9, text=text, before=first[-1].changed_at, behind=first[-1].id)
        assert [run.short for run in await table.list(rest)] == expected[1:]


async def test_a_uuid_has_no_words_and_is_found_by_its_first_digits(database: Database) -> None:
    await written(database, "transfers", "Assigned")
    table = SqlRuns(database)
    for text, number in ((DIGEST[:8], 1), (DIGEST, 1), (DIGEST[:7], 0)):
        assert len(await table.list(RunFilter(9, text=text))) == number, text


async def test_a_title_of_any_length_is_kept_and_searched(database: Database) -> None:
    await written(database, "imports", "running", filename="x" * 5_000 + " list.xlsx")
    found = await SqlRuns(database).list(RunFilter(9, text="x" * 200))
    assert [len(run.title or "") for run in found] == [5_010]


async def test_a_wait_is_shown_until_the_run_continues(database: Database) -> None:
    await written(database, "transfers", "Assigned")
    table, job = SqlRuns(database), f"transfer/{DIGEST}/job"
    before = await the_run(database)
    await table.wait(job, "outage/blob-store")
    waiting = await the_run(database)
    assert (waiting.state, waiting.waits_for) == (RunState.WAITING, "outage/blob-store")
    # By which a sweep knows that its row has not changed.
    assert waiting.changed_at == before.changed_at
    await table.resume(job)
    assert await the_run(database) == before
    await table.wait(job, "outage/blob-store")
    async with database.transaction() as connection:
        await connection.execute(update(transfers).values(status="Succeeded"))
    ended = await the_run(database)
    assert (ended.state, ended.waits_for) == (RunState.COMPLETED, None)
    await table.wait(job, "outage/blob-store")
    assert (await the_run(database)).state is RunState.COMPLETED


async def test_a_run_is_listed_from_its_acceptance(database: Database) -> None:
    table, id = SqlRuns(database), "import/P%201/T1"
    accepted = RunRecord(
        id=id,
        pipeline="imports",
        kind="mto",
        key="P%201/T1",
        short="T1",
        state=RunState.WAITING,
        own_state=ACCEPTED,
        counts={},
        links={},
        answers_at=id,
        created_at=NOW,
        changed_at=NOW,
    )
    await table.accept(accepted)
    assert await the_run(database) == accepted
    await written(database, "imports", "running")
    await table.accept(accepted)
    assert (await the_run(database)).own_state == "running"


async def test_a_run_that_was_ended_before_it_began_is_closed(database: Database) -> None:
    table, id = SqlRuns(database), "job/1"
    moments = {"created_at": NOW, "changed_at": NOW}
    names = {"id": id, "key": id, "short": id, "answers_at": id, "kind": "any"}
    states = {"state": RunState.WAITING, "own_state": ACCEPTED}
    run = RunRecord(pipeline="jobs", counts={}, links={}, **names, **states, **moments)
    await table.accept(run)
    rows = AcceptedRows(database, "jobs")
    assert await AcceptedRows(database, "imports").open_rows(NOW, "", 10) == []
    [row] = await rows.open_rows(NOW, "", 10)
    assert await rows.terminate(row.id, "terminated by mistake", row.changed_at)
    assert not await rows.terminate(row.id, "again")
    run = await the_run(database)
    assert (run.state, run.reason) == (RunState.CANCELLED, "terminated by mistake")
    assert await rows.open_rows(datetime.now(UTC), "", 10) == []
    # Once its time is over, it goes.
    kept, later = old_unbegun(database), datetime.now(UTC) + timedelta(days=1)
    assert await kept.due(NOW, 10) == []
    assert await kept.remove(await kept.due(later, 10), later) == 1
    assert await table.list(RunFilter(10)) == []


async def test_another_mapping_would_be_noticed(database: Database) -> None:
    async with database.reading() as connection:
        for table in FOLLOWED:
            assert await connection.run_sync(is_followed, table)
        mapped = FOLLOWED[batches]
        try:
            follow(batches, lambda own: {**mapped(own), "reason": own.purpose})
            assert not await connection.run_sync(is_followed, batches)
        finally:
            follow(batches, mapped)
