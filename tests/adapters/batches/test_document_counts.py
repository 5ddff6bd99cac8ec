"""Documents of many batches are counted together."""

from sqlalchemy import event

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import AT_ONCE, SqlBatchStore
from tests.support.batches.tables import SqlBatchTables, document, load, source
from workflows.batches.names import BatchKey
from workflows.batches.runs import DocumentCounts


async def test_batches_of_many_cases_are_listed_by_a_few_queries(
    batches: SqlBatchStore, loads: SqlLoadStore, tables: SqlBatchTables
) -> None:
    keys = [BatchKey(case_id=case, batch_id=1) for case in range(1, AT_ONCE + 11)]
    await batches.expect(keys)
    # The first batch of one case and the second of another are not each other's.
    for key, digits in ((keys[0], "ab"), (keys[-1], "c")):
        for digit in digits:
            await load(loads, document(digit, key), source(digit))
    await load(loads, document("d", BatchKey(case_id=keys[0].case_id, batch_id=2)), source("d"))
    statements: list[str] = []
    engine = tables.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    views = {view.key: view.documents for view in await batches.list(limit=2 * AT_ONCE)}
    assert len(views) == len(keys)
    assert views[keys[0]] == DocumentCounts(loaded=2)
    assert views[keys[-1]] == DocumentCounts(loaded=1)
    assert views[keys[1]] == DocumentCounts()
    assert len([one for one in statements if one.startswith("SELECT")]) == 3
