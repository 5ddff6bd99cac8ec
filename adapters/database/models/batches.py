"""Cases, their batches, the documents of these, and what is only needed while a batch loads."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    Table,
    Text,
    and_,
    case,
    func,
    literal,
    text,
    true,
)

from adapters.database.models.base import UtcDateTime, metadata
from adapters.database.models.runs import completed, counted, follow, state_of
from workflows.batches.names import LoaderStatus
from workflows.shared.runs import RunState


def _key(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _texts(*names: str) -> list[Column[Any]]:
    return [Column(name, Text) for name in names]


def _moments(*names: str) -> list[Column[Any]]:
    return [Column(name, UtcDateTime) for name in names]


def _flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, default=False)


def _number(name: str) -> Column[Any]:
    return Column(name, Integer, nullable=False, default=0)


_UNANNOUNCED = text("unannounced_since IS NOT NULL")

cases = Table(
    "cases",
    metadata,
    _key("id", BigInteger),
    Column("max_processing_daemons", Integer),
)
"""`max_processing_daemons` is the concurrency reserved for the function of each batch."""

batches = Table(
    "batches",
    metadata,
    _key("case_id", BigInteger),
    _key("batch_id", BigInteger),
    Column("loader_status", Text, nullable=False),
    Column("loader_status_updated_at", UtcDateTime, nullable=False),
    *_texts("reason", "attention", "purpose", "timings", "cancelled_mode"),
    *_moments("job_finished_at", "end_finished_at"),
    _flag("skipped"),
    _number("redrive_pass"),
    _flag("final_pass"),
    _number("dead_letters"),
    Column("job_documents", Integer),
    *_texts("passed_on", "lost"),
    Column("known", Boolean, nullable=False, server_default=true()),
    Column("unannounced_since", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "updated_at"),
    Index(
        None,
        "unannounced_since",
        postgresql_where=_UNANNOUNCED,
    ),
)
"""`purpose` is what was requested and is not begun; None: nothing.

`unannounced_since` is when the batch ended, until its LOADER_FINISHED is published.

`lost` says which queue was deleted by someone else, with documents that no row counts.

`passed_on` is a JSON object: the fields that docflow does not use, by the type of their event. A
row that is not `known` holds what events said of a batch that was neither started nor expected.
"""

documents = Table(
    "documents",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    Column("batch_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    *_texts("blob_name", "filename", "etag", "sha256", "media_type", "title", "author"),
    Column("size", BigInteger),
    *_moments("created_at", "modified_at"),
    Column("pages", Integer),
    *_texts("metadata", "notes", "reason", "failed_event", "duplicate_of"),
    _flag("truncated"),
    Column("message_key", Text),
    Column("sent_at", UtcDateTime),
    *_texts("parent_id", "family_id"),
    Column("depth", Integer),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "case_id", "batch_id", "state"),
    Index(None, "case_id", "sha256"),
    Index(None, "case_id", "family_id"),
    Index(None, "updated_at"),
)
"""A document id stands for one document of its case, whatever batch brings it.

`parent_id` is of the document that a file was found in, `family_id` of the one that was sent, and
`depth` says how many are around it; all are None where the sender announced the document.

`failed_event` is the type of the message that could not be loaded. `message_key` is of the message
whose file it is; None: a release that kept none wrote the row.
"""

document_versions = Table(
    "document_versions",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    _key("version"),
    Column("batch_id", BigInteger, nullable=False),
    Column("blob_name", Text, nullable=False),
    *_texts("filename", "etag", "sha256", "media_type", "title", "tags", "text"),
    Column("size", BigInteger),
    Column("sent_at", UtcDateTime),
    Column("kept_at", UtcDateTime, nullable=False),
)
"""What a document was before another message replaced it, or what an older message brought late.

