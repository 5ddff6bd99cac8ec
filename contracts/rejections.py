"""A rejected message on its way to the record, from where there is no database."""

import hashlib
from typing import Final

from pydantic import ConfigDict

from contracts.base import Contract

RECORD: Final = "RejectionRecord"
"""Name of the workflow type."""
REJECTION_PREFIX: Final = "rejected"
"""What the workflow ids of records begin with, up to the slash."""


class Rejection(Contract):
    """Input of the run that records a rejected message; a queue bounds its body to 256 KB."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", ser_json_bytes="base64", val_json_bytes="base64"
    )

    queue: str
    message_id: str | None = None
    """As the queue gave it."""
    reason: str
    description: str
    body: bytes
    """As it came."""

    @property
    def workflow_id(self) -> str:
        """The same whenever the same message is rejected."""
        named = f"{self.queue}\0{self.message_id or ''}\0".encode()
        return f"{REJECTION_PREFIX}/{hashlib.sha256(named + self.body).hexdigest()}"
