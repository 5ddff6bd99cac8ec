"""What a person can find of a schedule that did not go in as it stands."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.imports.schedules import ScheduleSetup, open_schedule_setup, xer_of


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[ScheduleSetup]:
    async with open_schedule_setup(tmp_path) as setup:
        yield setup


async def test_the_report_holds_every_left_out_row(setup: ScheduleSetup) -> None:
    outcome = await setup.load("unit100.xer")
    header, repeated, dangling = await setup.report(outcome.report)
    assert header == ["what is wrong", "table", "line", "values of the row"]
    assert repeated[:5] == [
        "task_code: the file holds this key of schedule_activities more than once;"
        " the first one counts",
        *("schedule_activities", 110, "schedule_id: UNIT100", "task_code: A30-RFC-0130"),
    ]
    assert dangling[:5] == [
        "predecessor_code: the file does not hold what it refers to",
        *("schedule_relationships", 158, "predecessor: 999003", "successor: 103001"),
    ]


async def test_no_report_without_a_left_out_row(setup: ScheduleSetup) -> None:
    outcome = await setup.load("tankfarm.xml", primavera_project_id="TANKFARM")
    assert outcome.report is None


async def test_a_second_run_writes_the_same_report(setup: ScheduleSetup) -> None:
    first = await setup.load("unit100.xer")
    rows = await setup.report(first.report)
    second = await setup.load("unit100.xer")
    assert second.model_copy(update={"report": first.report}) == first
    assert await setup.report(second.report) == rows


async def test_more_left_out_rows_than_a_chunk_holds(setup: ScheduleSetup) -> None:
    await setup.put("many.xer", xer_of([f"{n}\t1\t\t8" for n in range(4_500)]))
    outcome = await setup.load("many.xer", primavera_project_id="P1")
    assert (outcome.counts.rejected, outcome.problem_count) == (4_500, 4_500)
    report = await setup.report(outcome.report)
    assert [row[2] for row in report[1:]] == list(range(7, 4_507))


async def test_a_row_that_the_store_refuses_is_counted_and_reported(setup: ScheduleSetup) -> None:
    # Two codes of four bytes a character make a key that no index holds.
    pressure, vacuum = "\U0001d4af" * 255, "\U0001d4b1" * 255
    tasks = (f"1\t1\t{pressure}\t8", f"2\t1\t{vacuum}\t8", "3\t1\tA\t8")
    links = ("2\t1\t1\t1\tPR_FS", "3\t1\t1\t1\tPR_FS")
    await setup.put("long.xer", xer_of(tasks, links))
    outcome = await setup.load("long.xer", primavera_project_id="P1")
    assert (outcome.counts.rejected, outcome.problem_count) == (1, 1)
    assert await setup.rows("SELECT successor_code FROM schedule_relationships") == [("A",)]
    _, row = await setup.report(outcome.report)
    assert str(row[0]).startswith("the key is longer than")
    assert row[1:3] == ["schedule_relationships", 12]
    assert row[4:6] == [f"predecessor_code: {pressure}", f"successor_code: {vacuum}"]


async def test_the_status_row_reports_emptied_values_beside_left_out_rows(
    setup: ScheduleSetup,
) -> None:
    left_out = [f"{n}\t1\t\t8" for n in range(120)]
    emptied = ["200\t1\tA\tnine days", "201\t1\tB\tten days"]
    await setup.put("wrong.xer", xer_of([*left_out, *emptied]))
    outcome = await setup.load("wrong.xer", primavera_project_id="P1")
    assert (outcome.counts.rejected, outcome.problem_count) == (120, 122)
    assert [problem.line for problem in outcome.problems] == [7, 8, 9, 127, 128]
    row = await setup.closed("wrong.xer", outcome)
    assert row.problem_count == 122
    assert [problem.line for problem in row.problems] == [*range(7, 105), 127, 128]
    assert row.report == outcome.report
    again = await setup.closed("wrong.xer", outcome)
    assert again.problems == row.problems


async def test_a_tie_to_the_same_code_of_another_project_is_another_tie(
    setup: ScheduleSetup,
) -> None:
    other = "%T\tPROJECT\n%F\tproj_id\tproj_short_name\n%R\t2\tP2\n%T\tTASK"
    tasks = ("1\t1\tA\t8", "2\t1\tB\t8", "3\t2\tA\t8")
    links = ("2\t1\t1\t1\tPR_FS", "2\t3\t1\t2\tPR_FS")
    await setup.put("tied.xer", xer_of(tasks, links).replace("%T\tTASK", other, 1))
    for task in ("T1", "T2"):
        outcome = await setup.load("tied.xer", task, primavera_project_id="P1")
        assert (outcome.counts.rejected, outcome.counts.deleted) == (0, 0)
        assert await setup.rows(
            "SELECT predecessor_code, successor_code, predecessor_project, successor_project"
            " FROM schedule_relationships ORDER BY predecessor_project"
        ) == [("A", "B", "", ""), ("A", "B", "P2", "")]
