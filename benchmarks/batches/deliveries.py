"""Small text documents of a batch, and their delivery in groups, as a bridge makes it."""

import asyncio
import json
from typing import Final

from adapters.ports import Blobs
from contracts.batches import BatchKey
from tests.support.batches.installation import BatchInstallation
from workers.services.batches.documents import DocumentIntake
from workers.services.verdicts import Settle

RECEIVED_AT_ONCE: Final = 10
"""Messages of one receive, which is as many as SQS gives."""
_RECEIVES_AT_ONCE: Final = 16
"""Receives that are being accepted at the same moment."""
_WORDS: Final = "The gate is three metres wide.\n" * 60


async def store_documents(installation: BatchInstallation, key: BatchKey, count: int) -> None:
    """Keep so many documents, each with words of its own, as blobs."""
    blobs: Blobs = installation.common.blobs
    file = installation.common.scratch / f"document-{key.case_id}"
    for number in range(count):
        file.write_text(f"{number}\n{_WORDS}")
        await blobs.upload(file, _blob(key, number))


async def deliver(installation: BatchInstallation, key: BatchKey, queue: str, count: int) -> None:
    """Deliver the messages of the documents that were stored, from a queue of that name."""
    intake = DocumentIntake(installation.client, key, queue)
    room = asyncio.Semaphore(_RECEIVES_AT_ONCE)

    async def receive(first: int) -> None:
        async with room:
            numbers = range(first, min(first + RECEIVED_AT_ONCE, count))
            verdicts = await asyncio.gather(
                *(intake.accept(_message(key, number), 0, f"{number}") for number in numbers)
            )
            assert all(isinstance(verdict, Settle) for verdict in verdicts)

    await asyncio.gather(*(receive(first) for first in range(0, count, RECEIVED_AT_ONCE)))


def _blob(key: BatchKey, number: int) -> str:
    return f"{key.case_id}/{number}"


def _message(key: BatchKey, number: int) -> bytes:
    ids = {"caseId": key.case_id, "batchId": key.batch_id, "documentId": f"D-{number}"}
    body = {"eventType": "DOCUMENT_PROCESSED", **ids, "blobName": _blob(key, number)}
    return json.dumps(body | {"filename": f"{number}.txt", "tags": ["gate", "site"]}).encode()
