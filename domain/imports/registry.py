"""What docflow knows about each document type: data, no behaviour."""

from contracts.imports import DocumentType, Handler, Strategy, TypeFacts

_ALL = tuple(Strategy)


def _table(document_type: DocumentType, table: str, *key: str, takes: str = "") -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.LOAD_ROWS,
        table=table,
        takes=("strategy", "idempotency_key", "all_or_nothing", "sheet", *takes.split()),
        natural_key=key,
        strategies=_ALL,
        guard="idempotency_key",
    )


def _bulk(document_type: DocumentType) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.CHANGE_ACTIVITIES,
        table="schedule_activities",
        needs_blob=False,
        bulk=True,
        takes=("operation", "activity_ids", "filters", "payload"),
        natural_key=("project_id", "primavera_project_id", "task_code"),
    )


def _delete(document_type: DocumentType, table: str) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.DELETE_SERVICE,
        table=table,
        needs_blob=False,
        delete=True,
        takes=("service_id",),
    )


REGISTRY: dict[DocumentType, TypeFacts] = {
    facts.document_type: facts
    for facts in (
        _table(
            DocumentType.MTO,
            "mto_lines",
            *("project_id", "service_id", "drawing", "commodity_code", "size", "sequence"),
            takes="service_id",
        ),
        _table(
            DocumentType.ESTIMATION_MASTER,
            "estimate_lines",
            *("project_id", "service_id", "item_code"),
            takes="service_id",
        ),
        _table(DocumentType.EQUIPMENT, "equipment", "project_id", "code"),
        _table(DocumentType.MATERIAL, "materials", "project_id", "code"),
        _table(DocumentType.CREW, "crews", "project_id", "code"),
        _table(
            DocumentType.CREW_MEMBER,
            "crew_members",
            *("project_id", "employee_no", "valid_from"),
        ),
        _table(DocumentType.CREW_TRADE, "crew_trades", "project_id", "code"),
        TypeFacts(
            document_type=DocumentType.SCHEDULE_EXTRACTION,
            handler=Handler.LOAD_SCHEDULE,
            table="schedule_activities",
            takes=("extraction_id", "primavera_project_id", "schedule_config"),
            natural_key=("project_id", "primavera_project_id", "task_code"),
            guard="extraction_id",
        ),
        TypeFacts(
            document_type=DocumentType.SCHEDULE_PROJECT_EXTRACTION,
            handler=Handler.LIST_SCHEDULE_PROJECTS,
            own_download=True,
            takes=("blob_name", "primavera_project_id", "schedule_config"),
        ),
        TypeFacts(
            document_type=DocumentType.SCHEDULE_UPLOAD,
            handler=Handler.STORE_UPLOAD,
            own_download=True,
            takes=(
                "temp_blob_name",
                "target_blob_name",
                "original_filename",
                "direct_upload",
                "blob_name",
            ),
        ),
        _bulk(DocumentType.SCHEDULE_DELETE_ALL),
        _bulk(DocumentType.SCHEDULE_FILL_LEVEL),
        _bulk(DocumentType.SCHEDULE_CLEAR_LEVEL),
        _bulk(DocumentType.SCHEDULE_FILL_COLUMN),
        _delete(DocumentType.ESTIMATION_MASTER_DELETE, "estimate_lines"),
        _delete(DocumentType.MTO_DELETE, "mto_lines"),
    )
}
"""One row per document type."""
