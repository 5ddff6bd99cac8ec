"""How batches end in their tables: what was lost, and cancels that no run carried out."""

import pytest

from adapters.ports import BatchStore, BatchView, LoadStore
from contracts.batches import BatchKey, CancelMode, Closing, DocumentState, LoaderStatus
from tests.support.batches.scripted import again, cancelled, finished, started
from tests.support.batches.tables import CASE, FIRST, document, load, source
from workers.services.batches.outcomes import shown_outcome
from workers.services.batches.remarks import remark

LOST = "queue deleted by someone else, with the documents that had not been loaded"


async def _view(batches: BatchStore, key: BatchKey = FIRST) -> BatchView:
    view = await batches.get(key)
    assert view is not None
    return view


async def test_a_loss_stays_until_the_batch_is_loaded_again(batches: BatchStore) -> None:
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
    assert (view.lost, shown_outcome(view, None)) == (None, "SUCCESS")


async def test_no_documents_at_all_are_a_count(batches: BatchStore) -> None:
    await batches.note(CASE, [started(FIRST), finished(FIRST, documents=0)])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.documents == 0
    await batches.note(CASE, [finished(FIRST, documents=3), finished(FIRST, documents=0)])
    facts = await batches.facts(FIRST)
    assert facts is not None and facts.documents == 3, "the largest counts"


async def test_a_cancel_that_no_run_carried_out_counts_when_the_batch_is_swept(
    batches: BatchStore,
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
    batches: BatchStore, is_cancelled: bool
) -> None:
    await batches.note(CASE, [started(FIRST)])
    await batches.claim(FIRST, ())
    if is_cancelled:
        await batches.note(CASE, [cancelled(key=FIRST)])
    assert await batches.terminate(FIRST.workflow_id, "its run was terminated")
    expected = LoaderStatus.CANCELLED if is_cancelled else LoaderStatus.TERMINATED
    assert (await _view(batches)).status is expected


async def test_a_duplicate_says_that_the_document_with_its_bytes_has_failed(
    batches: BatchStore, loads: LoadStore
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


async def _remark(batches: BatchStore, document_id: str) -> str:
    [shown] = [view for view in await batches.documents(FIRST) if view.document_id == document_id]
    assert shown.state is DocumentState.DUPLICATE
    return remark(shown)
