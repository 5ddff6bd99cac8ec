"""Cases and batches in their tables, on SQLite and on PostgreSQL."""

import asyncio

import pytest

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database
from adapters.database.runs import SqlRuns
from tests.support.batches.scripted import again, cancelled, ended, finished, started
from tests.support.batches.tables import CASE, FIRST, SECOND, THIRD, document, load, source
from workflows.batches.events import Announcement, CancelMode, CaseEvent, JobStarted
from workflows.batches.loads import DOCUMENT_EVENT, DocumentState
from workflows.batches.names import LARGEST_ID, BatchKey, LoaderStatus, Purpose, Timings
from workflows.batches.runs import OPEN_BATCHES, Closing, DocumentCounts, WaitingBatch
from workflows.shared.runs import RunState, Visible

ENDED = (LoaderStatus.FAILED, LoaderStatus.SKIPPED, LoaderStatus.INCOMPLETE)


async def _note(batches: SqlBatchStore, *events: CaseEvent) -> dict[int, WaitingBatch]:
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


async def test_batches_that_changed_at_once_are_listed_page_by_page(batches: SqlBatchStore) -> None:
    keys = [
        BatchKey(case_id=case, batch_id=id) for case in (CASE, LARGEST_ID) for id in range(1, 61)
    ]
    await batches.expect(keys)
    found = list(await batches.list(limit=50))
    assert len({view.updated_at for view in found}) == 1
    while page := await batches.list(limit=50, before=found[-1].updated_at, behind=found[-1].key):
        found += page
    assert [view.key for view in found] == keys[::-1]
    # A cursor of a release before names the moment alone.
    assert not await batches.list(before=found[-1].updated_at)


async def test_a_stray_event_makes_no_batch_and_is_found_again_once_there_is_one(
    batches: SqlBatchStore,
) -> None:
    line = await _note(batches, finished(FIRST), ended(SECOND), cancelled(key=THIRD))
    assert line == {}
    views = {view.key: view for view in await batches.list(CASE)}
    assert not any(view.known for view in views.values())
    assert "no JOB_STARTED, and it is not expected" in (views[FIRST].reason or "")
    assert (await _note(batches, started(FIRST)))[1].purpose is Purpose.LOAD
    facts, view = await batches.facts(FIRST), await batches.get(FIRST)
    assert facts is not None and facts.job_finished
    assert view is not None and (view.known, view.reason) == (True, None)
    before = views[SECOND].updated_at
    await batches.expect([SECOND])
    line = await _note(batches, started(THIRD))
    assert list(line) == [1, 2]
    assert line[2].since > before
    view = await batches.get(THIRD)
    assert view is not None and (view.known, view.status) == (True, LoaderStatus.CANCELLED)


async def test_a_batch_keeps_the_times_it_was_started_with(batches: SqlBatchStore) -> None:
    times = Timings(poll=17, max_redrives=5)
    line = await _note(batches, started(FIRST, timings=times), started(SECOND))
    assert (line[1].timings, line[2].timings) == (times, None)


async def test_early_events_are_found_again(batches: SqlBatchStore) -> None:
    assert await batches.facts(FIRST) is None
    await _note(batches, ended(FIRST), finished(FIRST, documents=5), started(FIRST))
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.job_finished and facts.end_finished
    assert facts.documents == 5
    # In whatever order two counts come, none is held to be there that is missing.
    await _note(batches, finished(FIRST, documents=7), finished(FIRST, documents=6))
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.documents == 7


async def test_fields_of_events_are_passed_on_those_of_the_later_event_first(
    batches: SqlBatchStore,
) -> None:
    start, end_start, end = Announcement
    assert await batches.passed_on(FIRST, end) == {}
    of_end, of_finish, of_start = (
        ended(FIRST, passed_on='{"report": 5}'),
        finished(FIRST, passed_on='{"user": "bob", "sent": [1]}'),
        started(FIRST, passed_on='{"user": "ann", "office": "Köln"}'),
    )
    # In whatever order they arrive.
    await _note(batches, of_end, of_finish, of_start, finished(FIRST))
    said = {"user": "bob", "office": "Köln", "sent": [1], "report": 5}
    assert await batches.passed_on(FIRST, end) == said
    # The end came early.
    assert await batches.passed_on(FIRST, start) == {"user": "ann", "office": "Köln"}
    assert (await batches.passed_on(FIRST, end_start)).keys() == said.keys() - {"report"}
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, LoaderStatus.FAILED)
    await _note(batches, finished(FIRST, passed_on='{"late": 1}'))
    assert await batches.passed_on(FIRST, end) == said
    await _note(batches, started(FIRST, passed_on='{"user": "eve"}'))
    assert await batches.passed_on(FIRST, end) == {"user": "eve"}


async def test_a_claim_begins_what_was_asked_for(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST))
    assert await batches.claim(FIRST, ())
    assert await batches.claim(FIRST, ())
    line = await _note(batches)
    assert (line[1].status, line[1].purpose) == (LoaderStatus.PROCESSING, None)


