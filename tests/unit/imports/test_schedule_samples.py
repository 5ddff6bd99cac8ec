"""The sample schedules, read as they are."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.files.schedules.primavera import open_schedule
from tests.support.imports.schedule_reading import ReadSchedule, read_project

SAMPLES = Path(__file__).parents[3] / "samples"


def read(name: str, project: str) -> ReadSchedule:
    with open_schedule(SAMPLES / name) as source:
        return read_project(source, project)


def of_table(name: str, project: str, table: str) -> list[dict[str, Any]]:
    return read(name, project).of_table(table)


@pytest.mark.parametrize(
    ("name", "project", "counts"),
    [
        ("unit100.xer", "UNIT100", (1, 2, 21, 7, 41, 45, 33, 40, 7)),
        ("unit100-update.xer", "UNIT100", (1, 2, 21, 7, 40, 45, 33, 40, 7)),
        ("two-projects.xer", "OSBL-PIPE", (1, 2, 11, 7, 14, 16, 11, 14, 3)),
        ("two-projects.xer", "ISBL-PIPE", (1, 2, 11, 7, 14, 16, 11, 14, 3)),
        ("tankfarm.xml", "TANKFARM", (1, 2, 16, 7, 27, 30, 22, 27, 2)),
    ],
)
def test_every_table_in_its_order(name: str, project: str, counts: tuple[int, ...]) -> None:
    tables = (
        *("projects", "calendars", "wbs", "resources", "activities", "relationships"),
        *("assignments", "activity_codes", "udf_values"),
    )
    found = Counter(table for table, _ in read(name, project).entities)
    assert list(found.items()) == [
        (f"schedule_{table}", count) for table, count in zip(tables, counts, strict=True)
    ]


def test_the_deliberate_mistakes_are_reported() -> None:
    reading = read("unit100.xer", "UNIT100")
    (remark,) = reading.remarks
    assert (remark.column, remark.value) == ("original_duration_hours", "neun Tage")
    assert remark.reason == "is not a number; the value was left empty"
    (left_out,) = reading.rejected
    assert left_out.cells[0] == "schedule_relationships"
    assert (left_out.problems[0].column, left_out.problems[0].value) == (
        "predecessor_code",
        "999003",
    )


def test_umlauts_and_a_name_on_two_lines() -> None:
    names = {
        values["task_code"]: values["name"]
        for values in of_table("unit100.xer", "UNIT100", "schedule_activities")
    }
    assert names["A10-NDT-0040"] == "Schweißnähte prüfen (RT/PT) Kühlwasser"
    assert names["A20-SPL-0030"] == "Spools vorfertigen\nReaktor (1.4571)"


def test_the_update_shares_codes_and_no_ids() -> None:
    def codes(name: str) -> set[str]:
        return {v["task_code"] for v in of_table(name, "UNIT100", "schedule_activities")}

    def ids(name: str) -> set[str]:
        with open_schedule(SAMPLES / name) as source:
            return {project.object_id for project in source.projects()}

    before, after = codes("unit100.xer"), codes("unit100-update.xer")
    assert before - after == {"A10-INS-0120"}
    assert after - before == {"A20-CHM-0095"}
    assert not ids("unit100.xer") & ids("unit100-update.xer")


def test_both_formats_give_the_same_columns_and_words() -> None:
    xer = read("two-projects.xer", "OSBL-PIPE").entities
    xml = read("tankfarm.xml", "TANKFARM").entities
    assert {table: list(values) for table, values in xer} == {
        table: list(values) for table, values in xml
    }
    for column in ("type", "status"):
        words = [
            {values[column] for table, values in entities if table == "schedule_activities"}
            for entities in (xer, xml)
        ]
        assert words[0] <= words[1]


def test_two_projects_with_data_dates() -> None:
    with open_schedule(SAMPLES / "two-projects.xer") as source:
        projects = source.projects()
    assert [(p.primavera_project_id, str(p.data_date), p.activities) for p in projects] == [
        ("OSBL-PIPE", "2025-04-01 00:00:00", 14),
        ("ISBL-PIPE", "2025-04-15 00:00:00", 14),
    ]
