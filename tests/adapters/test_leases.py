"""Leases: granted up to the limit, in the order of asking, until they are released."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database
from adapters.database.models.runs import leases as table
from adapters.database.records import SqlLeases
from adapters.ports.batches import Claim, LeaseWait
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import Closing

KEEP = timedelta(minutes=15)
ROOM = Claim("room", 1, 2)


@pytest.fixture
def leases(database: Database) -> SqlLeases:
    return SqlLeases(database)


async def take(leases: SqlLeases, owner: str, *claims: Claim) -> LeaseWait | None:
    return await leases.take(owner, claims or [ROOM], KEEP)


async def release(database: Database, key: BatchKey) -> None:
    await SqlBatchStore(database).truncate(key)


def owner(number: int) -> str:
    return BatchKey(case_id=number, batch_id=1).workflow_id


async def test_there_are_as_many_leases_as_the_limit_says_and_others_wait_in_order(
    leases: SqlLeases,
) -> None:
    answers = [await take(leases, owner(number)) for number in range(1, 5)]
    assert answers == [None, None, LeaseWait("room", 1), LeaseWait("room", 2)]
    assert [await take(leases, owner(number)) for number in range(1, 5)] == answers
    assert await leases.waits(owner(4)) == LeaseWait("room", 2)
    assert await leases.waits(owner(1)) is None


async def test_what_a_batch_releases_at_its_end_goes_to_who_asked_first(
    leases: SqlLeases, database: Database
) -> None:
    for number in range(1, 5):
        await take(leases, owner(number))
    await release(database, BatchKey(case_id=2, batch_id=1))
    assert await take(leases, owner(4)) == LeaseWait("room", 2)
    assert await take(leases, owner(3)) is None
    assert await take(leases, owner(4)) == LeaseWait("room", 1)


async def test_leases_of_a_terminated_run_are_reclaimed_with_its_row(
    leases: SqlLeases, database: Database
) -> None:
    store = SqlBatchStore(database)
    key = BatchKey(case_id=1, batch_id=1)
    await store.expect([key])
    assert await store.claim(key, ())
    for number in range(1, 4):
        await take(leases, owner(number))
    assert await store.terminate(key.workflow_id, "its run was terminated")
    assert await take(leases, owner(3)) is None


@pytest.mark.parametrize("has_row", [True, False])
async def test_leases_that_were_taken_after_the_end_of_their_batch_are_reclaimed(
    leases: SqlLeases, database: Database, has_row: bool
) -> None:
    store = SqlBatchStore(database)
    closed, busy = BatchKey(case_id=1, batch_id=1), BatchKey(case_id=2, batch_id=1)
    await store.expect([busy, closed] if has_row else [busy])
    for key in (busy, closed):
        assert await store.claim(key, ()) or not has_row
    if has_row:
        assert await store.terminate(closed.workflow_id, "its run was terminated")
    for number in range(1, 4):
        await take(leases, owner(number))
    # The third has no row either, and waits.
    later = datetime.now(UTC) + 2 * KEEP
    found = {row.id: row for row in await store.open_rows(later, "", 10)}
    assert set(found) == {busy.workflow_id, "lease/batch/1/1", "lease/batch/3/1"}
    left = found["lease/batch/1/1"]
    assert left.run == closed.workflow_id
    assert [row.id for row in await store.open_rows(later, "lease/batch/1/1", 10)] == [
        "lease/batch/3/1"
    ]
    assert not [
        row for row in await store.open_rows(datetime.now(UTC), "", 10) if row.id in left.id
    ]
    assert not await store.terminate(left.id, "why", left.changed_at - KEEP)
    assert await store.terminate(left.id, "why", left.changed_at)
    assert not await store.terminate(left.id, "why")
    assert await take(leases, owner(3)) is None
    assert await leases.waits(owner(2)) is None


async def test_who_no_longer_asks_loses_its_place(leases: SqlLeases) -> None:
    for number in (1, 2):
        await take(leases, owner(number))
    await leases.take(owner(3), [ROOM], timedelta(seconds=-1))
    assert await take(leases, owner(4)) == LeaseWait("room", 1)
    assert await take(leases, owner(3)) == LeaseWait("room", 2)


async def test_a_large_claim_is_not_overtaken_and_one_beyond_the_limit_is_all_of_it(
    leases: SqlLeases, database: Database
) -> None:
    assert await take(leases, owner(1), Claim("cpus", 60, 100)) is None
    assert await take(leases, owner(2), Claim("cpus", 500, 100)) == LeaseWait("cpus", 1)
    assert await take(leases, owner(3), Claim("cpus", 10, 100)) == LeaseWait("cpus", 2)
    await release(database, BatchKey(case_id=1, batch_id=1))
    assert await take(leases, owner(2), Claim("cpus", 500, 100)) is None


async def test_the_second_resource_is_asked_for_when_the_first_is_there(leases: SqlLeases) -> None:
    both = (ROOM, Claim("cpus", 1, 1))
    assert await take(leases, owner(1), *both) is None
    assert await take(leases, owner(2), *both) == LeaseWait("cpus", 1)
    assert await take(leases, owner(3), *both) == LeaseWait("room", 1)


async def test_many_that_ask_at_once_get_no_more_than_there_is(
    leases: SqlLeases, database: Database
) -> None:
    answers = await asyncio.gather(*(take(leases, owner(number)) for number in range(1, 13)))
    waits = [answer for answer in answers if answer is not None]
    assert len(waits) == 10
    async with database.reading() as connection:
        rows = (await connection.execute(select(table.c.granted))).scalars().all()
    assert sum(rows) == 2


async def test_a_batch_of_which_nothing_was_built_releases_them_with_its_row(
    leases: SqlLeases, database: Database
) -> None:
    for number in (1, 2):
        await take(leases, owner(number))
    store, first = SqlBatchStore(database), BatchKey(case_id=1, batch_id=1)
    await store.close(Closing(key=first, status=LoaderStatus.CANCELLED))
    assert await take(leases, owner(3)) == LeaseWait("room", 1)
    await store.close(Closing(key=first, status=LoaderStatus.CANCELLED, unbuilt=True))
    assert await take(leases, owner(3)) is None
