"""Cases and batches in their tables, on SQLite and PostgreSQL."""

import asyncio

import pytest

from adapters.database import Database
from adapters.database.batches import SqlBatchStore
from contracts.batches import (
    BatchKey,
    CancelMode,
    Closing,
    DocumentCounts,
    JobEvent,
    JobStarted,
    LoaderStatus,
    Purpose,
    Timings,
    WaitingBatch,
)
from tests.support.batches import again, cancelled, ended, finished, started

CASE = 7
FIRST, SECOND, THIRD = (BatchKey(case_id=CASE, batch_id=number) for number in (1, 2, 3))
ENDED = (LoaderStatus.FAILED, LoaderStatus.SKIPPED, LoaderStatus.INCOMPLETE)


@pytest.fixture
def batches(database: Database) -> SqlBatchStore:
    return SqlBatchStore(database)


async def _note(batches: SqlBatchStore, *events: JobEvent) -> dict[int, WaitingBatch]:
    """The line after some events, which are noted twice: a worker may die in between."""
    await batches.note(CASE, events)
    line = await batches.note(CASE, events)
    assert [one.batch_id for one in line.batches] == sorted(one.batch_id for one in line.batches)
    return {one.batch_id: one for one in line.batches}


async def _status(batches: SqlBatchStore, key: BatchKey) -> LoaderStatus:
    view = await batches.get(key)
    assert view is not None
    return view.status


async def _close(
    batches: SqlBatchStore, key: BatchKey, status: LoaderStatus, dead: int = 0
) -> None:
    await batches.close(Closing(key=key, status=status, reason="so", dead_letters=dead))


async def test_batches_wait_in_the_order_of_their_ids(batches: SqlBatchStore) -> None:
    await batches.expect([THIRD, FIRST, FIRST])
    line = await _note(batches, started(SECOND))
    assert {id: one.purpose for id, one in line.items()} == {1: None, 2: Purpose.LOAD, 3: None}
    assert {one.status for one in line.values()} == {LoaderStatus.WAITING}


async def test_a_batch_keeps_the_times_it_was_started_with(batches: SqlBatchStore) -> None:
    times = Timings(poll=17, max_redrives=5)
    line = await _note(batches, started(FIRST, timings=times), started(SECOND))
    assert (line[1].timings, line[2].timings) == (times, None)


async def test_events_that_come_early_are_found_again(batches: SqlBatchStore) -> None:
    assert await batches.facts(FIRST) is None
    await _note(batches, ended(FIRST), finished(FIRST), started(FIRST))
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.job_finished and facts.end_finished


async def test_a_claim_begins_what_was_asked_for(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST))
    assert await batches.claim(FIRST, ())
    assert await batches.claim(FIRST, ())
    line = await _note(batches)
    assert (line[1].status, line[1].purpose) == (LoaderStatus.PROCESSING, None)


