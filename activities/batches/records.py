"""Records of batches: what the tables hold, and people see of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import DocumentCounts
from workflows.shared.contracts import PlainRecord, not_served, served

RECORDED: Final = "recorded as failed"
QUEUED: Final = "dead-letter queue"
"""Where a message is that was not loaded."""


class BatchView(PlainRecord):
    """A batch."""

    key: Annotated[BatchKey, not_served()]
    status: Annotated[LoaderStatus, served("Where it stands", "processing")]
    reason: Annotated[str | None, served("Why", None)] = None
    documents: Annotated[DocumentCounts, served("By state", {"loaded": 12})]
    dead_letters: Annotated[int, served("Dead letters that it kept", 0)] = 0
    unannounced: Annotated[
        bool, served("It has ended, and LOADER_FINISHED has not been published", False)
    ] = False
    unused_fields: Annotated[
        Sequence[str],
        served("Fields of its events that docflow does not use, and passes on", ["color"]),
    ] = ()
    updated_at: Annotated[datetime, served("When it changed last", "2026-01-03T10:00:00Z")]
    known: Annotated[bool, not_served()] = True
    """It was started, or is expected; else only stray events name it."""
    lost: Annotated[str | None, not_served()] = None
    """Which queue was deleted by someone else, with documents that no row counts."""


class DocumentView(PlainRecord):
    """A document of a batch."""

    document_id: Annotated[str, served("Its id", "D-1")]
    state: Annotated[DocumentState, served("Where it stands", "loaded")]
    filename: Annotated[
        str | None, served("Its blob's name if its owner gave none; null: not known", "a.pdf")
    ] = None
    reason: Annotated[str | None, served("Why it failed", None)] = None
    failed_event: Annotated[
        str | None, served("Type of the message that could not be loaded", None)
    ] = None
    duplicate_of: Annotated[str | None, served("Document with the same bytes", None)] = None
    original_state: Annotated[
        DocumentState | None, served("Where the document with the same bytes stands", None)
    ] = None
    notes: Annotated[str | None, served("What could not be read of it, a line each", None)] = None
    parent_id: Annotated[
        str | None,
        served("Document that it was found in; null: its sender announced it", None),
    ] = None
    updated_at: Annotated[datetime, served("When it changed last", "2026-01-03T10:00:00Z")]


class FailedMessage(PlainRecord):
    """A message of a batch that is not loaded, as it came."""

    where: Annotated[str, served("Where it is", QUEUED)] = RECORDED
    document_id: Annotated[str | None, served("Null: the message cannot be read", "D-1")]
    message_key: Annotated[str, not_served()] = ""
    event_type: Annotated[str | None, served("Type of the message", "DOCUMENT_PROCESSED")]
    reason: Annotated[str, served("Why it is not loaded", "the file is cut off")]
    at: Annotated[datetime | None, served("When it failed, or was sent", "2026-01-03T10:00:00Z")]
    body: Annotated[str, served("The message", "{}")]

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands among those that are recorded."""
        return self.document_id or "", self.message_key


class ExistingResource(PlainRecord):
    """Something of a batch that exists in the cloud."""

    resource: Annotated[str, served("What it is", "queue")]
    name: Annotated[str, served("Name or address in the cloud", "docflow_doc_loader_7_1")]
    made_at: Annotated[
        datetime | None, served("When it was made; null: not known", "2026-01-03T10:00:00Z")
    ] = None
    owner: Annotated[str | None, served("Run that made it", "batch/7/1")] = None
    details: Annotated[dict[str, str], served("State, and what it costs by", {"messages": "0"})]


class ExistingResources(PlainRecord):
    """What exists of a batch in the cloud, and whose it is."""

    state: Annotated[str, served("gone, in use, foreign, kept or orphaned", "in use")]
    sentence: Annotated[str, served("The same for people", "in use by batch/7/1")]
    resources: Annotated[Sequence[ExistingResource], served("What exists", [])]
    at: Annotated[datetime, served("When it was looked for", "2026-01-03T10:00:00Z")]
