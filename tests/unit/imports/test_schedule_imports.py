"""Activities of schedules, over the real readers and a real SQLite database."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports.schedules import ScheduleCursor
from activities.imports.store import SqlImportStore
from adapters.database.engine import Database
from tests.support.imports.activities import environment, message_of, work_of
from tests.support.imports.schedules import ScheduleSetup, open_schedule_setup
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, HandlerOutcome, LoadMark, RowChunk, TaskKey
from workflows.shared.errors import INVALID_DOCUMENT, MISSING_BLOB, PERMANENT, UNREADABLE_DOCUMENT

FIRST = Counts(created=196, rejected=2)
GUESSED = "; read as cp1252, a guess: set schedule_config.encoding if letters are wrong"


class Killed(BaseException):
    """The worker dies here."""


class MortalStore(SqlImportStore):
    """Dies before or after its nth transaction."""

    def __init__(self, database: Database, dies_at: int = 0, *, committed: bool = True) -> None:
        super().__init__(database)
        self.calls = 0
        self.written = 0
        self._dies_at = dies_at
        self._committed = committed

    async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
        self.written += 1
        self._count(committed=False)
        mark = await super().write(key, chunk, strategy)
        self._die(committed=True)
        return mark

    async def retire(self, key: TaskKey, schedule_id: str) -> Counts:
        self._count(committed=False)
        counts = await super().retire(key, schedule_id)
        self._die(committed=True)
        return counts

    async def finish(self, key: TaskKey, table: str | None = None) -> LoadMark:
        self._count(committed=False)
        mark = await super().finish(key)
        self._die(committed=True)
        return mark

    def _count(self, *, committed: bool) -> None:
        self.calls += 1
        self._die(committed=committed)

    def _die(self, *, committed: bool) -> None:
        if self.calls == self._dies_at and committed is self._committed:
            raise Killed


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[ScheduleSetup]:
    async with open_schedule_setup(tmp_path) as setup:
        yield setup


async def test_a_schedule_is_loaded_and_its_mistakes_are_reported(setup: ScheduleSetup) -> None:
    outcome = await setup.load("unit100.xer")
    assert outcome.counts == FIRST
    assert outcome.note == (
        "40 activities, 45 relationships, 33 assignments, 40 activity codes, 7 UDF values,"
        f" 21 WBS nodes, 2 calendars, 7 resources{GUESSED}"
    )
    assert outcome.problem_count == 3
    assert [(problem.line, problem.column) for problem in outcome.problems] == [
        (81, "original_duration_hours"),
        (110, "task_code"),
        (158, "predecessor_code"),
    ]
    assert list(setup.scratch.iterdir()) == []


async def test_the_next_update_flags_what_is_gone_and_keeps_what_people_wrote(
    setup: ScheduleSetup,
) -> None:
    await setup.load("unit100.xer")
    await setup.change("schedule_fill_column", payload={"column": "notes", "value": "hold"})
    outcome = await setup.load("unit100-update.xer", task="T2")
    assert (outcome.counts.flagged, outcome.counts.rejected) == (1, 0)
    assert outcome.note is not None
    assert outcome.note.endswith(f"; 1 activity flagged as missing{GUESSED}")
    assert await setup.rows(
        "SELECT task_code, notes FROM schedule_activities WHERE missing_since IS NOT NULL"
    ) == [("A10-INS-0120", "hold")]
    assert await setup.rows("SELECT count(*) FROM schedule_activities WHERE notes = 'hold'") == [
        (40,)
    ]
    again = await setup.load("unit100.xer", task="T3")
    assert again.counts.flagged == 1
    assert await setup.rows(
        "SELECT task_code FROM schedule_activities WHERE missing_since IS NOT NULL"
    ) == [("A20-CHM-0095",)]


async def test_the_same_file_again_changes_nothing(setup: ScheduleSetup) -> None:
    await setup.load("unit100.xer")
    outcome = await setup.load("unit100.xer", task="T2")
    assert outcome.counts == Counts(unchanged=FIRST.created, rejected=2)


async def test_both_projects_of_one_file_live_side_by_side(setup: ScheduleSetup) -> None:
    await setup.load("two-projects.xer", task="T1", primavera_project_id="OSBL-PIPE")
    # By object id this time: the rows still go by the short name.
    await setup.load("two-projects.xer", task="T2", primavera_project_id="300000")
    assert await setup.rows(
        "SELECT schedule_id, count(*) FROM schedule_activities"
        " WHERE missing_since IS NULL GROUP BY 1 ORDER BY 1"
    ) == [("ISBL-PIPE", 14), ("OSBL-PIPE", 14)]
    ties = "SELECT predecessor_code, successor_code FROM schedule_relationships"
    assert await setup.rows(f"{ties} WHERE predecessor_project = 'OSBL-PIPE'") == [
        ("A10-RFC-0130", "A20-HYD-0100")
    ]


@pytest.mark.parametrize("committed", [True, False], ids=["after commit", "before commit"])
async def test_a_killed_worker_changes_nothing_in_the_end(
    setup: ScheduleSetup, committed: bool
) -> None:
    undisturbed = await setup.load("unit100.xer", task="T0", project_id="P0")
    expected = [[row[1:] for row in table] for table in await setup.schedule()]
    counting = MortalStore(setup.database)
    await setup.load("unit100.xer", task="T0", project_id="P00", store=counting)
    report = await setup.report(undisturbed.report)
    for dies_at in range(1, counting.calls + 1):
        task, project = f"T{dies_at}", f"K{dies_at}"
        store = MortalStore(setup.database, dies_at, committed=committed)
        with pytest.raises(Killed):
            await setup.load("unit100.xer", task, store, project_id=project)
        outcome = await setup.load("unit100.xer", task, project_id=project)
        assert await setup.report(outcome.report) == report
        assert outcome.model_copy(update={"report": undisturbed.report}) == undisturbed
        found = [
            [row[1:] for row in table if row[0] == project] for table in await setup.schedule()
        ]
        assert found == expected


async def test_an_attempt_that_comes_after_the_end_needs_no_document(setup: ScheduleSetup) -> None:
    source = await setup.blobs.stat("unit100.xer")
    asked = {"extraction_id": "T1", "primavera_project_id": "UNIT100"}
    work = work_of(message_of("schedule_extraction", blob_name="unit100.xer", **asked), source)
    done = await environment().run(setup.imports().load_schedule, work)
    await setup.closed("unit100.xer", done)
    await setup.blobs.delete("unit100.xer")
    late = await environment().run(setup.imports().load_schedule, work)
    assert (late.counts, late.problem_count) == (done.counts, done.problem_count)


async def test_a_second_attempt_writes_only_what_is_left(setup: ScheduleSetup) -> None:
    with pytest.raises(Killed):
        await setup.load("unit100.xer", store=MortalStore(setup.database, dies_at=5))
    counting = MortalStore(setup.database)
    await setup.load("unit100.xer", store=counting)
    assert counting.written == 4


async def test_a_corrected_message_starts_over(setup: ScheduleSetup) -> None:
    with pytest.raises(Killed):
        await setup.load(
            "two-projects.xer",
            primavera_project_id="OSBL-PIPE",
            store=MortalStore(setup.database, dies_at=6),
        )
    outcome = await setup.load("two-projects.xer", primavera_project_id="ISBL-PIPE")
    assert outcome.counts.created == 79
    assert outcome.problem_count == 0


async def test_cancellation_keeps_what_is_committed(setup: ScheduleSetup) -> None:
    class SlowStore(SqlImportStore):
        async def write(self, key: TaskKey, chunk: RowChunk, strategy: Strategy) -> LoadMark:
            if chunk.table == "schedule_activities":
                writing.set()
                await asyncio.Event().wait()
            return await super().write(key, chunk, strategy)

    writing = asyncio.Event()
    running = asyncio.create_task(setup.load("unit100.xer", store=SlowStore(setup.database)))
    await writing.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await setup.rows("SELECT count(*) FROM schedule_wbs") == [(21,)]
    assert await setup.rows("SELECT count(*) FROM schedule_activities") == [(0,)]
    assert list(setup.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"primavera_project_id": "NOPE"}, UNREADABLE_DOCUMENT, "it holds UNIT100"),
        ({"schedule_config": {"encoding": "klingon"}}, UNREADABLE_DOCUMENT, "not a text encoding"),
    ],
)
async def test_permanent_failures(
    setup: ScheduleSetup, fields: dict[str, Any], kind: str, words: str
) -> None:
    with pytest.raises(ApplicationError, match=words) as raised:
        await setup.load("unit100.xer", **fields)
    assert (raised.value.type, raised.value.non_retryable) == (kind, True)


async def test_a_blob_that_is_gone(setup: ScheduleSetup) -> None:
    message = message_of(
        "schedule_extraction", blob_name="gone.xer", extraction_id="E", primavera_project_id="P"
    )
    with pytest.raises(ApplicationError) as raised:
        await environment().run(setup.imports().load_schedule, work_of(message))
    assert raised.value.type == MISSING_BLOB


async def test_the_projects_of_a_file(setup: ScheduleSetup) -> None:
    async def listed(**fields: Any) -> HandlerOutcome:
        message = message_of("schedule_project_extraction", blob_name="two-projects.xer", **fields)
        return await environment().run(setup.imports().list_schedule_projects, work_of(message))

    outcome = await listed()
    assert outcome.note == (
        "OSBL-PIPE (2025-04-01, 14 activities), ISBL-PIPE (2025-04-15, 14 activities)" + GUESSED
    )
    assert outcome.counts.created == 2
    assert await setup.rows(
        "SELECT primavera_project_id, source_name, activities FROM schedule_file_projects"
        " ORDER BY 1"
    ) == [("ISBL-PIPE", "two-projects.xer", 14), ("OSBL-PIPE", "two-projects.xer", 14)]
    only = await listed(task_id="T2", primavera_project_id="ISBL-PIPE")
    assert only.note == "ISBL-PIPE (2025-04-15, 14 activities)" + GUESSED
    with pytest.raises(ApplicationError, match="'X'; it holds OSBL-PIPE, ISBL-PIPE") as raised:
        await listed(primavera_project_id="X")
    assert raised.value.type == INVALID_DOCUMENT


async def test_bulk_operations_report_what_they_changed(setup: ScheduleSetup) -> None:
    await setup.load("unit100.xer")
    some = {"activity_ids": ["A10-ISO-0010", "A10-HYD-0100"]}
    level = {"payload": {"level": 3, "value": "Train 1"}}
    filled = await setup.change("schedule_fill_level", **some, **level)
    assert (filled.counts, filled.note) == (Counts(updated=2), "2 activities changed")
    again = await setup.change("schedule_fill_level", **some, **level)
    assert (again.counts, again.note) == (Counts(unchanged=2), "2 activities left as they were")
    cleared = await setup.change(
        "schedule_clear_level", filters={"level_3": "Train 1"}, payload={"level": 3}
    )
    assert cleared.note == "2 activities changed"
    deleted = await setup.change("schedule_delete_all", **some)
    assert (deleted.counts, deleted.note) == (Counts(deleted=2), "2 activities deleted")
    nothing = await setup.change("schedule_delete_all", **some)
    assert (nothing.counts, nothing.note) == (Counts(), "no activity matched")


async def test_another_type_of_message_is_refused(setup: ScheduleSetup) -> None:
    work = work_of(message_of("mto_delete", service_id="S"))
    imports = setup.imports()
    for handler in (
        imports.load_schedule,
        imports.list_schedule_projects,
        imports.change_activities,
    ):
        with pytest.raises(ApplicationError) as raised:
            await environment().run(handler, work)
        assert raised.value.type == PERMANENT


async def test_heartbeats_report_progress(setup: ScheduleSetup) -> None:
    beats: list[Any] = []
    message = message_of(
        "schedule_extraction",
        blob_name="unit100.xer",
        extraction_id="E",
        primavera_project_id="UNIT100",
    )
    env = environment(heartbeat_timeout=timedelta(seconds=10))
    env.on_heartbeat = lambda *details: beats.extend(details)
    store = MortalStore(setup.database, dies_at=10)
    with pytest.raises(Killed):
        await env.run(setup.imports(store).load_schedule, work_of(message))
    assert beats[-1] == ScheduleCursor(table="schedule_udf_values", rows=198)