async def test_only_one_batch_of_a_case_is_claimed(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    for _ in range(5):
        claims = await asyncio.gather(batches.claim(FIRST, ()), batches.claim(SECOND, ()))
        assert sorted(claims) == [False, True]
        for key in (FIRST, SECOND):
            await _close(batches, key, LoaderStatus.FAILED)
        await _note(batches, started(FIRST), started(SECOND))


async def test_a_claim_takes_orphans_out_and_nobody_else(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    assert await batches.claim(FIRST, ())
    assert not await batches.claim(SECOND, (3,))
    assert await _status(batches, FIRST) is LoaderStatus.PROCESSING
    assert await batches.claim(SECOND, (1,))
    assert await _status(batches, FIRST) is LoaderStatus.INCOMPLETE
    facts = await batches.facts(THIRD) or await batches.facts(FIRST)
    assert facts is not None and [id for id, _ in facts.processing] == [2]


@pytest.mark.parametrize("status", ENDED)
async def test_a_batch_that_ended_badly_can_be_started_again_and_begins_clean(
    batches: SqlBatchStore, status: LoaderStatus
) -> None:
    await _note(batches, started(FIRST), finished(FIRST), ended(FIRST))
    await batches.claim(FIRST, ())
    await batches.start_pass(FIRST, 2, True)
    await _close(batches, FIRST, status)
    assert await _note(batches, finished(FIRST), ended(FIRST)) == {}
    line = await _note(batches, started(FIRST))
    facts = await batches.facts(FIRST)
    assert (line[1].status, line[1].purpose) == (LoaderStatus.WAITING, Purpose.LOAD)
    assert facts is not None
    assert (facts.job_finished, facts.end_finished, facts.reason) == (False, False, None)
    assert not await batches.is_final_pass(FIRST)


@pytest.mark.parametrize("status", [LoaderStatus.COMPLETE, LoaderStatus.CANCELLED])
async def test_a_batch_that_is_over_is_not_started_again(
    batches: SqlBatchStore, status: LoaderStatus
) -> None:
    await _note(batches, started(FIRST))
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, status)
    assert await _note(batches, started(FIRST), cancelled(key=FIRST)) == {}
    assert await _status(batches, FIRST) is status


async def test_kept_dead_letters_can_be_asked_for_again(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    for key, dead in ((FIRST, 3), (SECOND, 0)):
        await batches.claim(key, ())
        await _close(batches, key, LoaderStatus.COMPLETE, dead)
    line = await _note(batches, again(FIRST), again(SECOND))
    assert {id: one.purpose for id, one in line.items()} == {1: Purpose.REDRIVE}


async def test_a_cancel_ends_what_has_not_begun_and_leaves_the_rest_to_its_run(
    batches: SqlBatchStore,
) -> None:
    await _note(batches, started(FIRST))
    await batches.claim(FIRST, ())
    line = await _note(
        batches, cancelled(CancelMode.PARTIAL, FIRST), cancelled(key=SECOND), started(SECOND)
    )
    assert list(line) == [1]
    assert await _status(batches, FIRST) is LoaderStatus.PROCESSING
    assert await _status(batches, SECOND) is LoaderStatus.CANCELLED


async def test_a_skipped_batch_holds_nobody_up_until_it_is_started(batches: SqlBatchStore) -> None:
    await batches.expect([FIRST])
    await batches.skip(FIRST, "nobody started it\x00")
    line = await _note(batches)
    assert (line[1].skipped, line[1].purpose) == (True, None)
    view = await batches.get(FIRST)
    assert view is not None and view.reason is not None and "nobody started it" in view.reason
    line = await _note(batches, started(FIRST))
    assert (line[1].skipped, line[1].purpose) == (False, Purpose.LOAD)


async def test_a_sweep_closes_only_what_is_in_processing(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, LoaderStatus.COMPLETE)
    await batches.claim(SECOND, ())
    for key in (FIRST, SECOND):
        await batches.close(Closing(key=key, status=LoaderStatus.INCOMPLETE, only_processing=True))
    assert await _status(batches, FIRST) is LoaderStatus.COMPLETE
    assert await _status(batches, SECOND) is LoaderStatus.INCOMPLETE


async def test_the_pass_under_way_says_whether_it_is_final(batches: SqlBatchStore) -> None:
    await batches.expect([FIRST])
    assert not await batches.is_final_pass(FIRST)
    await batches.start_pass(FIRST, 1, False)
    assert not await batches.is_final_pass(FIRST)
    await batches.start_pass(FIRST, 2, True)
    assert await batches.is_final_pass(FIRST)


async def test_a_case_has_its_concurrency(batches: SqlBatchStore) -> None:
    await batches.expect([FIRST])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.concurrency is None
    for most in (4, 9):
        await batches.set_concurrency(CASE, most)
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.concurrency == 9


async def test_cases_do_not_see_each_other(batches: SqlBatchStore) -> None:
    other = BatchKey(case_id=8, batch_id=1)
    await batches.note(8, [JobStarted(case_id=8, batch_id=1)])
    assert await batches.claim(other, ())
    await _note(batches, started(FIRST))
    assert await batches.claim(FIRST, ())
    assert [view.key for view in await batches.list(8)] == [other]
    assert {view.key for view in await batches.list()} == {FIRST, other}
    assert await batches.counts(FIRST) == DocumentCounts()
    assert await batches.get(SECOND) is None
