"""A case as pages show it: one batch that is parked, one that waits for it, documents."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import Worker

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database
from adapters.database.models.batches import documents
from tests.support.batches.runs import QUICK
from tests.support.batches.scripted import ScriptedBatch, denied, depth, finished, started
from tests.support.batches.tables import document, load, source
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, Purpose
from workflows.batches.runs import BatchInput, BatchResult
from workflows.shared import attributes
from workflows.shared.contracts import BlobRef
from workflows.shared.run_notifications import NoticeDelivery

REASON = "the file is <b>damaged</b>"


@dataclass(frozen=True)
class ShownBatch:
    """A batch with a run that is parked."""

    key: BatchKey
    script: ScriptedBatch
    handle: WorkflowHandle[Any, BatchResult]

    @property
    def page(self) -> str:
        """Path of its page."""
        return f"/batches/{self.key.case_id}/{self.key.batch_id}"


@asynccontextmanager
async def shown_batch(
    client: Client, database: Database, case_id: int, more: int = 0
) -> AsyncIterator[ShownBatch]:
    """Write the rows of a case and park its first batch.

    Args:
        client: Of Temporal.
        database: Of the gateway.
        case_id: Of this test alone.
        more: Documents that are loading, beyond those in other states.
    """
    key, second = (BatchKey(case_id=case_id, batch_id=number) for number in (1, 2))
    store, loads = SqlBatchStore(database), SqlLoadStore(database)
    await store.note(case_id, [started(key), started(second)])
    assert await store.claim(key, ())
    await load(loads, document("D-1", key), source("a"))
    await load(loads, document("D-2", key), source("a"))
    for number in range(more + 1):
        file = BlobRef(name=f"in/{number}", size=9, sha256=f"b{number:063x}", etag="1")
        await loads.save_source(document(f"E-{number:03}", key), file)
    async with database.transaction() as connection:
        await connection.execute(
            update(documents)
            .where(documents.c.case_id == case_id, documents.c.document_id == "E-000")
            .values(state=DocumentState.FAILED.value, reason=REASON)
        )
    looks = [depth(queue=9, loads=3), depth(queue=4, loads=5, dead=1), depth(dead=2)]
    script = ScriptedBatch(
        depths=[
            look.model_copy(update={"at": look.at + timedelta(minutes=3 * place)})
            for place, look in enumerate(looks)
        ]
    )
    script.fails["redrive"] = [denied()]
    script.results["call"] = lambda asked: store.call(asked.key, asked.reason)
    queue = f"shown-{uuid.uuid4().hex}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[BatchLifecycle, NoticeDelivery],
        activities=script.activities(),
    ):
        handle = await client.start_workflow(
            BatchLifecycle.run,
            BatchInput(key=key, timings=QUICK, notify=False),
            id=key.workflow_id,
            task_queue=queue,
            search_attributes=attributes.at_start("batches", Purpose.LOAD, str(case_id)),
        )
        await handle.signal(BatchLifecycle.take, finished(key))

        async def parked() -> bool:
            return (await handle.query(BatchLifecycle.status)).next_steps is not None

        try:
            await eventually(parked)
            yield ShownBatch(key, script, handle)
        finally:
            # A run that a failed test leaves behind must not hold the worker up.
            if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                await handle.terminate()
