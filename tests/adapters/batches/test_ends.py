"""How batches end in their tables: what was lost, and cancels that no run carried out."""

from datetime import UTC, datetime

import pytest

from activities.batches.document_store import SqlLoadStore
from activities.batches.records import BatchView
from activities.batches.store import SqlBatchStore
from tests.support.batches.scripted import again, cancelled, finished, started
from tests.support.batches.tables import CASE, FIRST, SECOND, document, load, source
from workers.batches.labels import remark, shown_outcome
from workflows.batches.events import CancelMode
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import Closing

LOST = "queue deleted by someone else, with the documents that had not been loaded"


async def _view(batches: SqlBatchStore, key: BatchKey = FIRST) -> BatchView:
    view = await batches.get(key)
    assert view is not None
    return view


async def test_a_loss_stays_until_the_batch_is_loaded_again(batches: SqlBatchStore) -> None:
    await batches.note(CASE, [started(FIRST)])
    await batches.claim(FIRST, ())
    await batches.close(Closing(key=FIRST, status=LoaderStatus.COMPLETE, dead_letters=1, lost=LOST))
    view = await _view(batches)
    assert (view.lost, shown_outcome(view, None)) == (LOST, "PARTIAL")

    await batches.note(CASE, [again(FIRST)])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.lost == LOST
    await batches.close(Closing(key=FIRST, status=LoaderStatus.FAILED))
    assert (await _view(batches)).lost == LOST, "its queues are not the only ones that it had"

    await batches.note(CASE, [started(FIRST)])
    await batches.close(Closing(key=FIRST, status=LoaderStatus.COMPLETE))
    view = await _view(batches)
    assert (view.lost, shown_outcome(view, None)) == (None, "EMPTY")


async def test_no_documents_at_all_are_a_count(batches: SqlBatchStore) -> None:
    await batches.note(CASE, [started(FIRST), finished(FIRST, documents=0)])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.documents == 0
    await batches.note(CASE, [finished(FIRST, documents=3), finished(FIRST, documents=0)])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.documents == 3, "the largest counts"


async def test_a_cancel_that_no_run_carried_out_counts_when_the_batch_is_swept(
    batches: SqlBatchStore,
) -> None:
    await batches.note(CASE, [started(FIRST)])
    await batches.claim(FIRST, ())
    event = cancelled(CancelMode.PARTIAL, FIRST)
    event = event.model_copy(update={"reason": "the case was closed", "by": "ann"})
    (waiting,) = (await batches.note(CASE, [event])).batches
    said = "cancelled by ann: the case was closed"
    assert waiting.cancelled is CancelMode.PARTIAL
    sweep = Closing(
        key=FIRST,
        status=LoaderStatus.TERMINATED,
        reason="its run was terminated",
        only_processing=True,
    )
    await batches.close(sweep)
    view = await _view(batches)
    assert view.status is LoaderStatus.CANCELLED
    assert view.reason == f"{said}; its run was terminated"
    await batches.note(CASE, [started(FIRST)])
    assert (await _view(batches)).status is LoaderStatus.CANCELLED, "it is not loaded again"


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_the_sweeper_of_rows_knows_of_a_cancel(
    batches: SqlBatchStore, is_cancelled: bool
) -> None:
    await batches.note(CASE, [started(FIRST)])
    await batches.claim(FIRST, ())
    if is_cancelled:
        await batches.note(CASE, [cancelled(key=FIRST)])
    assert await batches.terminate(FIRST.workflow_id, "its run was terminated")
    expected = LoaderStatus.CANCELLED if is_cancelled else LoaderStatus.TERMINATED
    assert (await _view(batches)).status is expected


async def _is_owed(batches: SqlBatchStore, key: BatchKey = FIRST) -> bool:
    owed = await batches.unannounced(datetime.now(UTC))
    assert (await _view(batches, key)).unannounced is (key in owed)
    return key in owed


async def _begun(batches: SqlBatchStore, key: BatchKey = FIRST) -> None:
    await batches.note(CASE, [started(key)])
    await batches.claim(key, ())


async def test_the_end_of_a_batch_is_owed_until_it_is_announced(batches: SqlBatchStore) -> None:
    await _begun(batches)
    assert not await _is_owed(batches)
    before = datetime.now(UTC)
    await batches.close(Closing(key=FIRST, status=LoaderStatus.FAILED))
    assert await batches.unannounced(before) == [], "its run is given time"
    assert await _is_owed(batches)
    await batches.announced(FIRST)
    assert not await _is_owed(batches)


async def test_nothing_is_owed_of_a_batch_that_was_never_built(batches: SqlBatchStore) -> None:
    await _begun(batches)
    await batches.close(Closing(key=FIRST, status=LoaderStatus.FAILED, unbuilt=True))
    assert not await _is_owed(batches)


async def test_a_batch_that_is_started_again_announces_its_next_end(batches: SqlBatchStore) -> None:
    await _begun(batches)
    await batches.close(Closing(key=FIRST, status=LoaderStatus.FAILED))
    await batches.note(CASE, [started(FIRST)])
    assert not await _is_owed(batches), "its next run may be about to begin"
    await batches.note(CASE, [cancelled(key=FIRST)])
    assert await _is_owed(batches), "no run of it comes any more"
    await batches.announced(FIRST)

    await _begun(batches, SECOND)
    await batches.close(Closing(key=SECOND, status=LoaderStatus.FAILED))
    await _begun(batches, SECOND)
    assert not await _is_owed(batches, SECOND)
    sweep = Closing(key=SECOND, status=LoaderStatus.TERMINATED, only_processing=True)
    await batches.close(sweep)
    assert not await _is_owed(batches, SECOND), "it is loaded again, and announced then"


@pytest.mark.parametrize("found_by", ["sweeper", "sweeper of rows", "next batch"])
async def test_the_end_of_a_cancelled_batch_is_owed_whoever_finds_it(
    batches: SqlBatchStore, found_by: str
) -> None:
    await _begun(batches)
    await batches.note(CASE, [cancelled(key=FIRST)])
    if found_by == "sweeper":
        await batches.close(
            Closing(key=FIRST, status=LoaderStatus.TERMINATED, only_processing=True)
        )
    elif found_by == "sweeper of rows":
        await batches.terminate(FIRST.workflow_id, "its run was terminated")
    else:
        await batches.note(CASE, [started(SECOND)])
        assert await batches.claim(SECOND, [FIRST.batch_id])
    view = await _view(batches)
    assert view.status is LoaderStatus.CANCELLED
    assert view.reason is not None and view.reason.startswith("cancelled")
    assert await _is_owed(batches)


async def test_a_duplicate_says_that_the_document_with_its_bytes_has_failed(
    batches: SqlBatchStore, loads: SqlLoadStore
) -> None:
    original, copy = document("D-1"), document("D-2")
    await loads.save_source(original, source("a"))
    await loads.save_source(copy, source("a"))
    assert await _remark(batches, copy.document_id) == "the same bytes as D-1"
    await loads.fail(original, "extract: cut off")
    said = "the same bytes as D-1, which is failed: neither is read until that one is loaded"
    assert await _remark(batches, copy.document_id) == said
    await load(loads, original, source("a"))
    assert await _remark(batches, copy.document_id) == "the same bytes as D-1"


async def _remark(batches: SqlBatchStore, document_id: str) -> str:
    [shown] = [view for view in await batches.documents(FIRST) if view.document_id == document_id]
    assert shown.state is DocumentState.DUPLICATE
    return remark(shown)
