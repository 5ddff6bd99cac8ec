"""What docflow knows about each document type: data, no behaviour."""

from collections.abc import Mapping
from types import MappingProxyType

from contracts.imports import DocumentType, Handler, TypeFacts
from domain.imports.tables import TABLES


def _bulk(document_type: DocumentType) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.CHANGE_ACTIVITIES,
        table="schedule_activities",
        needs_blob=False,
    )


def _delete(document_type: DocumentType, table: str) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.DELETE_SERVICE,
        table=table,
        needs_blob=False,
    )


REGISTRY: Mapping[DocumentType, TypeFacts] = MappingProxyType(
    {
        facts.document_type: facts
        for facts in (
            *(
                TypeFacts(
                    document_type=document_type,
                    handler=Handler.LOAD_ROWS,
                    table=spec.table,
                    guard="idempotency_key",
                )
                for document_type, spec in TABLES.items()
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_EXTRACTION,
                handler=Handler.LOAD_SCHEDULE,
                table="schedule_activities",
                guard="extraction_id",
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_PROJECT_EXTRACTION,
                handler=Handler.LIST_SCHEDULE_PROJECTS,
                own_download=True,
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_UPLOAD,
                handler=Handler.STORE_UPLOAD,
                own_download=True,
            ),
            _bulk(DocumentType.SCHEDULE_DELETE_ALL),
            _bulk(DocumentType.SCHEDULE_FILL_LEVEL),
            _bulk(DocumentType.SCHEDULE_CLEAR_LEVEL),
            _bulk(DocumentType.SCHEDULE_FILL_COLUMN),
            _delete(DocumentType.ESTIMATION_MASTER_DELETE, "estimate_lines"),
            _delete(DocumentType.MTO_DELETE, "mto_lines"),
        )
    }
)
"""One row per document type."""
