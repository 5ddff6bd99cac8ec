"""Documents of batches whose time is over."""

from typing import Final

from sqlalchemy import and_, exists

from adapters.database.engine import Database
from adapters.database.models.batches import (
    attachments,
    batches,
    document_messages,
    document_relations,
    document_tags,
    document_texts,
    document_versions,
    documents,
    failed_messages,
)
from adapters.database.retention import SqlOldRows
from contracts.batches import DocumentState, LoaderStatus

_OF_A_DOCUMENT: Final = (
    attachments,
    document_messages,
    document_relations,
    document_tags,
    document_texts,
    document_versions,
    failed_messages,
)
_OPEN: Final = (LoaderStatus.WAITING.value, LoaderStatus.PROCESSING.value)


def old_documents(database: Database) -> SqlOldRows:
    """Documents that have not changed since, unless they or their batch are being loaded.

    Files stay where they are: they are those of the sender, or named after them.
    """
    batch_is_open = exists().where(
        batches.c.case_id == documents.c.case_id,
        batches.c.batch_id == documents.c.batch_id,
        batches.c.loader_status.in_(_OPEN),
    )
    return SqlOldRows(
        database,
        documents,
        documents.c.updated_at,
        and_(documents.c.state != DocumentState.LOADING.value, ~batch_is_open),
        also=_OF_A_DOCUMENT,
    )