async def test_only_one_batch_of_a_case_is_claimed(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    for _ in range(3):
        claims = await asyncio.gather(batches.claim(FIRST, ()), batches.claim(SECOND, ()))
        assert sorted(claims) == [False, True]
        for key in (FIRST, SECOND):
            await _close(batches, key, LoaderStatus.FAILED)
        await _note(batches, started(FIRST), started(SECOND))


async def test_a_batch_that_was_cancelled_meanwhile_is_not_claimed(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), cancelled(key=FIRST))
    assert not await batches.claim(FIRST, ())
    assert await _status(batches, FIRST) is LoaderStatus.CANCELLED


async def test_a_claim_releases_orphans_only(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    assert await batches.claim(FIRST, ())
    assert not await batches.claim(SECOND, (3,))
    assert await _status(batches, FIRST) is LoaderStatus.PROCESSING
    assert await batches.claim(SECOND, (1,))
    assert await _status(batches, FIRST) is LoaderStatus.INCOMPLETE
    assert await batches.claim(SECOND, (1,))
    facts = await batches.facts(FIRST)
    assert facts is not None and [id for id, _ in facts.processing] == [2]
    own = await batches.facts(SECOND)
    assert own is not None and own.processing == []
    assert await batches.facts(THIRD) is None


@pytest.mark.parametrize("status", ENDED)
async def test_a_batch_that_ended_badly_can_be_started_again_and_begins_clean(
    database: Database, batches: SqlBatchStore, status: LoaderStatus
) -> None:
    await _note(batches, started(FIRST), finished(FIRST, documents=5), ended(FIRST))
    await batches.claim(FIRST, ())
    await batches.start_pass(FIRST, 2, True)
    await batches.call(FIRST, "redrive: no rights")
    await _close(batches, FIRST, status)
    assert await _note(batches, finished(FIRST), ended(FIRST)) == {}
    line = await _note(batches, started(FIRST))
    facts = await batches.facts(FIRST)
    assert (line[1].status, line[1].purpose) == (LoaderStatus.WAITING, Purpose.LOAD)
    assert facts is not None
    assert (facts.job_finished, facts.end_finished, facts.reason) == (False, False, None)
    assert facts.documents is None
    assert not await batches.is_final_pass(FIRST)
    run = await SqlRuns(database).get(FIRST.workflow_id, Visible((), others=True))
    assert run is not None and (run.state, run.reason) == (RunState.WAITING, None)


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


async def test_failed_documents_can_be_asked_for_again_without_dead_letters(
    batches: SqlBatchStore,
) -> None:
    await _note(batches, started(FIRST))
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, LoaderStatus.COMPLETE)
    line = await _note(batches, again(FIRST, with_failed=True))
    assert line[1].purpose is Purpose.RETRY_FAILED


async def test_documents_and_messages_that_failed_are_listed_page_by_page(
    batches: SqlBatchStore, loads: SqlLoadStore
) -> None:
    await load(loads, document("a"), source("a"))
    assert await load(loads, document("c"), source("a")) == "a"
    await load(loads, document("b", SECOND), source("b"))
    events = [document(id) for id in "def"]
    for event in events:
        await loads.fail(event, f"{event.document_id} is cut off")
    found = await batches.documents(FIRST, limit=3)
    assert [(one.document_id, one.state.value) for one in found] == [
        ("a", "loaded"),
        ("c", "duplicate"),
        ("d", "failed"),
    ]
    assert (found[0].filename, found[1].duplicate_of, found[2].filename) == ("a", "a", None)
    assert (found[2].reason, found[2].failed_event) == ("d is cut off", "DOCUMENT_PROCESSED")
    rest = await batches.documents(FIRST, after="d")
    assert [one.document_id for one in rest] == ["e", "f"]
    failed = await batches.documents(FIRST, DocumentState.FAILED, after="d", limit=1)
    assert [one.document_id for one in failed] == ["e"]

    first = await batches.failed_messages(FIRST, limit=2)
    behind = (first[-1].document_id, first[-1].message_key)
    messages = [*first, *await batches.failed_messages(FIRST, behind)]
    assert [DOCUMENT_EVENT.validate_json(one.body) for one in messages] == events
    assert [one.reason for one in messages] == [f"{id} is cut off" for id in "def"]
    assert await batches.failed_messages(SECOND) == []


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


async def test_a_skipped_batch_blocks_no_other_until_it_is_started(batches: SqlBatchStore) -> None:
    await batches.expect([FIRST])
    for _ in range(2):
        await batches.skip(FIRST, "nobody started it")
    line = await _note(batches)
    assert (line[1].skipped, line[1].purpose) == (True, None)
    view = await batches.get(FIRST)
    assert view is not None and view.reason == "nobody started it"
    line = await _note(batches, started(FIRST))
    assert (line[1].skipped, line[1].purpose) == (False, Purpose.LOAD)


