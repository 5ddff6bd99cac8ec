"""What remains of a transfer when it has ended."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio import activity

from activities.shared.failures import Heartbeater, translate_failures
from activities.transfers.endpoints import content_of, now_utc, staged_files
from activities.transfers.records import Transfer
from activities.transfers.store import SqlTransferStore
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from adapters.staging import BlobCopies, BlobStaging
from workflows.shared.contracts import BlobRef
from workflows.transfers.receipts import Receipt, ReceiptStep, assemble_receipt, canonical, in_order
from workflows.transfers.runs import (
    CopyRetentionInput,
    CopyRetentionResult,
    KeepCopyInput,
    KeptCopy,
    KeptTransfer,
    Manifest,
    ReceiptInput,
    StoredReceipt,
    TransferClosing,
    file_job_id,
    receipt_blob,
)


@dataclass(frozen=True)
class FinalizerDeps:
    """What `JobClosing` is given."""

    store: SqlTransferStore
    staging: BlobStaging


class JobClosing:
    """Ends jobs.

    Args:
        ports: Where rows and bytes are kept.
    """

    def __init__(self, ports: FinalizerDeps) -> None:
        self._ports = ports

    @activity.defn(name="transfers.close")
    @translate_failures
    async def close(self, closing: TransferClosing) -> None:
        """Remove what a job has staged, and write how it ended: the next one has its turn then."""
        job, ports = closing.job, self._ports
        async with Heartbeater():
            await ports.staging.remove(job.transfer_id)
        await ports.store.record(
            Transfer.of(
                job.transfer_id,
                job.event,
                closing.file,
                status=closing.status,
                at=closing.at,
                queue=job.queue,
                job=closing.settings_job,
                reason=closing.reason,
                by=closing.by,
                run=file_job_id(job.transfer_id),
                digest=job.digest,
                receipt=closing.receipt,
                kept=_kept(closing),
                size=closing.size,
            )
        )


def _kept(closing: TransferClosing) -> KeptTransfer | None:
    """What is kept to be sent again, with what names may refer to."""
    if closing.kept is None:
        return None
    kept = closing.kept
    return KeptTransfer(files=kept.files, until=kept.until, event=closing.job.event)


_BLOCK: Final = 1 << 18


@dataclass(frozen=True)
class ReceiptDeps:
    """What the end of a transfer is given."""

    blobs: Blobs
    copies: BlobCopies
    staging: BlobStaging


class CopyRemoval:
    """Removes copies.

    Args:
        copies: Where they are.
        now: The time.
    """

    def __init__(self, copies: BlobCopies, now: Callable[[], datetime] = now_utc) -> None:
        self._copies, self._now = copies, now

    @activity.defn(name="transfers.remove_copies")
    @translate_failures
    async def remove_copies(self, order: CopyRetentionInput) -> CopyRetentionResult:
        """Remove what was kept up to yesterday."""
        async with Heartbeater():
            removed = await self._copies.remove_before(self._now().date())
        return CopyRetentionResult(removed=removed)


class Receipts:
    """Puts receipts together, and keeps copies of what was written.

    Args:
        ports: Where receipts, copies and staged bytes are.
    """

    def __init__(self, ports: ReceiptDeps) -> None:
        self._ports = ports

    @activity.defn(name="transfers.receipt")
    @translate_failures
    async def receipt(self, order: ReceiptInput) -> StoredReceipt:
        """Store the receipt of a transfer, in a blob that its id names.

        Raises:
            RuleViolation: Its steps are not a chain: one was changed on the way.
        """
        job = order.job
        async with Heartbeater():
            steps = [
                ReceiptStep.model_validate_json(await content_of(self._ports.staging, blob))
                for blob in order.steps
            ]
            if order.outcomes:
                steps = in_order(job.digest, [*steps, *order.outcomes])
            receipt = assemble_receipt(
                job.transfer_id,
                job.digest,
                steps,
                resent_from=job.resent_from,
                resent_from_sha256=await self._seal_of(job.resent_from),
            ).model_copy(
                update={
                    "kept": order.kept,
                    "redriven_from": job.redriven_from,
                    "redriven_from_sha256": await self._seal_of(job.redriven_from),
                }
            )
            blob = await self._stored(receipt_blob(job.transfer_id), canonical(receipt))
        return StoredReceipt(blob=blob, steps=len(steps), sha256=receipt.sha256)

    async def _seal_of(self, transfer_id: str | None) -> str | None:
        """Hash of the last step of an earlier transfer; None: its receipt is gone."""
        if transfer_id is None:
            return None
        try:
            content = b"".join([p async for p in self._ports.blobs.read(receipt_blob(transfer_id))])
        except BlobNotFound:
            return None
        return Receipt.model_validate_json(content).sha256

    async def _stored(self, name: str, content: bytes) -> BlobRef:
        try:
            return await self._ports.blobs.write(name, _pieces(content))
        except FileExistsError:
            # Of an attempt before this one, or of a run that was terminated.
            await self._ports.blobs.delete(name)
            return await self._ports.blobs.write(name, _pieces(content))

    @activity.defn(name="transfers.keep")
    @translate_failures
    async def keep(self, order: KeepCopyInput) -> KeptCopy:
        """Keep an encrypted copy of the files, up to and with a day.

        Raises:
            Denied: No key is set to encrypt it with.
        """
        until = (datetime.now(UTC) + timedelta(days=order.days)).date()
        run, copies = order.job.transfer_id, self._ports.copies
        async with Heartbeater():
            lines: list[bytes] = []
            for number, file in enumerate(await staged_files(self._ports.staging, order.files)):
                chunks = self._ports.staging.read(file.blob)
                blob = await copies.keep(run, f"{number:05}", until, chunks)
                kept = file.model_copy(update={"blob": blob})
                lines.append(kept.model_dump_json().encode() + b"\n")
            listed = await copies.keep(run, "files", until, _pieces(b"".join(lines)))
        files = Manifest(files=order.files.files, bytes=order.files.bytes, blob=listed)
        return KeptCopy(files=files, until=until)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _BLOCK):
        yield content[start : start + _BLOCK]
