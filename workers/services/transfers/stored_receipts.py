"""Receipts of transfers as they are stored: read, compared with the row, verified."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from adapters.ports import BlobNotFound, Blobs, Unavailable
from adapters.ports.transfers import StatusRow
from contracts.transfers import Receipt
from domain.transfers.receipts import verify

LARGEST: Final = 2 << 20
"""Bytes of a receipt that is shown: of about 5,000 files."""


@dataclass(frozen=True, slots=True)
class ShownReceipt:
    """What a receipt says, or why it cannot be shown."""

    receipt: Receipt | None = None
    problem: str | None = None
    """Why it is not shown, or is not as it was written."""


class StoredReceipts:
    """Reads receipts.

    Args:
        blobs: Opens what holds them.
    """

    def __init__(self, blobs: Callable[[], Blobs]) -> None:
        self._blobs = blobs

    async def of(self, row: StatusRow) -> ShownReceipt | None:
        """The receipt of a transfer; None: it has none yet."""
        if row.receipt is None:
            return None
        if row.receipt.size > LARGEST:
            return ShownReceipt(
                problem=f"it has {row.receipt.size:,} bytes: `docflow transfers receipt "
                f"{row.transfer_id[:12]}` shows it"
            )
        try:
            content = b"".join([piece async for piece in self._blobs().read(row.receipt.name)])
        except BlobNotFound as error:
            return ShownReceipt(problem=f"it is gone: {error}")
        except Unavailable as error:
            return ShownReceipt(problem=f"it cannot be read at the moment: {error}")
        return _read(content, row.receipt.sha256)


def _read(content: bytes, recorded: str | None) -> ShownReceipt:
    try:
        receipt = Receipt.model_validate_json(content)
        finding = verify(json.loads(content))
    except (ValidationError, ValueError, RecursionError):
        return ShownReceipt(problem="what is stored is not a receipt")
    problem = finding.problem and f"it is not as it was written: {finding.problem}"
    if problem is None and recorded not in (None, hashlib.sha256(content).hexdigest()):
        problem = "it holds together and is not the one of this transfer: it was written anew"
    return ShownReceipt(receipt, problem)
