"""Schedules: what newer files no longer hold, bulk operations, registrations."""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from activities.imports.ports import HeldBy, ScheduleClaim
from activities.imports.store import SqlImportStore
from adapters.database.engine import Database
from adapters.database.models.imports import SCHEDULES, schedule_seen
from tests.support.imports.store import chunk, count, message, stored
from workflows.imports.messages import BulkMessage, Strategy
from workflows.imports.runs import Counts, LoadMark, TaskKey
from workflows.imports.schedules import ScheduleProject
from workflows.shared.contracts import BlobRef

PROJECT = "project_id schedule_id primavera_project_id"
ACTIVITY = "project_id schedule_id task_code name status"
RELATION = (
    "project_id schedule_id predecessor_code successor_code type"
    " predecessor_project successor_project"
)
ASSIGNMENT = "project_id schedule_id task_code resource_code role sequence"
CODE = "project_id schedule_id task_code code_type code_value"
UDF = "project_id schedule_id entity entity_code udf value"


def key(number: int) -> TaskKey:
    return TaskKey("p1", f"t{number}")


async def load(
    store: SqlImportStore, key: TaskKey, *codes: str, project: str = "PP", name: str = "x"
) -> None:
    """A schedule of these activities, each tied to the next, with a child of every kind."""
    await store.restart(key, [])
    scope = ("p1", project)
    pairs = list(pairwise(codes))
    chunks: list[tuple[str, str, list[tuple[Any, ...]]]] = [
        ("schedule_projects", PROJECT, [(*scope, project)]),
        ("schedule_activities", ACTIVITY, [(*scope, code, name, "open") for code in codes]),
        ("schedule_relationships", RELATION, [(*scope, *pair, "FS", "", "") for pair in pairs]),
        ("schedule_assignments", ASSIGNMENT, [(*scope, code, "R", "", 1) for code in codes]),
        ("schedule_activity_codes", CODE, [(*scope, code, "AREA", "1") for code in codes]),
        (
            "schedule_udf_values",
            UDF,
            [
                *((*scope, "activity", code, "U", "1") for code in codes),
                (*scope, "wbs", "W", "U", "1"),
            ],
        ),
    ]
    cursor = 0
    for table, columns, rows in chunks:
        cursor += len(rows)
        if rows:
            await store.write(
                key, chunk(table, columns, *rows, cursor=cursor, cells=False), Strategy.MERGE
            )


async def missing(database: Database) -> dict[str, bool]:
    rows = await stored(database, "schedule_activities", "task_code missing_since")
    return {code: since is not None for code, since in rows}


async def children(database: Database) -> dict[str, int]:
    tables = ("relationships", "assignments", "activity_codes", "udf_values")
    return {name: len(await stored(database, f"schedule_{name}", "project_id")) for name in tables}


