"""Records of runs and messages that are written, closed and removed for every pipeline."""

import hashlib
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from workflows.shared.contracts import Contract

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


ROW_RETENTION: Final = "RowRetention"
"""Name of the workflow type."""
KINDS: Final = 60
"""Kinds of rows that a result lists."""


class RowRetentionInput(Contract):
    """Input of a removal."""

    pipeline: Annotated[str, Field(max_length=64)]
    dry_run: bool = False
    """Count what would be removed, and remove nothing."""
    most: int = Field(default=2_000_000, ge=1)
    """Rows of each kind; the next run removes the rest."""
    page: int = Field(default=500, ge=1, le=5_000)
    """Rows of one transaction."""


class RemovedRows(Contract):
    """What was removed of one kind, or would be."""

    what: Annotated[str, Field(max_length=200)]
    days: int | None = None
    """How long rows of this kind are kept; None: for ever."""
    rows: int = 0
    blobs: int = 0
    """Blobs that only these rows named; 0 in a dry run."""
    more: bool = False
    """The bound of one run was reached; there may be further rows."""


class RowRetentionResult(Contract):
    """Result of a removal, kind by kind."""

    kinds: Annotated[tuple[RemovedRows, ...], Field(max_length=KINDS)] = ()
    """The first of them."""


RUN_SWEEPER: Final = "RunSweeper"
"""Name of the workflow type."""
TERMINATED: Final = "terminated"
"""State of a run that was ended from outside, in every pipeline; some write it in capitals."""
NAMED: Final = 20
"""Runs that a result names."""


class RunSweepInput(Contract):
    """Input of a sweep of the runs of one pipeline."""

    pipeline: Annotated[str, Field(max_length=64)]
    closed_for: int = Field(default=60, ge=0)
    """Seconds that a run has been over, and its row has not changed, before it is closed."""
    unknown_for: int = Field(default=24 * 3600, ge=0)
    """Seconds that a row of which Temporal knows no run has not changed."""


class RunsSwept(Contract):
    """Result of a sweep."""

    terminated: int = 0
    """Rows that were closed."""
    runs: tuple[Annotated[str, Field(max_length=1000)], ...] = Field(default=(), max_length=NAMED)
    """Workflow ids of the first of them."""
    folders: int = 0
    """Scratch folders of killed workers that were removed."""


DOCUMENTS: Final = "docflow_documents_total"
DOCUMENTS_DESCRIPTION: Final = "Runs of documents that have ended"
IS_DOCUMENT: Final = "docflow.is_document"
"""What workflows ask their worker: whether a workflow type stands for documents, and is counted."""
