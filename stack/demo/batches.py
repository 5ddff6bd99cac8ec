"""The demo's batch: forty documents, from JOB_STARTED to nothing left in the cloud."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.batches.provisioning import BatchOrphans
from adapters.aws.session import AwsClients
from adapters.database.engine import Database
from adapters.database.models.batches import documents
from adapters.ports.blobs import Blobs
from stack.loader_function import Installation
from stack.sample_documents import SampleDocument, sample_documents
from workers.batches.resources import batch_resources
from workers.batches.settings import BatchSettings
from workflows.batches.events import Announcement, BatchEndFinished, JobFinished, JobStarted
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus, Phase, Timings
from workflows.batches.runs import BatchResult, BatchStatus, DocumentCounts
from workflows.shared.contracts import Contract

KEY: Final = BatchKey(case_id=7, batch_id=1)
QUICK: Final = Timings(settle=1, poll=1, hold=2, max_redrives=1)
"""The counters of the emulator do not lag."""
LOOK_SECONDS: Final = 0.1
OUTSIDE: Final = "demo_outside_world"


class ExpectedBatch(Contract):
    """How the batch has to end."""

    loaded: int
    duplicate: int
    failed: int
    found: int
    """Of all these, files inside others."""


@dataclass
class ExternalSystems:
    """What sends documents of a batch, and does what follows their loading.

    Args:
        clients: Of the cloud.
        installed: What stands there.
        blobs: Where documents are put.
    """

    clients: AwsClients
    installed: Installation
    blobs: Blobs

    async def send_event(self, event: JobStarted | JobFinished | BatchEndFinished) -> None:
        """Put an event on the case-events queue."""
        await self.clients.sqs.send_message(
            QueueUrl=self.installed.case_events_queue_url,
            MessageBody=event.model_dump_json(by_alias=True, exclude_none=True),
        )

    async def send(self, document: SampleDocument, key: BatchKey) -> None:
        """Put a document's file into the blob store, then publish that it is there."""
        name = f"batches/incoming/{key.case_id}/{document.path.name}"
        await self.blobs.upload(document.path, name)
        event = document.event(key, name)
        await self.clients.sns.publish(
            TopicArn=self.installed.topic_arn,
            Message=event.model_dump_json(by_alias=True),
            MessageAttributes={
                "eventType": {"DataType": "String", "StringValue": event.event_type},
                "caseId": {"DataType": "Number", "StringValue": str(event.case_id)},
                "batchId": {"DataType": "Number", "StringValue": str(event.batch_id)},
            },
        )

    @asynccontextmanager
    async def answering(self) -> AsyncGenerator[None]:
        """End every batch that asks for it, as long as the block runs."""
        answering = asyncio.create_task(self._answer(await self._listen()))
        try:
            yield
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def _listen(self) -> str:
        """Subscribe a queue of its own to what docflow announces; its URL."""
        queue = await self.clients.sqs.create_queue(QueueName=OUTSIDE)
        got = await self.clients.sqs.get_queue_attributes(
            QueueUrl=queue["QueueUrl"], AttributeNames=["QueueArn"]
        )
        await self.clients.sns.subscribe(
            TopicArn=self.installed.topic_arn,
            Protocol="sqs",
            Endpoint=got["Attributes"]["QueueArn"],
            Attributes={
                "RawMessageDelivery": "true",
                "FilterPolicy": json.dumps({"eventType": [kind.value for kind in Announcement]}),
            },
        )
        return queue["QueueUrl"]

    async def _answer(self, queue: str) -> None:
        while True:
            got = await self.clients.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=2)
            for message in got.get("Messages", []):
                content: dict[str, Any] = json.loads(message.get("Body", ""))
                if content["eventType"] == Announcement.BATCH_END_START:
                    await self.send_event(
                        BatchEndFinished(case_id=content["caseId"], batch_id=content["batchId"])
                    )
                await self.clients.sqs.delete_message(
                    QueueUrl=queue, ReceiptHandle=message.get("ReceiptHandle", "")
                )


async def run_batch(
    outside: ExternalSystems,
    client: Client,
    folder: Path,
    show: Callable[[str, DocumentCounts | None], None],
) -> BatchResult:
    """Send the sample documents as one batch and follow it to its end.

    Args:
        outside: Sends them.
        client: Of the stack's Temporal.
        folder: Takes the documents while they are sent.
        show: Called with each phase, and at the end with the outcome of the documents.
    """
    async with outside.answering():
        await outside.send_event(
            JobStarted(case_id=KEY.case_id, batch_id=KEY.batch_id, timings=QUICK)
        )
        await _reach(client, Phase.LOADING, show)
        for document in await asyncio.to_thread(sample_documents, folder):
            await outside.send(document, KEY)
        await outside.send_event(JobFinished(case_id=KEY.case_id, batch_id=KEY.batch_id))
        await _reach(client, Phase.DONE, show)
    handle = client.get_workflow_handle(KEY.workflow_id, result_type=BatchResult)
    result = await handle.result()
    show(result.status.value, result.documents)
    return result


async def _reach(
    client: Client, phase: Phase, show: Callable[[str, DocumentCounts | None], None]
) -> None:
    handle = client.get_workflow_handle(KEY.workflow_id)
    while True:
        try:
            status = await handle.query("status", result_type=BatchStatus)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
        else:
            show(status.phase.value, None)
            if status.phase in (phase, Phase.DONE):
                return
        await asyncio.sleep(LOOK_SECONDS)


async def left_behind(
    settings: BatchSettings, clients: AwsClients, database: Database, client: Client
) -> list[str]:
    """Whatever exists of any batch in the cloud."""
    unused: Any = None
    cloud = batch_resources(settings, clients, database, client, unused)
    sweeping = BatchOrphans(
        cloud.queues, cloud.topic, cloud.functions, cloud.grants, cloud.runs, cloud.plan
    )
    return [f"{found.resource} {found.name}" async for found in sweeping.everything()]


async def failed_documents(database: Database, key: BatchKey) -> Sequence[tuple[str, str]]:
    """Documents that could not be loaded, and why."""
    query = (
        select(documents.c.filename, documents.c.reason)
        .where(documents.c.case_id == key.case_id, documents.c.batch_id == key.batch_id)
        .where(documents.c.state == DocumentState.FAILED)
        .order_by(documents.c.document_id)
    )
    async with database.reading() as connection:
        return [(row.filename, row.reason) for row in await connection.execute(query)]


def judge(result: BatchResult, expected: ExpectedBatch, left: list[str]) -> str | None:
    """What is wrong with how the batch ended; None: nothing."""
    if result.status is not LoaderStatus.COMPLETE:
        return f"ended {result.status}: {result.reason}"
    counts = result.documents.model_dump(exclude_defaults=True)
    if counts != expected.model_dump():
        return f"documents {counts}, expected {expected.model_dump()}"
    if left:
        return f"left behind: {', '.join(left)}"
    return None
