"""The status row: who may open it, what closes it, what is left behind."""

import asyncio

import pytest

from activities.imports.ports import EarlierImport
from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from adapters.database.engine import Database
from adapters.database.models.base import metadata
from adapters.database.models.imports import import_progress, import_rejects
from tests.support.imports.store import chunk, count, message, plan, reject
from workflows.imports.messages import Strategy
from workflows.imports.runs import Closing, Counts, HandlerOutcome, ImportState, LoadMark, TaskKey
from workflows.shared.contracts import BlobRef, Problem

KEY = TaskKey("p1", "t1")
OUTCOME = HandlerOutcome(
    counts=Counts(created=2, rejected=1),
    problem_count=1,
    problems=(Problem(line=4, column="Code", value="", reason="required"),),
    report=BlobRef(name="reports/p1/t1.xlsx", size=5000, sha256="ab" * 32),
    note="colour was ignored",
)


def closing(state: ImportState, outcome: HandlerOutcome | None = None, **fields: str) -> Closing:
    return Closing(message=message(), plan=plan(), state=state, outcome=outcome, **fields)


async def test_an_import_opens_and_closes(store: SqlImportStore, tasks: SqlImportTasks) -> None:
    given = message(strategy="update_only", filename="Gerä\0te.csv")
    assert await store.begin(given, plan(), given.workflow_id, None) is None
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.finished_at, row.path) == (ImportState.RUNNING, None, "local")
    assert (row.strategy, row.filename) == (Strategy.UPDATE_ONLY, "Ger\xe4\ufffdte.csv")
    assert (row.source_name, row.source_size) == ("uploads/file.csv", 1234)
    assert await store.close(closing(ImportState.COMPLETED, OUTCOME), given.workflow_id) == OUTCOME
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert row.state is ImportState.COMPLETED
    assert (row.counts, row.problems, row.report) == (
        OUTCOME.counts,
        OUTCOME.problems,
        OUTCOME.report,
    )
    assert row.finished_at is not None
    assert row.created_at <= row.finished_at
    assert row.created_at.utcoffset() is not None


async def test_begin_may_run_twice_and_after_parking(
    store: SqlImportStore, tasks: SqlImportTasks
) -> None:
    given = message()
    assert await store.begin(given, plan(), "w", "key") is None
    assert await store.begin(given, plan(), "w", "key") is None
    await store.close(closing(ImportState.PARKED, reason="sheet is missing"), "w")
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason, row.finished_at) == (
        ImportState.PARKED,
        "sheet is missing",
        None,
    )
    assert await store.begin(given, plan(), "w", "other key") is None
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason, row.guard) == (ImportState.RUNNING, None, "other key")


@pytest.mark.parametrize(
    "state",
    [
        *(ImportState.COMPLETED, ImportState.FAILED),
        *(ImportState.SKIPPED, ImportState.CANCELLED),
    ],
)
async def test_a_final_state_stays(
    store: SqlImportStore, tasks: SqlImportTasks, state: ImportState
) -> None:
    await store.begin(message(), plan(), "w", None)
    await store.close(closing(state, OUTCOME), "w")
    assert await store.begin(message(), plan(), "w", None) == EarlierImport(state, "t1")
    for other in ImportState:
        if other is not state:
            assert await store.close(closing(other, HandlerOutcome(), reason="no"), "w") == OUTCOME
    assert await store.close(closing(state), "w") == OUTCOME
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason) == (state, None)


@pytest.mark.parametrize("state", [ImportState.COMPLETED, ImportState.SKIPPED])
async def test_a_row_keeps_the_digest_of_the_message_that_began_it(
    store: SqlImportStore, state: ImportState
) -> None:
    assert await store.begin(message(), plan(), "w", "key", "first") is None
    second = message(task_id="t2")
    running = EarlierImport(ImportState.RUNNING, "t1", "first")
    assert await store.begin(second, plan(), "w2", "key", "second") == running
    await store.close(closing(state), "w")
    assert await store.begin(message(), plan(), "w", None, "other") == EarlierImport(
        state, "t1", "first"
    )


async def test_the_run_that_completed_a_task_is_known(store: SqlImportStore) -> None:
    begun = (message(), plan(), "w", None, "first")
    assert await store.begin(*begun, "run-1") is None
    await store.close(closing(ImportState.COMPLETED), "w")
    found = [await store.begin(*begun, run) for run in ("run-1", "run-2", None)]
    assert [each and each.by_this_run for each in found] == [True, False, False]


async def test_a_task_that_begins_again_has_the_digest_of_its_new_message(
    store: SqlImportStore,
) -> None:
    given = message()
    assert await store.begin(given, plan(), given.workflow_id, None, "first") is None
    await store.terminate(given.workflow_id, "its run was terminated")
    assert await store.begin(given, plan(), given.workflow_id, None, "second") is None
    await store.close(closing(ImportState.COMPLETED), given.workflow_id)
    again = await store.begin(given, plan(), given.workflow_id, None, "first")
    assert again == EarlierImport(ImportState.COMPLETED, "t1", "second")


@pytest.mark.parametrize("state", [ImportState.PARKED, ImportState.SKIPPED])
async def test_a_terminated_task_whose_guard_another_one_has_records_its_new_end(
    store: SqlImportStore, tasks: SqlImportTasks, state: ImportState
) -> None:
    given = message()
    assert await store.begin(given, plan(), given.workflow_id, "key", "first") is None
    await store.terminate(given.workflow_id, "its run was terminated")
    second = message(task_id="t2")
    assert await store.begin(second, plan(), second.workflow_id, "key") is None
    holder = EarlierImport(ImportState.RUNNING, "t2")
    assert await store.begin(given, plan(), given.workflow_id, "key", "second") == holder
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason, row.guard) == (ImportState.RUNNING, None, None)
    await store.close(closing(state, reason="held by t2"), given.workflow_id)
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason) == (state, "held by t2")


