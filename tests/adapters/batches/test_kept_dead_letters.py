"""What the tables say of documents whose messages a complete batch keeps as dead letters."""

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from tests.support.batches.scripted import again, started
from tests.support.batches.tables import FIRST, SqlBatchTables, document, load, source
from workflows.batches.loads import DocumentState
from workflows.batches.names import LoaderStatus
from workflows.batches.runs import Closing, DocumentCounts


async def _ends_with(batches: SqlBatchStore, loads: SqlLoadStore, dead_letters: int) -> None:
    """A batch ends while the load of one of its documents has failed, and another is loaded."""
    await batches.note(FIRST.case_id, [started(FIRST)])
    await batches.claim(FIRST, ())
    await load(loads, document("a"), source("a"))
    await loads.save_source(document("b"), source("b"))
    closing = Closing(key=FIRST, status=LoaderStatus.COMPLETE, dead_letters=dead_letters)
    for _ in range(2):
        await batches.close(closing)
    await batches.truncate(FIRST)


async def test_a_document_whose_message_is_kept_is_not_loading_for_ever(
    batches: SqlBatchStore, loads: SqlLoadStore, tables: SqlBatchTables
) -> None:
    await _ends_with(batches, loads, dead_letters=1)
    state, reason = await tables.state("b")
    assert state is DocumentState.FAILED
    assert reason is not None and "docflow batch show 7/1 dead-letters" in reason
    assert await batches.counts(FIRST) == DocumentCounts(loaded=1, failed=1)
    await batches.note(FIRST.case_id, [again(FIRST)])
    await load(loads, document("b"), source("b"))
    assert await tables.state("b") == (DocumentState.LOADED, None)


async def test_a_document_whose_load_was_terminated_is_left_to_the_sweeper(
    batches: SqlBatchStore, loads: SqlLoadStore, tables: SqlBatchTables
) -> None:
    await _ends_with(batches, loads, dead_letters=0)
    assert await tables.state("b") == (DocumentState.LOADING, None)
