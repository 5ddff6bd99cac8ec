"""What a person changes of the message of a parked import, and the trail of it."""

from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from tests.support.imports.scripted import ScriptedImport, import_message, permanent
from tests.workflows.imports.test_document_import import Imports
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import TableMessage
from workflows.imports.runs import Correction, ImportState, Retry

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHANGES: dict[str, Any] = {
    "blob_name": "uploads/p1/t1/2/right.xlsx",
    "filename": "right.xlsx",
    "sheet": "Rev B",
    "map": {"Qty": "quantity"},
}


@pytest.fixture
def imports(server: Any, run_worker: Any) -> Imports:
    return Imports(server, run_worker)


async def test_changes_are_made_and_the_trail_says_who_made_them(imports: Imports) -> None:
    script = ScriptedImport(failures=[permanent(), permanent("still")])
    message = import_message(map={"Dwg": "drawing"})
    async with imports.running(script, message) as handle:
        await imports.parked(handle)
        await handle.execute_update(DocumentImport.retry, Retry(changes=CHANGES, by="ann"))
        await imports.parked(handle)
        await handle.execute_update(
            DocumentImport.retry, Retry(changes={"sheet": "Rev C"}, by="bea")
        )
        result = await handle.result()
    assert result.state is ImportState.COMPLETED
    first, second = script.closed[-1].corrections
    assert [closing.corrections for closing in script.closed[:2]] == [(), (first,)]
    assert (first.by, second.by) == ("ann", "bea")
    assert first.changes == (
        'filename: right.xlsx; sheet: Rev B; map: {"Dwg": "drawing", "Qty": "quantity"}; '
        "blob_name: uploads/p1/t1/2/right.xlsx"
    )
    assert second.changes == "sheet: Rev C"
    assert isinstance(first, Correction)
    tried = script.handled[-1].message
    assert isinstance(tried, TableMessage)
    assert (tried.sheet, tried.filename) == ("Rev C", "right.xlsx")
    assert tried.task_id == message.task_id


async def test_a_retry_without_changes_leaves_no_trail(imports: Imports) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        await handle.execute_update(DocumentImport.retry, Retry(by="ann"))
        await handle.result()
    assert script.closed[-1].corrections == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task_id": "other"}, "keeps its task_id"),
        ({"document_type": "crew"}, "keeps its document_type"),
        ({"schedule_id": "U100"}, "has no field schedule_id"),
        ({"sheet": ""}, "sheet"),
        ({"blob_name": "../secrets"}, "blob_name"),
        ({"strategy": "overwrite"}, "strategy"),
    ],
)
async def test_changes_that_no_message_can_have_are_refused(
    imports: Imports, changes: dict[str, Any], says: str
) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(DocumentImport.retry, Retry(changes=changes))
        assert says in str(refused.value.cause)
        await handle.signal("retry", Retry(changes=changes))
        assert (await handle.query(DocumentImport.status)).state is ImportState.PARKED
        await handle.signal("skip")
        await handle.result()
    assert len(script.handled) == 1