async def test_a_task_that_never_opened_keeps_its_digest_too(store: SqlImportStore) -> None:
    await store.close(closing(ImportState.SKIPPED, digest="first"), "w")
    earlier = EarlierImport(ImportState.SKIPPED, "t1", "first")
    assert await store.begin(message(), plan(), "w", None, "other") == earlier


async def test_a_final_state_that_is_reported_again_stays_as_it_was(store: SqlImportStore) -> None:
    """By an attempt that was late, which no longer finds the rejected rows and the report."""
    assert await store.close(closing(ImportState.COMPLETED, OUTCOME), "w") == OUTCOME
    late = HandlerOutcome(counts=OUTCOME.counts, problem_count=OUTCOME.problem_count)
    assert await store.close(closing(ImportState.COMPLETED, late), "w") == OUTCOME
    assert await store.close(closing(ImportState.COMPLETED), "w") == OUTCOME


async def test_a_guard_is_held_until_the_task_is_skipped_or_cancelled(
    store: SqlImportStore,
) -> None:
    second = message(task_id="t2")
    assert await store.begin(message(), plan(), "w1", "key") is None
    assert await store.begin(second, plan(), "w2", "key") == EarlierImport(
        ImportState.RUNNING, "t1"
    )
    await store.close(closing(ImportState.PARKED), "w1")
    assert await store.begin(second, plan(), "w2", "key") == EarlierImport(ImportState.PARKED, "t1")
    await store.close(closing(ImportState.CANCELLED), "w1")
    assert await store.begin(second, plan(), "w2", "key") is None
    await store.close(Closing(message=second, state=ImportState.COMPLETED), "w2")
    third = message(task_id="t3")
    assert await store.begin(third, plan(), "w3", "key") == EarlierImport(
        ImportState.COMPLETED, "t2"
    )
    other_type = message("material", task_id="t3")
    assert await store.begin(other_type, plan("material"), "w3", "key") is None
    other_project = message(project_id="p2")
    assert await store.begin(other_project, plan(), "w4", "key") is None


async def test_of_many_that_begin_at_once_one_holds_the_guard(store: SqlImportStore) -> None:
    answers = await asyncio.gather(
        *(store.begin(message(task_id=f"t{n}"), plan(), f"w{n}", "key") for n in range(8))
    )
    assert answers.count(None) == 1
    (holder,) = [f"t{n}" for n, answer in enumerate(answers) if answer is None]
    assert {answer for answer in answers if answer} == {EarlierImport(ImportState.RUNNING, holder)}


async def test_a_task_that_never_opened_can_be_closed(
    store: SqlImportStore, tasks: SqlImportTasks
) -> None:
    await store.close(Closing(message=message(), state=ImportState.SKIPPED, reason="done"), "w")
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.reason, row.workflow_id) == (ImportState.SKIPPED, "done", "w")


@pytest.mark.parametrize(
    "state", [ImportState.PARKED, ImportState.SKIPPED, ImportState.FAILED, ImportState.COMPLETED]
)
async def test_fields_that_are_not_used_are_named_whatever_becomes_of_an_import(
    store: SqlImportStore, tasks: SqlImportTasks, state: ImportState
) -> None:
    given = message(unknown_fields=["colour"])
    outcome = HandlerOutcome() if state is ImportState.COMPLETED else None
    closed = await store.close(Closing(message=given, state=state, outcome=outcome), "w")
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert row.note == closed.note == "Fields of the message that are not used: colour."


async def test_closing_without_an_outcome_takes_the_marks_counts_and_cleans_up(
    store: SqlImportStore, tasks: SqlImportTasks, database: Database
) -> None:
    await store.begin(message(), plan(), "w", None)
    rejected = [reject(number) for number in range(200, 80, -1)]
    rows = chunk("equipment", "project_id code", ("p1", "A"), rejected=rejected, cursor=150)
    await store.restart(KEY, ["Code"])
    await store.write(KEY, rows, Strategy.MERGE)
    await store.stage(KEY, chunk("crews", "project_id code", ("p1", "C"), cursor=151))
    outcome = await store.close(closing(ImportState.CANCELLED), "w")
    assert outcome.counts == Counts(created=1, rejected=120)
    assert [problem.line for problem in outcome.problems] == [81, 82, 83, 84, 85]
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.problem_count, len(row.problems), row.problems[99].line) == (120, 100, 180)
    for table in (import_progress, import_rejects, metadata.tables["staged_crews"]):
        assert await count(database, table) == 0
    mark = await store.mark(KEY)
    assert mark == LoadMark(counts=outcome.counts, problem_count=120, finished=True)


async def test_a_worker_thought_dead_writes_nothing_after_the_end(
    store: SqlImportStore, database: Database
) -> None:
    await store.begin(message(), plan(), "w", None)
    await store.close(closing(ImportState.COMPLETED, OUTCOME), "w")
    late = chunk("equipment", "project_id code", ("p1", "A"))
    assert (await store.write(KEY, late, Strategy.APPEND)).finished
    assert (await store.stage(KEY, late)).finished
    await store.restart(KEY, ["Code"])
    assert (await store.finish(KEY)).finished
    assert await store.retire(KEY, "PP") == Counts()
    assert await count(database, metadata.tables["equipment"]) == 0
    assert await count(database, import_progress) == 0
