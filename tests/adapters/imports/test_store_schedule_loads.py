"""Loads of schedules of a project take turns, and bulk operations wait for them."""

import asyncio

import pytest

from activities.imports.ports import HeldBy
from activities.imports.store import SqlImportStore
from tests.adapters.imports.test_store_schedules import asked_to_change, begin, load
from tests.support.imports.store import message, plan
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import Closing, Counts, ImportState, LoadMark, TaskKey

FIRST, SECOND = TaskKey("p1", "t1"), TaskKey("p1", "t2")
LEVEL = {"payload": {"level": 1, "value": "Unit 100"}}


def extraction(key: TaskKey) -> ImportMessage:
    return message("schedule_extraction", task_id=key.task_id)


async def opened(store: SqlImportStore, key: TaskKey) -> None:
    """The status row of an extraction that runs."""
    given = extraction(key)
    assert await store.begin(given, plan(), given.workflow_id, None) is None


async def closed(store: SqlImportStore, key: TaskKey, state: ImportState) -> None:
    given = extraction(key)
    await store.close(Closing(message=given, state=state, reason="why"), given.workflow_id)


@pytest.mark.parametrize("schedule", ["PP", "NEW"])
async def test_a_load_waits_for_another_one_of_its_schedule_and_a_new_one_for_all(
    store: SqlImportStore, schedule: str
) -> None:
    await opened(store, FIRST)
    await opened(store, SECOND)
    assert isinstance(await begin(store, FIRST, "PP", "PP"), LoadMark)
    assert await begin(store, SECOND, schedule, schedule) == HeldBy("t1")
    assert isinstance(await begin(store, FIRST, "PP", "PP"), LoadMark)


async def test_loads_of_two_known_schedules_do_not_wait(store: SqlImportStore) -> None:
    for number, schedule in enumerate(("PP", "OTHER")):
        await load(store, TaskKey("p1", f"before{number}"), "A", project=schedule)
    await opened(store, FIRST)
    await opened(store, SECOND)
    assert isinstance(await begin(store, FIRST, "PP", "PP"), LoadMark)
    assert isinstance(await begin(store, SECOND, "OTHER", "OTHER"), LoadMark)


async def test_one_of_two_new_loads_at_once_begins(store: SqlImportStore) -> None:
    await opened(store, FIRST)
    await opened(store, SECOND)
    found = await asyncio.gather(
        begin(store, FIRST, "MARCH", "MARCH", known={}),
        begin(store, SECOND, "APRIL", "APRIL", known={}),
    )
    assert sorted(type(each).__name__ for each in found) == ["HeldBy", "LoadMark"]


async def test_a_new_schedule_is_looked_for_again_when_there_are_other_names(
    store: SqlImportStore,
) -> None:
    await load(store, FIRST, "A")
    await opened(store, SECOND)
    assert await begin(store, SECOND, "NEW", "NEW", known={}) is None
    assert isinstance(await begin(store, SECOND, "NEW", "NEW"), LoadMark)


@pytest.mark.parametrize(
    "state", [ImportState.PARKED, ImportState.COMPLETED, ImportState.CANCELLED]
)
async def test_nothing_waits_for_a_load_that_has_ended_or_waits_for_a_person(
    store: SqlImportStore, state: ImportState
) -> None:
    await opened(store, FIRST)
    await opened(store, SECOND)
    await begin(store, FIRST, "PP", "PP")
    assert await begin(store, SECOND, "PP", "PP") == HeldBy("t1")
    await closed(store, FIRST, state)
    assert isinstance(await begin(store, SECOND, "PP", "PP"), LoadMark)


async def test_a_parked_load_that_is_retried_waits_and_the_other_one_does_not_wait_for_it(
    store: SqlImportStore,
) -> None:
    await opened(store, FIRST)
    await begin(store, FIRST, "PP", "PP")
    await closed(store, FIRST, ImportState.PARKED)
    await opened(store, SECOND)
    assert isinstance(await begin(store, SECOND, "PP", "PP"), LoadMark)
    await opened(store, FIRST)
    assert await begin(store, FIRST, "PP", "PP") == HeldBy("t2")
    assert isinstance(await begin(store, SECOND, "PP", "PP"), LoadMark)


async def test_a_bulk_operation_waits_for_a_load_of_its_project(store: SqlImportStore) -> None:
    await opened(store, FIRST)
    await begin(store, FIRST, "PP", "PP")
    for kind, fields in (("schedule_fill_level", LEVEL), ("schedule_delete_all", {})):
        assert await asked_to_change(store, kind, task_id=kind, **fields) == HeldBy("t1")
        elsewhere = await asked_to_change(
            store, kind, task_id=f"{kind}-2", project_id="p2", **fields
        )
        assert elsewhere == Counts()
    await store.finish(FIRST)
    done = await asked_to_change(store, "schedule_fill_level", task_id="t9", **LEVEL)
    assert done == Counts()