async def test_missing_activities_are_flagged_and_return(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B", "C")
    assert await store.retire(key(1), "PP") == Counts()
    await load(store, key(2), "A", "B")
    gone = await store.retire(key(2), "PP")
    assert gone == Counts(flagged=1, deleted=4)
    assert await missing(database) == {"A": False, "B": False, "C": True}
    assert await children(database) == {
        "relationships": 1,
        "assignments": 2,
        "activity_codes": 2,
        "udf_values": 3,
    }
    await load(store, key(3), "A", "B")
    assert await store.retire(key(3), "PP") == Counts()
    await load(store, key(4), "A", "B", "C")
    assert await store.retire(key(4), "PP") == Counts()
    assert await missing(database) == {"A": False, "B": False, "C": False}


async def test_retiring_twice_changes_nothing_and_returns_the_same(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B")
    await store.retire(key(1), "PP")
    await load(store, key(2), "A")
    first = await store.retire(key(2), "PP")
    assert await store.retire(key(2), "PP") == first
    assert (await store.finish(key(2))).counts == Counts(unchanged=6)
    assert await missing(database) == {"A": False, "B": True}
    assert await count(database, schedule_seen) == 0


async def test_another_project_is_not_touched(store: SqlImportStore, database: Database) -> None:
    await load(store, key(1), "A", "B", project="OTHER")
    await store.retire(key(1), "OTHER")
    await load(store, key(2), "C")
    assert await store.retire(key(2), "PP") == Counts()
    assert await missing(database) == {"A": False, "B": False, "C": False}


async def test_a_new_load_of_the_same_task_forgets_what_the_old_one_had_seen(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B")
    await load(store, key(1), "A")
    assert (await store.retire(key(1), "PP")).flagged == 1
    assert await missing(database) == {"A": False, "B": True}


async def test_a_file_does_not_touch_what_people_set(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A")
    fill = message("schedule_fill_level", payload={"level": 3, "value": "Unit 100"})
    assert isinstance(fill, BulkMessage)
    await store.change_activities(fill)
    await load(store, key(2), "A", name="renamed")
    assert await stored(database, "schedule_activities", "name level_3") == [
        ("renamed", "Unit 100")
    ]
    with pytest.raises(ValueError, match="cannot be imported"):
        await store.write(
            key(3),
            chunk("schedule_activities", f"{ACTIVITY} notes", ("p1", "PP", "A", "", "", "mine")),
            Strategy.MERGE,
        )


async def change(store: SqlImportStore, document_type: str, **fields: Any) -> Counts:
    done = await asked_to_change(store, document_type, **fields)
    assert isinstance(done, Counts)
    return done


async def asked_to_change(
    store: SqlImportStore, document_type: str, **fields: Any
) -> Counts | HeldBy:
    given = message(document_type, **fields)
    assert isinstance(given, BulkMessage)
    return await store.change_activities(given)


async def begin(
    store: SqlImportStore,
    task: TaskKey,
    alias: str,
    schedule: str,
    known: Mapping[str, str] | None = None,
) -> LoadMark | HeldBy | None:
    names = await store.schedule_names("p1") if known is None else known
    claim = ScheduleClaim(alias, schedule, names)
    return await store.begin_schedule(task, ("work", schedule), claim)


async def test_an_operation_done_twice_is_counted_as_at_first(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B")
    operation = {"document_type": "schedule_delete_all", "activity_ids": ["A"]}
    for _ in range(2):
        assert await change(store, **operation) == Counts(deleted=1)
    await load(store, key(2), "A")
    assert await change(store, **operation) == Counts(deleted=1)
    assert await stored(database, "schedule_activities", "task_code") == [("A",), ("B",)]


async def test_fill_and_clear_count_what_they_changed(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B", "C")
    level = {"level": 10, "value": "L"}
    some = await change(store, "schedule_fill_level", payload=level, activity_ids=["A", "B", "Z"])
    assert some == Counts(updated=2)
    rest = await change(store, "schedule_fill_level", payload=level)
    assert rest == Counts(updated=1, unchanged=2)
    cleared = await change(store, "schedule_clear_level", payload={"level": 10}, activity_ids=["C"])
    assert cleared == Counts(updated=1)
    assert await stored(database, "schedule_activities", "level_10 version") == [
        ("L", 2),
        ("L", 2),
        (None, 3),
    ]
    column = {"column": "responsible", "value": "Gerda\0"}
    assert await change(store, "schedule_fill_column", payload=column) == Counts(updated=3)
    nothing = await change(
        store, "schedule_fill_column", payload=column, filters={"task_code": ["x"]}
    )
    assert nothing == Counts()


@pytest.mark.parametrize(
    ("filters", "selected"),
    [
        ({"status": "open"}, "ABCD"),
        ({"name": None}, "CD"),
        ({"name": ["one", None]}, "ACD"),
        ({"name": ["one", "two"]}, "AB"),
        ({"name": []}, ""),
        ({"name": "one' OR '1'='1"}, ""),
        ({"name": "one\0"}, ""),
        ({"area": 5}, "A"),
        ({"area": True}, "B"),
        ({"area": [5, 1.5]}, "AC"),
        ({"name": "two", "area": True}, "B"),
        ({"name": "one", "area": True}, ""),
        ({"primavera_project_id": "OTHER"}, ""),
        ({}, "ABCD"),
    ],
)
async def test_filters(
    store: SqlImportStore, database: Database, filters: dict[str, Any], selected: str
) -> None:
    names = {"A": "one", "B": "two", "C": None, "D": ""}
    rows = [("p1", "PP", code, name, "open") for code, name in names.items()]
    await store.write(key(1), chunk("schedule_activities", ACTIVITY, *rows), Strategy.MERGE)
    for code, area in {"A": "5", "B": "true", "C": "1.5"}.items():
        payload = {"column": "area", "value": area}
        await change(store, "schedule_fill_column", payload=payload, activity_ids=[code])
    counts = await change(
        store, "schedule_fill_level", payload={"level": 1, "value": "x"}, filters=filters
    )
    marked = await stored(database, "schedule_activities", "task_code level_1")
    assert "".join(code for code, level in marked if level) == selected
    assert counts == Counts(updated=len(selected))


async def test_ten_thousand_ids_are_no_problem(store: SqlImportStore) -> None:
    codes = [f"A{n}" for n in range(10_000)]
    rows = [("p1", "PP", code, "n", "open") for code in codes]
    await store.write(
        key(1), chunk("schedule_activities", ACTIVITY, *rows, cells=False), Strategy.MERGE
    )
    payload = {"level": 1, "value": "x"}
    counts = await change(store, "schedule_fill_level", payload=payload, activity_ids=codes)
    assert counts == Counts(updated=10_000)
    assert await change(store, "schedule_delete_all", activity_ids=codes[1:]) == Counts(
        deleted=9_999
    )


async def test_delete_takes_children_along(store: SqlImportStore, database: Database) -> None:
    await load(store, key(1), "A", "B", "C")
    await load(store, key(2), "A", "B", project="OTHER")
    across = [
        ("p1", "OTHER", "B", "A", "SS", "PP", ""),
        ("p1", "OTHER", "A", "C", "SS", "", "PP"),
    ]
    await store.write(key(3), chunk("schedule_relationships", RELATION, *across), Strategy.MERGE)
    counts = await change(
        store,
        "schedule_delete_all",
        activity_ids=["B"],
        filters={"primavera_project_id": "PP"},
    )
    assert counts == Counts(deleted=1)
    assert await stored(
        database,
        "schedule_relationships",
        "schedule_id predecessor_code successor_code",
    ) == [("OTHER", "A", "B"), ("OTHER", "A", "C")]
    assert await children(database) == {
        "relationships": 2,
        "assignments": 4,
        "activity_codes": 4,
        "udf_values": 6,
    }
    assert (
        await change(store, "schedule_delete_all", filters={"primavera_project_id": "PP"})
    ).deleted == 2
    assert await change(store, "schedule_delete_all") == Counts(deleted=2)
    assert await children(database) == {
        "relationships": 0,
        "assignments": 0,
        "activity_codes": 0,
        "udf_values": 0,
    }
    assert await stored(database, "schedule_projects", "schedule_id") == []


async def test_uploads_and_projects_are_registered_once(
    store: SqlImportStore, database: Database
) -> None:
    blob = BlobRef(name="schedules/a.xer", size=10, sha256="cd" * 32)
    assert await store.register_upload(key(1), blob, "Plan\0.xer") == Counts(created=1)
    assert await store.register_upload(key(1), blob, "Plan\0.xer") == Counts(created=1)
    assert await store.register_upload(key(2), blob, "New.xer") == Counts(updated=1)
    assert await stored(database, "schedule_uploads", "size original_filename") == [(10, "New.xer")]
    moment = datetime(2026, 1, 2, 7, 30)
    project = ScheduleProject("PP", "4711", "Plant", moment, None, None, 41)
    assert await store.record_schedule_projects(key(1), blob, [project]) == Counts(created=1)
    assert await store.record_schedule_projects(key(1), blob, [project]) == Counts(created=1)
    assert await store.record_schedule_projects(key(1), blob, []) == Counts()
    assert await stored(database, "schedule_file_projects", "data_date activities") == [
        (moment, 41)
    ]


async def test_a_schedule_without_activities_goes_whole(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B")
    await load(store, key(2), "A", "C", project="OTHER")
    for number, alias in enumerate(("PP", "PP-2", "OTHER")):
        await begin(store, key(number), alias, alias[:2] if alias[0] == "P" else alias)
    some = await change(store, "schedule_delete_all", activity_ids=["A"])
    assert some == Counts(deleted=2)
    assert len(await stored(database, "schedule_projects", "schedule_id")) == 2
    rest = await change(store, "schedule_delete_all", filters={"primavera_project_id": "PP-2"})
    assert rest == Counts(deleted=1)
    for table in SCHEDULES:
        kept = await stored(database, table.name, "schedule_id")
        assert {schedule for (schedule,) in kept} <= {"OTHER"}, table.name
    assert await store.schedule_names("p1") == {"OTHER": "OTHER"}


async def test_activities_that_are_deleted_one_by_one_take_their_schedule_along(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A", "B")
    await change(store, "schedule_delete_all", filters={"status": "open"})
    assert await stored(database, "schedule_projects", "schedule_id") == []


async def test_a_schedule_that_never_had_activities_goes_with_an_empty_list_of_ids_too(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1))
    assert await stored(database, "schedule_projects", "schedule_id") == [("PP",)]
    assert await change(store, "schedule_delete_all", activity_ids=[]) == Counts()
    assert await stored(database, "schedule_projects", "schedule_id") == []


async def test_schedules_are_found_by_every_name(store: SqlImportStore, database: Database) -> None:
    await load(store, key(1), "A", "B", "C")
    await load(store, key(2), "C", "D", project="OTHER")
    assert await store.schedule_names("p1") == {"PP": "PP", "OTHER": "OTHER"}
    assert await store.schedules_holding("p1", ["A", "C", "X"]) == {"PP": 2, "OTHER": 1}
    assert await store.schedules_holding("p2", ["A"]) == {}
    for schedule in ("OTHER", "PP"):
        await begin(store, key(3), "PP-MARCH", schedule)
    assert (await store.schedule_names("p1"))["PP-MARCH"] == "PP"
    level = {"level": 1, "value": "x"}
    for number, name in enumerate(("PP-MARCH", "PP"), 1):
        for filters in ({"primavera_project_id": name}, {"schedule_id": "PP"}):
            counts = await change(
                store, "schedule_fill_level", payload={**level, "level": number}, filters=filters
            )
            assert counts.updated + counts.unchanged == 3
    nothing = await change(
        store, "schedule_fill_level", payload=level, filters={"schedule_id": "PP-MARCH"}
    )
    assert nothing == Counts()


async def test_a_relationship_learns_the_schedule_at_its_other_end(
    store: SqlImportStore, database: Database
) -> None:
    await load(store, key(1), "A")
    across = ("p1", "PP", "B", "A", "FS", "NEW-NAME", "")
    await store.write(key(2), chunk("schedule_relationships", RELATION, across), Strategy.MERGE)
    await begin(store, key(3), "NEW-NAME", "OTHER")
    found = await stored(database, "schedule_relationships", "predecessor_project")
    assert found == [("OTHER",)]