`version` stands for its message and its bytes, `tags` is a JSON list. `text` is None where what
replaced it has the same bytes, and where the file came too late to be read.
"""

failed_messages = Table(
    "failed_messages",
    metadata,
    _key("case_id", BigInteger),
    _key("batch_id", BigInteger),
    _key("document_id"),
    _key("message_key"),
    Column("event_type", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("failed_at", UtcDateTime, nullable=False),
)
"""Messages that could not be loaded, as they came: each stays until it is loaded."""

document_texts = Table(
    "document_texts",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    Column("text", Text, nullable=False),
)

document_relations = Table(
    "document_relations",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    _key("related_id"),
    _key("kind"),
)

document_messages = Table(
    "document_messages",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    _key("message_key"),
    _flag("own"),
    Index(None, "case_id", "message_key"),
)
"""Message ids of mails: their own, and those that they answer."""

document_tags = Table(
    "document_tags",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    _key("tag_key"),
    Column("tag", Text, nullable=False),
)

attachments = Table(
    "attachments",
    metadata,
    _key("case_id", BigInteger),
    _key("document_id"),
    _key("blob_key"),
    Column("blob_name", Text, nullable=False),
    Column("filename", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text),
)

doc_dedupe = Table(
    "doc_dedupe",
    metadata,
    _key("case_id", BigInteger),
    _key("batch_id", BigInteger),
    _key("sha256"),
    Column("document_id", Text, nullable=False),
)
"""Who of a batch came first with some bytes: loads of the same moment agree about it."""

tag_dedupe = Table(
    "tag_dedupe",
    metadata,
    _key("case_id", BigInteger),
    _key("batch_id", BigInteger),
    _key("tag_key"),
    Column("tag", Text, nullable=False),
)
"""How a tag is written: as the first document of the batch wrote it."""

process_checkpoints = Table(
    "process_checkpoints",
    metadata,
    _key("case_id", BigInteger),
    _key("batch_id", BigInteger),
    _key("document_id"),
    _key("event_type"),
    _key("step"),
    Column(
        "message_key",
        Text,
        primary_key=True,
        autoincrement=False,
        nullable=False,
        server_default=text("''"),
    ),
    Column("done_at", UtcDateTime, nullable=False),
    Column("digest", Text),
    Column("etag", Text),
)
"""`message_key` is of the message whose step it was, `etag` of the file that was read for it.

Releases that had one checkpoint for each kind of message left `message_key` empty, and stored the
same in `digest`."""

TEMPORARY = (doc_dedupe, tag_dedupe, process_checkpoints)
"""Emptied when a batch ends."""


def _as_run(own: Any) -> dict[str, ColumnElement[Any]]:
    is_open = own.loader_status.in_([LoaderStatus.WAITING, LoaderStatus.PROCESSING])
    asks = and_(is_open, own.attention.is_not(None))
    states = {
        LoaderStatus.WAITING: RunState.WAITING,
        LoaderStatus.PROCESSING: RunState.RUNNING,
        LoaderStatus.COMPLETE: completed(own.dead_letters),
        LoaderStatus.INCOMPLETE: RunState.COMPLETED_WITH_PROBLEMS,
        LoaderStatus.CANCELLED: RunState.CANCELLED,
        LoaderStatus.FAILED: RunState.FAILED,
        LoaderStatus.SKIPPED: RunState.SKIPPED,
        LoaderStatus.TERMINATED: RunState.CANCELLED,
    }
    id = func.concat("batch/", own.case_id, "/", own.batch_id)
    return {
        "id": id,
        "pipeline": literal("batches"),
        "kind": literal("batch"),
        "key": id,
        "short": id,
        "state": case(
            (asks, literal(str(RunState.NEEDS_ATTENTION))),
            else_=state_of(own.loader_status, states),
        ),
        "own_state": own.loader_status,
        "reason": case((asks, own.attention), else_=own.reason),
        "counts": counted(documents=own.job_documents, dead_letters=own.dead_letters),
        "answers_at": id,
        "created_at": own.created_at,
        "changed_at": own.updated_at,
        "ended_at": case((~is_open, own.loader_status_updated_at)),
    }


follow(batches, _as_run)
