"""Kept copies are removed when their last day is over."""

from datetime import UTC, date, datetime
from typing import Any

from activities.transfers.receipt import CopyRemoval
from adapters.staging import BlobCopies, SealedBlobs, StagingKeys
from tests.support.blobs import arriving
from tests.support.memory.blobs import MemoryBlobs
from tests.support.transfers.secrets import PlantedSecrets
from workflows.transfers.runs import CopyRetentionInput
from workflows.transfers.scheduled import TransferCopyRetention


async def test_what_was_kept_long_enough_is_removed(server: Any, run_worker: Any) -> None:
    secrets, blobs = PlantedSecrets(), MemoryBlobs()
    secrets.values["env:KEY"] = "ab" * 32
    copies = BlobCopies(SealedBlobs(blobs, StagingKeys(secrets, "env:KEY")))
    for day in (date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)):
        await copies.keep("run", "0", day, arriving(b"x", 1))
    removal = CopyRemoval(copies, lambda: datetime(2026, 3, 2, 3, tzinfo=UTC))
    async with run_worker("copies", [TransferCopyRetention], [removal.remove_copies]):
        result = await server.client.execute_workflow(
            TransferCopyRetention.run, CopyRetentionInput(), id="copies", task_queue="copies"
        )
    assert result.removed == 1
    left = [ref.name.split("/")[1] for ref in await blobs.list("kept/", 10)]
    assert left == ["2026-03-02", "2026-03-03"]
