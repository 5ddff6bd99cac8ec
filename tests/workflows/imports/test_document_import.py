"""The story of one import, with every activity scripted."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError

from tests.support.imports.runs import Imports
from tests.support.imports.scripted import (
    OUTCOME,
    ScriptedImport,
    done,
    import_message,
    permanent,
)
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import DocumentType
from workflows.imports.runs import Counts, HandlerOutcome, ImportState, Retry
from workflows.imports.types import REGISTRY
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.errors import IMPORT_FAILED, TABLE_CHANGED, TRANSIENT

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _attributes(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    described = await handle.describe()
    found = described.typed_search_attributes
    values = {key.name: found.get(key) for key in attributes.ALL}
    return {name: value for name, value in values.items() if value is not None}


@pytest.mark.parametrize("path", ["local", "remote"])
async def test_a_document_goes_straight_through(imports: Imports, path: str) -> None:
    script, message = ScriptedImport(path=path), import_message()
    async with imports.running(script, message) as handle:
        result = await handle.result()
    assert result.state is ImportState.COMPLETED
    assert result.counts == OUTCOME.counts
    assert result.problems == OUTCOME.problems
    assert result.report == OUTCOME.report
    assert result.path == path
    assert script.handlers == ["imports.load_rows"]
    assert script.closed[0].state is ImportState.COMPLETED
    assert script.closed[0].outcome == OUTCOME
    assert await _attributes(handle) == {
        "Pipeline": "imports",
        "DocumentType": "equipment",
        "ProjectId": "p1",
        "State": "completed",
        "NeedsAttention": False,
    }


async def test_a_small_document_costs_few_events(imports: Imports) -> None:
    async with imports.running(ScriptedImport(), import_message()) as handle:
        await handle.result()
    history = await handle.fetch_history()
    assert len(history.events) <= 17


async def test_a_document_that_the_first_step_imports_has_no_other(imports: Imports) -> None:
    script, message = ScriptedImport(preparations=[done()]), import_message()
    async with imports.running(script, message) as handle:
        result = await handle.result()
        history = await handle.fetch_history()
    assert script.calls == ["prepare"]
    assert (result.state, result.path) == (ImportState.COMPLETED, "local")
    assert (result.counts, result.note, result.reason) == (
        Counts(created=3),
        None,
        "Columns not used: 'Colour'.",
    )
    assert (await _attributes(handle))["State"] == "completed"
    assert len(history.events) <= 9


async def test_a_cancel_that_comes_while_the_first_step_imports_is_too_late(
    imports: Imports,
) -> None:
    """Its row says completed, and so does the run."""

    class Recording(ScriptedImport):
        async def wait(self, name: str) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await super().wait(name)

    script = Recording(preparations=[done()])
    script.held.add("prepare")
    async with imports.running(script, import_message()) as handle:
        await script.working.wait()
        await handle.execute_update(DocumentImport.cancel, Answer())
        result = await handle.result()
    assert (result.state, script.calls) == (ImportState.COMPLETED, ["prepare"])


async def test_steps_that_take_long_continue_as_remote_ones(imports: Imports) -> None:
    script = ScriptedImport(outcomes=[HandlerOutcome(unfinished=True)], unprepared=1)
    async with imports.running(script, import_message()) as handle:
        result = await handle.result()
        history = await handle.fetch_history()
    assert (result.state, result.counts) == (ImportState.COMPLETED, OUTCOME.counts)
    assert script.calls == ["prepare", "prepare", "load_rows", "load_rows", "finish"]
    assert script.handled[0] == script.handled[1]
    assert [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ] == ["imports.prepare", "imports.load_rows"]


async def test_an_earlier_import_is_skipped(imports: Imports) -> None:
    script = ScriptedImport(skip="completed already by task t-0")
    async with imports.running(script, import_message()) as handle:
        result = await handle.result()
    assert (result.state, result.reason) == (ImportState.SKIPPED, "completed already by task t-0")
    assert script.handlers == []
    assert script.closed[0].state is ImportState.SKIPPED


@pytest.mark.parametrize("document_type", list(DocumentType))
async def test_every_type_reaches_its_handler(
    imports: Imports, document_type: DocumentType
) -> None:
    extra = {
        "service_id": "s1",
        "extraction_id": "e1",
        "primavera_project_id": "PX",
        "temp_blob_name": "temp/a.xer",
        "target_blob_name": "schedules/a.xer",
        "payload": {"level": 1, "value": "North", "column": "area"},
    }
    script = ScriptedImport()
    async with imports.running(
        script, import_message(document_type=document_type, **extra)
    ) as handle:
        await handle.result()
    assert script.handlers == [REGISTRY[document_type].handler.value]


async def test_transient_failures_are_retried(imports: Imports) -> None:
    busy = ApplicationError(
        "database is busy", type=TRANSIENT, next_retry_delay=timedelta(milliseconds=5)
    )
    script = ScriptedImport(failures=[busy, busy])
    async with imports.running(script, import_message()) as handle:
        assert (await handle.result()).state is ImportState.COMPLETED
    assert len(script.handled) == 3


async def test_a_parked_run_says_why_and_what_to_do(imports: Imports) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message(unknown_fields=["colour"])) as handle:
        await imports.parked(handle)
        status = await handle.query(DocumentImport.status)
        assert status.state is ImportState.PARKED
        assert status.step == "imports.load_rows"
        assert status.reason == "sheet 'Costs' is not in the workbook"
        assert status.waiting_since is not None
        assert script.closed[0].state is ImportState.PARKED
        assert script.closed[0].reason == status.reason
        found = await _attributes(handle)
        assert (found["State"], found["NeedsAttention"]) == ("parked", True)
        metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        assert "sheet 'Costs' is not in the workbook" in metadata.current_details
        skip = f"temporal workflow signal --workflow-id {handle.id} --name skip"
        assert skip in metadata.current_details
        await handle.execute_update(DocumentImport.skip, Answer(reason="old file", by="ann"))
        result = await handle.result()
    assert (result.state, result.reason) == (ImportState.SKIPPED, "old file (ann)")
    assert result.note == "Fields of the message that are not used: colour."
    assert (await _attributes(handle))["NeedsAttention"] is False


async def test_a_table_that_has_changed_names_the_cure_of_a_message(imports: Imports) -> None:
    changed = ApplicationError("no column price", type=TABLE_CHANGED, non_retryable=True)
    async with imports.running(ScriptedImport(failures=[changed]), import_message()) as handle:
        await imports.parked(handle)
        reason = (await handle.query(DocumentImport.status)).reason or ""
        assert reason.startswith("no column price; or") and "--set type_digest=DIGEST" in reason
        await handle.signal("fail")


@pytest.mark.parametrize("way", ["update", "signal", "bare signal"])
async def test_retry_resumes_from_the_failed_step(imports: Imports, way: str) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        if way == "update":
            await handle.execute_update(DocumentImport.retry, Retry())
        elif way == "signal":
            await handle.signal("retry", Retry(by="ann"))
        else:
            await handle.signal("retry")
        assert (await handle.result()).state is ImportState.COMPLETED
    assert script.prepared == [script.prepared[0]] * 2
    assert len(script.handled) == 2


async def test_a_document_that_is_held_back_parks_with_its_report(imports: Imports) -> None:
    held = OUTCOME.model_copy(update={"held_back": "nothing was written: 1 row was rejected"})
    script = ScriptedImport(outcomes=[held])
    async with imports.running(script, import_message(all_or_nothing=True)) as handle:
        await imports.parked(handle)
        assert (await handle.query(DocumentImport.status)).reason == held.held_back
        assert script.closed[0].outcome == held
        await handle.execute_update(DocumentImport.retry, Retry())
        result = await handle.result()
    assert (result.state, result.counts) == (ImportState.COMPLETED, OUTCOME.counts)


async def test_a_document_that_is_held_back_and_given_up_keeps_its_report(
    imports: Imports,
) -> None:
    held = OUTCOME.model_copy(update={"held_back": "nothing was written: 1 row was rejected"})
    script = ScriptedImport(outcomes=[held])
    async with imports.running(script, import_message(all_or_nothing=True)) as handle:
        await imports.parked(handle)
        await handle.signal("skip")
        result = await handle.result()
    assert (result.state, result.report) == (ImportState.SKIPPED, held.report)


@pytest.mark.cached
async def test_retry_with_a_corrected_message_starts_over(imports: Imports) -> None:
    message = import_message()
    corrected = message.model_copy(update={"blob_name": "uploads/right.csv"})
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, message) as handle:
        await imports.parked(handle)
        await handle.execute_update(DocumentImport.retry, Retry(message=corrected))
        await handle.result()
    assert script.prepared == [message, corrected]
    assert script.handled[-1].message == corrected
    assert script.closed[-1].message == corrected


@pytest.mark.parametrize("name", ["project_id", "task_id"])
async def test_a_corrected_message_cannot_become_other_work(imports: Imports, name: str) -> None:
    message = import_message()
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, message) as handle:
        await imports.parked(handle)
        other = Retry(message=message.model_copy(update={name: "other"}))
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(DocumentImport.retry, other)
        assert name in str(refused.value.cause)
        await handle.signal("retry", other)
        assert (await handle.query(DocumentImport.status)).state is ImportState.PARKED
        await handle.signal("fail")
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert len(script.handled) == 1


@pytest.mark.parametrize("name", ["retry", "skip", "fail"])
async def test_answers_to_a_run_that_is_not_parked_are_refused(imports: Imports, name: str) -> None:
    script = ScriptedImport(block=True, path="remote")
    async with imports.running(script, import_message()) as handle:
        await script.working.wait()
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(name, Retry() if name == "retry" else Answer())
        assert "not parked" in str(refused.value.cause)
        await handle.signal(name)
        assert (await handle.query(DocumentImport.status)).state is ImportState.RUNNING
        await handle.execute_update(DocumentImport.cancel, Answer())
        await handle.result()


@pytest.mark.parametrize("way", ["update", "signal"])
async def test_fail_shows_as_failed(imports: Imports, way: str) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        answer = Answer(reason="wrong project")
        if way == "update":
            await handle.execute_update(DocumentImport.fail, answer)
        else:
            await handle.signal("fail", answer)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message) == (IMPORT_FAILED, "wrong project")
    assert script.closed[-1].state is ImportState.FAILED


async def test_an_import_without_an_answer_for_fourteen_days_fails(
    server: Any, imports: Imports
) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        await server.skip(handle, timedelta(days=13, hours=23))
        assert (await handle.query(DocumentImport.status)).state is ImportState.PARKED
        await server.skip(handle, timedelta(hours=2))
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert "without an answer" in str(failed.value.cause)
    assert script.closed[-1].state is ImportState.FAILED


@pytest.mark.parametrize("path", ["local", "remote"])
@pytest.mark.parametrize("way", ["update", "signal"])
async def test_cancel_keeps_what_is_committed(imports: Imports, way: str, path: str) -> None:
    script = ScriptedImport(block=True, path=path)
    async with imports.running(script, import_message()) as handle:
        await script.working.wait()
        if way == "update":
            await handle.execute_update(DocumentImport.cancel, Answer(reason="enough"))
        else:
            await handle.signal("cancel", Answer(reason="enough"))
        result = await handle.result()
    assert (result.state, result.reason) == (ImportState.CANCELLED, "enough")
    assert result.counts == Counts(created=2)
    assert script.closed[-1].outcome is None


async def test_a_parked_run_can_be_cancelled(imports: Imports) -> None:
    script = ScriptedImport(failures=[permanent()])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        await handle.execute_update(DocumentImport.cancel, Answer())
        assert (await handle.result()).state is ImportState.CANCELLED
        status = await handle.query(DocumentImport.status)
    assert (status.reason, status.next_steps, status.waiting_since) == (None, None, None)


async def test_temporals_own_cancel_is_recorded_too(imports: Imports) -> None:
    script = ScriptedImport(block=True, path="remote")
    async with imports.running(script, import_message()) as handle:
        await script.working.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert script.closed[-1].state is ImportState.CANCELLED


async def test_a_cancel_that_comes_while_the_result_is_recorded_is_too_late(
    imports: Imports,
) -> None:
    script = ScriptedImport(block_finish=True)
    async with imports.running(script, import_message()) as handle:
        await script.working.wait()
        await handle.cancel()
        async with asyncio.timeout(20):
            result = await handle.result()
    assert result.state is ImportState.COMPLETED
    assert [closing.state for closing in script.closed] == [ImportState.COMPLETED]


async def test_a_result_that_cannot_be_recorded_parks_and_is_recorded_later(
    imports: Imports,
) -> None:
    script = ScriptedImport(finish_failures=[permanent("the database is gone")])
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        assert (await handle.query(DocumentImport.status)).reason == "the database is gone"
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(DocumentImport.cancel, Answer())
        assert "too late" in str(refused.value.cause)
        await handle.signal("retry")
        result = await handle.result()
    assert (result.state, result.counts) == (ImportState.COMPLETED, OUTCOME.counts)
    assert len(script.handled) == 1


async def test_a_parked_run_waits_even_when_its_status_row_cannot_be_written(
    imports: Imports,
) -> None:
    script = ScriptedImport(
        failures=[permanent()], finish_failures=[permanent("the database is gone")]
    )
    async with imports.running(script, import_message()) as handle:
        await imports.parked(handle)
        await handle.signal("retry")
        assert (await handle.result()).state is ImportState.COMPLETED
