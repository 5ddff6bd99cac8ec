"""Small text documents of a batch, and their delivery in groups, as a bridge makes it."""

import asyncio
import json
from pathlib import Path
from typing import Final

from temporalio.client import Client

from adapters.ports.blobs import Blobs
from workers.batches.documents import DocumentIntake
from workers.shared.services.bodies import Settle
from workflows.batches.names import BatchKey

RECEIVED_AT_ONCE: Final = 10
"""Messages of one receive, which is as many as SQS gives."""
_RECEIVES_AT_ONCE: Final = 16
"""Receives that are being accepted at the same moment."""
_WORDS: Final = "The gate is three metres wide.\n" * 60


async def store_documents(blobs: Blobs, scratch: Path, key: BatchKey, count: int) -> None:
    """Keep so many documents, each with words of its own, as blobs."""
    file = scratch / f"document-{key.case_id}"
    for number in range(count):
        file.write_text(f"{number}\n{_WORDS}")
        await blobs.upload(file, _blob(key, number))


async def deliver(client: Client, key: BatchKey, queue: str, count: int, begin: int = 0) -> None:
    """Deliver the messages of documents that were stored, from a queue of that name.

    Args:
        client: Of Temporal.
        key: Their batch.
        queue: From which they seem to come.
        count: How many documents there are up to the last one.
        begin: How many of them were delivered before.
    """
    intake = DocumentIntake(client, key, queue)
    room = asyncio.Semaphore(_RECEIVES_AT_ONCE)

    async def receive(first: int) -> None:
        async with room:
            numbers = range(first, min(first + RECEIVED_AT_ONCE, count))
            verdicts = await asyncio.gather(
                *(intake.accept(_message(key, number), 0, f"{number}") for number in numbers)
            )
            assert all(isinstance(verdict, Settle) for verdict in verdicts)

    await asyncio.gather(*(receive(first) for first in range(begin, count, RECEIVED_AT_ONCE)))


def _blob(key: BatchKey, number: int) -> str:
    return f"{key.case_id}/{number}"


def _message(key: BatchKey, number: int) -> bytes:
    ids = {"caseId": key.case_id, "batchId": key.batch_id, "documentId": f"D-{number}"}
    body = {"eventType": "DOCUMENT_PROCESSED", **ids, "blobName": _blob(key, number)}
    return json.dumps(body | {"filename": f"{number}.txt", "tags": ["gate", "site"]}).encode()
