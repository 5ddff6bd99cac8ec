"""A schedule meets its next update, whatever its planners call it then."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from activities.imports.ports import ScheduleClaim
from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from tests.support.imports.activities import message_of, work_of
from tests.support.imports.schedules import ScheduleSetup, open_schedule_setup
from workflows.imports.runs import Counts, HandlerOutcome, ImportState, TaskKey
from workflows.imports.schedules import resembling

MARCH = tuple(f"A{number}" for number in range(1000, 1100, 10))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[ScheduleSetup]:
    async with open_schedule_setup(tmp_path) as made:
        yield made


def export(short_name: str, codes: Sequence[str], other: Sequence[str] = (), date: str = "") -> str:
    """An XER file with ids of its own; `other` are codes of a second project."""
    first = int.from_bytes(os.urandom(3)) * 10
    owned = [(first, short_name, codes), (first + 1, "OTHER", other)]
    projects = [(id, name) for id, name, held in owned if held]
    lines = (
        *("ERMHDR\t22.12", "%T\tPROJECT", "%F\tproj_id\tproj_short_name\tlast_recalc_date"),
        *(f"%R\t{id}\t{name}\t{date}" for id, name in projects),
        *("%T\tTASK", "%F\ttask_id\tproj_id\ttask_code\ttask_name"),
        *(
            f"%R\t{id * 1000 + number}\t{id}\t{code}\tActivity {code}"
            for id, _, held in owned
            for number, code in enumerate(held)
        ),
    )
    return "\n".join((*lines, "%E", ""))


async def load(
    setup: ScheduleSetup, task: str, short_name: str, codes: Sequence[str] = MARCH, **fields: str
) -> HandlerOutcome:
    await setup.put(f"{task}.xer", export(short_name, codes))
    return await setup.load(f"{task}.xer", task, primavera_project_id=short_name, **fields)


async def schedules(setup: ScheduleSetup) -> list[tuple[str, int]]:
    return [
        (str(id), int(count))
        for id, count in await setup.rows(
            "SELECT schedule_id, count(*) FROM schedule_activities GROUP BY 1 ORDER BY 1"
        )
    ]


def choices(outcome: HandlerOutcome) -> list[str]:
    assert outcome.question is not None, outcome
    assert outcome.question.field == "schedule_id"
    assert outcome.counts == Counts()
    return [choice.value for choice in outcome.question.choices]


async def test_five_updates_with_five_names_are_one_schedule(setup: ScheduleSetup) -> None:
    first = await load(setup, "T0", "U100")
    assert (first.question, first.counts.created) == (None, 12)
    level = {"payload": {"level": 1, "value": "Unit 100"}}
    await setup.change("schedule_fill_level", **level)
    for month in range(1, 6):
        name, codes = f"U100-{month:02}", (*MARCH[month:], *(f"N{n}" for n in range(month)))
        asked = await load(setup, f"T{month}", name, codes)
        assert choices(asked) == ["U100", name]
        answered = await load(setup, f"T{month}", name, codes, schedule_id="U100")
        assert answered.question is None
        assert answered.note and answered.note.startswith(f"{name} as schedule U100: 10 activities")
        again = await load(setup, f"T{month}-again", name, codes)
        assert again.question is None
    assert await schedules(setup) == [("U100", 15)]
    kept = "SELECT count(*) FROM schedule_activities WHERE level_1 = 'Unit 100'"
    assert await setup.rows(kept) == [(10,)]
    names = "SELECT alias FROM schedule_aliases WHERE schedule_id = 'U100' ORDER BY 1"
    assert [name for (name,) in await setup.rows(names)] == [
        "U100",
        *(f"U100-{n:02}" for n in range(1, 6)),
    ]
    assert await setup.rows("SELECT primavera_project_id FROM schedule_projects") == [("U100-05",)]


async def test_exports_that_come_at_once_do_not_become_schedules_of_their_own(
    setup: ScheduleSetup,
) -> None:
    store = SqlImportStore(setup.database)
    names = ("U100-01", "U100-02", "U100-03")
    for name in names:
        given = message_of("schedule_extraction", task_id=name, blob_name="x.xer")
        plan = work_of(given).plan
        assert await store.begin(given, plan, given.workflow_id, None) is None
    outcomes = await asyncio.gather(*(load(setup, name, name) for name in names))
    (loaded,) = (name for name, found in zip(names, outcomes, strict=True) if found.counts.created)
    for name in set(names) - {loaded}:
        assert choices(await load(setup, name, name)) == [loaded, name]
    assert await schedules(setup) == [(loaded, 10)]


async def test_a_file_that_is_older_than_its_schedule_is_named(setup: ScheduleSetup) -> None:
    notes: list[str | None] = []
    for task, date in (
        ("T1", "2025-04-30 00:00"),
        ("T2", "2025-05-31 17:00"),
        ("T3", "2025-03-31"),
    ):
        await setup.put(f"{task}.xer", export("U100", MARCH, date=date))
        outcome = await setup.load(f"{task}.xer", task, primavera_project_id="U100")
        again = await setup.load(f"{task}.xer", task, primavera_project_id="U100")
        assert again.note == outcome.note
        notes.append(outcome.note)
    older = "; older than what was there: its data date is 2025-03-31, not 2025-05-31"
    loaded = "10 activities, 1 WBS node"
    assert notes == [loaded, loaded, f"{loaded}{older}"]


async def test_a_load_that_waits_for_another_one_is_reported(setup: ScheduleSetup) -> None:
    store = SqlImportStore(setup.database)
    for task in ("T1", "T2"):
        given = message_of("schedule_extraction", task_id=task, blob_name="x.xer")
        await store.begin(given, work_of(given).plan, given.workflow_id, None)
    key, claim = TaskKey("P1", "T1"), ScheduleClaim("U100", "U100", {})
    assert await store.begin_schedule(key, ("work", "U100"), claim)
    waiting = await load(setup, "T2", "U100")
    assert (
        waiting.waits == "task T1 is loading a schedule of the project: this one waits for its end"
    )
    row = await SqlImportTasks(setup.database).get("P1", "T2")
    assert row is not None
    assert (row.state, row.reason) == (ImportState.RUNNING, waiting.waits)
    fill = {"task_id": "T3", "payload": {"level": 1, "value": "x"}}
    assert (await setup.change("schedule_fill_level", **fill)).waits == waiting.waits


async def test_a_baseline_is_asked_about_once_and_stays_apart(setup: ScheduleSetup) -> None:
    await load(setup, "T1", "U100")
    assert choices(await load(setup, "T2", "U100-BL")) == ["U100", "U100-BL"]
    assert (await load(setup, "T2", "U100-BL", schedule_id="U100-BL")).question is None
    assert (await load(setup, "T3", "U100-BL")).question is None
    assert await schedules(setup) == [("U100", 10), ("U100-BL", 10)]
    # Now two schedules hold its activities: which of them an update is of, a person knows.
    assert choices(await load(setup, "T4", "U100-APRIL")) == ["U100", "U100-BL", "U100-APRIL"]


async def test_another_project_is_new_without_a_question(setup: ScheduleSetup) -> None:
    await load(setup, "T1", "U100")
    few = (*MARCH[:7], *(f"B{n}" for n in range(3)))
    assert (await load(setup, "T2", "U200", few)).question is None
    elsewhere = await load(setup, "T3", "U100-COPY", project_id="P2")
    assert elsewhere.question is None
    assert await schedules(setup) == [("U100", 10), ("U100-COPY", 10), ("U200", 10)]


async def test_a_small_project_is_asked_about_too(setup: ScheduleSetup) -> None:
    await load(setup, "T1", "U100")
    assert choices(await load(setup, "T2", "SMALL", MARCH[:3])) == ["U100", "SMALL"]
    other = ("X1", "X2", MARCH[0])
    assert (await load(setup, "T3", "OTHER", other)).question is None


async def test_a_message_may_name_the_schedule_from_the_start(setup: ScheduleSetup) -> None:
    await load(setup, "T1", "U100-MARCH", schedule_id="Unit 100")
    assert (await load(setup, "T2", "U100-MARCH")).question is None
    assert await schedules(setup) == [("Unit 100", 10)]
    await load(setup, "T3", "U100-APRIL", MARCH[:5], schedule_id="Unit 100")
    gone = "SELECT count(*) FROM schedule_activities WHERE missing_since IS NOT NULL"
    assert await setup.rows(gone) == [(5,)]


async def test_the_project_of_a_file_is_named_by_its_own_short_name(setup: ScheduleSetup) -> None:
    await load(setup, "T1", "U100", schedule_id="Unit 100")
    await setup.put("two.xer", export("U100", MARCH, ("Z1", "Z2")))
    second = await setup.load("two.xer", "T2", primavera_project_id="OTHER")
    assert second.question is None
    assert await schedules(setup) == [("OTHER", 2), ("Unit 100", 10)]


@pytest.mark.parametrize(
    ("held", "total", "alike"),
    [
        ({"A": 8, "B": 7}, 10, ["A"]),
        ({"A": 8, "B": 9, "C": 9}, 10, ["B", "C", "A"]),
        ({"A": 3}, 4, []),
        ({}, 10, []),
        ({"A": 0}, 0, []),
    ],
)
def test_four_of_five_activities_are_enough(
    held: dict[str, int], total: int, alike: list[str]
) -> None:
    assert [each.schedule_id for each in resembling(held, total)] == alike
