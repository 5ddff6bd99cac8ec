"""A transfer as its page shows it: a job that is parked at its last action, with hostile names."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.transfers.records import Transfer
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database
from adapters.ports.blobs import Blobs
from tests.support.transfers.events import (
    ARRIVED,
    READ,
    SCAN,
    a_job,
    a_job_order,
    a_transfer,
    an_event,
)
from tests.support.transfers.places import pieces
from tests.support.transfers.scripted import ScriptedTransfer
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.shared.errors import PERMANENT
from workflows.shared.run_notifications import NoticeDelivery
from workflows.transfers.events import TransferStatus
from workflows.transfers.file_job import FileJob
from workflows.transfers.receipts import (
    ReceiptFile,
    ReceiptStep,
    assemble_receipt,
    canonical,
    seal_step,
)
from workflows.transfers.runs import FileJobInput, TransferView, file_job_id, receipt_blob

NAME = "<b>Größe</b> #1 & 100%.csv"
REASON = "store refuses '2026/<script>alert(1)</script>': it answered 403"
CALL = {"Action": "CallHttp", "Partner": "portal", "Path": "/hook?sig=planted-signature"}


def refused(reason: str = REASON) -> ApplicationError:
    """The failure of an action that nothing but a person helps."""
    return ApplicationError(reason, type=PERMANENT, non_retryable=True)


@dataclass(frozen=True)
class ShownTransfer:
    """A transfer with a run."""

    order: FileJobInput
    script: ScriptedTransfer
    handle: WorkflowHandle[Any, TransferView]

    @property
    def page(self) -> str:
        """Path of its page."""
        return f"/transfers/{self.order.transfer_id}"


async def written_receipt(store: SqlTransferStore, blobs: Blobs) -> Transfer:
    """Write the row of a transfer that failed, and its receipt, which names more files than a page
    shows."""
    id = uuid.uuid4().hex * 2
    file = ReceiptFile(
        name="<u>a</u>.csv",
        place="sftp:acme/in/<u>a</u>.csv",
        size=1234,
        sha256_before="b" * 64,
        sha256_after="a" * 64,
        verdict="signed by <i>acme</i>",
        guarantee="hash",
    )
    step = ReceiptStep(
        transfer_id=id,
        index=0,
        action="ReadFile",
        at=ARRIVED,
        files=(file,) * 25,
        previous="e" * 64,
        sha256="",
    )
    content = canonical(assemble_receipt(id, "e" * 64, [seal_step(step)]))
    blob = await blobs.write(receipt_blob(id), pieces(content))
    row = a_transfer(id, TransferStatus.FAILED, queue="jobs", receipt=blob, reason="infected")
    await store.record(row)
    return row


@asynccontextmanager
async def shown_transfer(
    client: Client, database: Database, *failures: str, job: Any = None
) -> AsyncGenerator[ShownTransfer]:
    """Write the row of a transfer, and park its job at `CallHttp`.

    Args:
        client: Of Temporal.
        database: Of the gateway.
        failures: Why its attempts fail, one after the other.
        job: Its settings.
    """
    event = an_event(id=uuid.uuid4().hex, subject=NAME, data={"fileName": NAME})
    order = a_job_order(event)
    script = ScriptedTransfer(job=job or a_job(READ, SCAN, CALL))
    script.fails["call_http"] = [refused(each) for each in failures or (REASON,)]
    store, queue = SqlTransferStore(database), f"shown-{uuid.uuid4().hex}"
    row = a_transfer(
        order.transfer_id,
        TransferStatus.READ_MESSAGE,
        source=order.event.source,
        event_id=order.event.id,
        account_id=order.event.account_id,
        type=order.event.type,
        subject=NAME,
        queue="jobs",
        job="orders",
        file=NAME,
        reason=f"parked: {REASON}",
        run=file_job_id(order.transfer_id),
    )
    await store.record(row)
    async with Worker(
        client,
        task_queue=queue,
        workflows=[FileJob, NoticeDelivery],
        activities=script.activities(),
    ):
        handle = await client.start_workflow(
            FileJob.run,
            order,
            id=file_job_id(order.transfer_id),
            task_queue=queue,
            search_attributes=attributes.at_start("transfers", "jobs", "TMS001"),
        )
        shown = ShownTransfer(order, script, handle)
        try:
            await is_parked(shown)
            yield shown
        finally:
            # A run that a failed test leaves behind must not hold the worker up.
            if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                await handle.terminate()


async def is_parked(shown: ShownTransfer) -> TransferView:
    """Wait until its run awaits a person."""
    seen: list[TransferView] = []

    async def waits() -> bool:
        seen.append(await shown.handle.query("status", result_type=TransferView))
        return seen[-1].since is not None

    await eventually(waits)
    return seen[-1]
