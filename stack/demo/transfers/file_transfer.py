"""One file of the demo that is carried: from the event that announces it to where it ends."""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from stack.clamd import PLANTED
from stack.demo.api import ask
from stack.demo.transfers.site import ACCOUNT, FIRED, SOURCE, SUFFIX
from workflows.shared.contracts import Contract
from workflows.transfers import receipts
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import receipt_blob

CARRIED: Final = TransferStatus.SUCCEEDED.lower()
QUARANTINED: Final = "quarantined"
_LOOK_SECONDS: Final = 0.1
_ENDED: Final = (TransferStatus.SUCCEEDED, TransferStatus.FAILED)


class TransferSample(Contract):
    """A file of the samples that a supplier sends."""

    infected: bool = False
    """What the scanner takes for a virus is added to it."""

    def name(self, file: str) -> str:
        """What the supplier calls it."""
        return f"infected-{file}" if self.infected else file


@dataclass(frozen=True)
class CarriedFile:
    """What became of a file."""

    state: str
    note: str


class CarryingFailed(Exception):
    """A file did not end where it should; the message says how."""


class FileCarrying:
    """Has one file carried.

    Args:
        api: Client of the gateway, with a token.
        stored: The container that files are carried to.
        documents: The container of documents, with quarantine and receipts.
        folder: Takes what a person wants to open.
        show: Called with each status.
    """

    def __init__(
        self,
        api: httpx.AsyncClient,
        stored: Blobs,
        documents: Blobs,
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._api, self._stored, self._documents = api, stored, documents
        self._folder, self._show = folder, show

    async def announce(self, name: str) -> str:
        """Say that the supplier's server has the file; id of the transfer.

        Raises:
            ApiError: The event is refused.
        """
        event = {
            "specversion": "1.0",
            "id": name,
            "source": SOURCE,
            "type": "Succeeded",
            "subject": "File Upload",
            "data": {"accountId": ACCOUNT, "path": f"{name}{SUFFIX}"},
        }
        return str((await ask(self._api, "POST", "/api/v1/transfers", json=event))["transfer_id"])

    async def finish(self, transfer_id: str, content: bytes, name: str) -> CarriedFile:
        """Follow the transfer to its end, and see what is where.

        Raises:
            ApiError: The gateway refuses a look.
            CarryingFailed: Something is not where it should be.
        """
        event = await self._ended(lambda each: each["transfer_id"] == transfer_id, self._show)
        if event["status"] == TransferStatus.FAILED:
            return await self._quarantined(transfer_id, name, event["reason"])
        await self._compare(f"{ACCOUNT}/{name}", content)
        fired = await self._ended(lambda each: (each["type"], each["subject"]) == (FIRED, name))
        if fired["status"] == TransferStatus.FAILED:
            raise CarryingFailed(f"the event about {name} failed: {fired['reason']}")
        await self._compare(f"archive/{name}.gz", content, unpack=gzip.decompress)
        receipt = await self._receipt(transfer_id, name)
        return CarriedFile(CARRIED, f"receipt of {name}: {receipt.as_uri()}")

    async def _ended(
        self, is_it: Callable[[Any], bool], show: Callable[[str], None] = lambda status: None
    ) -> Any:
        """An event, when its transfer has ended; it is listed once a worker has taken it."""
        while True:
            listed = await ask(self._api, "GET", "/api/v1/transfers")
            for event in filter(is_it, listed["items"]):
                show(event["status"].lower())
                if event["status"] in _ENDED:
                    return event
            await asyncio.sleep(_LOOK_SECONDS)

    async def _compare(
        self, blob: str, content: bytes, unpack: Callable[[bytes], bytes] = bytes
    ) -> None:
        if unpack(await _content(self._stored, blob)) != content:
            raise CarryingFailed(f"the blob {blob} has other bytes than the supplier has sent")

    async def _quarantined(self, transfer_id: str, name: str, reason: str) -> CarriedFile:
        """See that a file is in quarantine, and nowhere else."""
        found = await self._documents.list(f"quarantine/{transfer_id}/", 10)
        kept = [blob.name for blob in found if blob.name.endswith(".bin")]
        if len(kept) != 1 or PLANTED not in await _content(self._documents, kept[0]):
            raise CarryingFailed(f"{name} is not in quarantine: {reason}")
        try:
            await self._stored.stat(f"{ACCOUNT}/{name}")
        except BlobNotFound:
            return CarriedFile(QUARANTINED, f"{name} is in quarantine: {reason}")
        raise CarryingFailed(f"{name} was written on, although: {reason}")

    async def _receipt(self, transfer_id: str, name: str) -> Path:
        content = await _content(self._documents, receipt_blob(transfer_id))
        receipt = json.loads(content)
        finding = receipts.verify(receipt)
        if not finding.whole:
            raise CarryingFailed(f"the receipt of {name} does not hold: {finding.problem}")
        path = self._folder / f"receipt-{name}.json"
        path.write_text(json.dumps(receipt, indent=1))
        return path


def sent(content: bytes, sample: TransferSample) -> bytes:
    """What the supplier sends."""
    return content + PLANTED if sample.infected else content


async def _content(blobs: Blobs, name: str) -> bytes:
    try:
        return b"".join([piece async for piece in blobs.read(name)])
    except BlobNotFound as error:
        raise CarryingFailed(str(error)) from error