async def test_a_skip_changes_nothing_about_a_batch_that_no_longer_waits(
    batches: SqlBatchStore,
) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    await batches.claim(FIRST, ())
    await _note(batches, started(FIRST))
    await _close(batches, SECOND, LoaderStatus.COMPLETE)
    for key in (FIRST, SECOND, THIRD):
        await batches.skip(key, "its infrastructure exists")
    line = await _note(batches)
    assert (line[1].status, line[1].purpose, line[1].skipped) == (
        LoaderStatus.PROCESSING,
        None,
        False,
    )
    views = {view.key: (view.status, view.reason) for view in await batches.list()}
    assert views == {
        FIRST: (LoaderStatus.PROCESSING, None),
        SECOND: (LoaderStatus.COMPLETE, "so"),
    }


async def test_skipped_batches_do_not_fill_the_line(batches: SqlBatchStore) -> None:
    many = [BatchKey(case_id=CASE, batch_id=number) for number in range(1, OPEN_BATCHES + 2)]
    await batches.expect(many)
    line = await batches.note(CASE, [])
    assert [one.batch_id for one in line.batches] == [key.batch_id for key in many[:-1]]
    await batches.skip(FIRST, "nobody started it")
    line = await batches.note(CASE, [])
    assert [one.batch_id for one in line.batches] == [key.batch_id for key in many[1:]]


async def test_a_sweep_closes_only_what_is_in_processing(batches: SqlBatchStore) -> None:
    await _note(batches, started(FIRST), started(SECOND))
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, LoaderStatus.COMPLETE)
    await batches.claim(SECOND, ())
    for key in (FIRST, SECOND):
        await batches.close(Closing(key=key, status=LoaderStatus.INCOMPLETE, only_processing=True))
    assert await _status(batches, FIRST) is LoaderStatus.COMPLETE
    assert await _status(batches, SECOND) is LoaderStatus.INCOMPLETE


async def test_the_current_pass_reports_whether_it_is_final(batches: SqlBatchStore) -> None:
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
    assert await batches.concurrency(CASE) == 9
    assert await batches.concurrency(CASE + 1) is None
    await batches.set_concurrency(CASE, None)
    assert await batches.concurrency(CASE) is None


async def test_a_cancelled_redrive_can_be_asked_for_again_and_begins_clean(
    batches: SqlBatchStore,
) -> None:
    await _note(batches, started(FIRST))
    await batches.claim(FIRST, ())
    await _close(batches, FIRST, LoaderStatus.COMPLETE, 3)
    await _note(batches, again(FIRST), finished(FIRST), ended(FIRST))
    await _note(batches, cancelled(key=FIRST))
    assert await _status(batches, FIRST) is LoaderStatus.CANCELLED
    line = await _note(batches, again(FIRST))
    assert line[1].purpose is Purpose.REDRIVE
    facts = await batches.facts(FIRST)
    assert facts is not None
    assert (facts.job_finished, facts.end_finished, facts.dead_letters) == (False, False, 3)


async def test_a_redrive_keeps_what_is_loaded(batches: SqlBatchStore, loads: SqlLoadStore) -> None:
    await _note(batches, started(FIRST))
    await batches.claim(FIRST, ())
    await load(loads, document("a"), source("a"))
    await loads.fail(document("b"), "it is cut off")
    await _close(batches, FIRST, LoaderStatus.COMPLETE, 1)
    await _note(batches, again(FIRST))
    assert await batches.counts(FIRST) == DocumentCounts(loaded=1, failed=1)


async def test_batches_are_listed_with_their_documents_the_newest_change_first(
    batches: SqlBatchStore, loads: SqlLoadStore
) -> None:
    for key in (FIRST, SECOND, THIRD):
        await batches.expect([key])
    await load(loads, document("a"), source("a"))
    await load(loads, document("b"), source("a"))
    await load(loads, document("c", SECOND), source("c"))
    await _note(batches, started(FIRST))
    views = await batches.list(CASE)
    assert [view.key for view in views] == [FIRST, THIRD, SECOND]
    assert [view.documents for view in views] == [
        DocumentCounts(loaded=1, duplicate=1),
        DocumentCounts(),
        DocumentCounts(loaded=1),
    ]
    assert [view.key for view in await batches.list(limit=2)] == [FIRST, THIRD]
    await batches.close(Closing(key=SECOND, status=LoaderStatus.FAILED))
    await batches.expect([FIRST, BatchKey(case_id=CASE, batch_id=99)])
    failed = await batches.list(limit=1, status=LoaderStatus.FAILED)
    assert [view.key for view in failed] == [SECOND]
    assert await batches.get(FIRST) == views[0]


async def test_cases_do_not_see_each_other(batches: SqlBatchStore) -> None:
    other = BatchKey(case_id=8, batch_id=1)
    await batches.note(8, [JobStarted(case_id=8, batch_id=1)])
    assert await batches.claim(other, ())
    await _note(batches, started(FIRST))
    assert await batches.claim(FIRST, ())
    assert [view.key for view in await batches.list(8)] == [other]
    assert {view.key for view in await batches.list()} == {FIRST, other}
    assert await batches.get(SECOND) is None
