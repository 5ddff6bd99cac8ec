"""A message that was rejected where there is no database is recorded by a run."""

import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from activities.shared.dependencies import Dependencies
from activities.shared.records import Rejections
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.scripted import scripted, unavailable
from workers.shared.services.intake import RecordingRuns
from workflows.shared.dependencies import Recovery
from workflows.shared.record_workflows import RejectionRecord
from workflows.shared.records import Rejection

pytestmark = pytest.mark.asyncio(loop_scope="session")

BODY = b'{"eventType": "\xff\x00"}'


async def test_a_rejected_message_is_recorded_once_with_its_bytes(
    server: Any, run_worker: Any
) -> None:
    queue, rejected = f"rejections-{uuid.uuid4().hex}", MemoryRejectedMessages()
    runs = RecordingRuns(server.client, queue)
    messages = [("m-1", BODY), ("m-1", BODY), ("m-1", b"{"), (None, b"["), (None, b"[")]
    async with run_worker(queue, [RejectionRecord], [Rejections(rejected).record]):
        for message_id, body in messages:
            await runs.record(queue, message_id, "MalformedBody", "no JSON", body)
            id = Rejection(
                queue=queue, message_id=message_id, reason="", description="", body=body
            ).workflow_id
            await server.client.get_workflow_handle(id).result()
    kept = [(each.queue, each.reason, each.description) for each in await rejected.list()]
    assert kept == [(queue, "MalformedBody", "no JSON")] * 3
    bodies = [each.body for each in await rejected.list()]
    assert bodies == ["[", "{", BODY.decode("utf-8", "replace")]


async def test_its_record_waits_for_the_database(server: Any, run_worker: Any) -> None:
    queue = f"rejections-{uuid.uuid4().hex}"
    script = scripted(
        Rejections,
        Dependencies,
        fails={"record": [unavailable()]},
        results={"wait": Recovery(was_down=True)},
    )
    rejection = Rejection(queue=queue, reason="MalformedBody", description="no JSON", body=BODY)
    async with run_worker(queue, [RejectionRecord], script.activities()):
        await RecordingRuns(server.client, queue).record(
            queue, None, "MalformedBody", "no JSON", BODY
        )
        handle = server.client.get_workflow_handle(rejection.workflow_id)
        await handle.result()
    assert script.calls == ["record", "wait", "record"]
    assert script.received["record"] == [rejection] * 2
    assert (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED
