"""Search attributes that every pipeline sets."""

from typing import Final

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

PIPELINE: Final = SearchAttributeKey.for_keyword("Pipeline")
DOCUMENT_TYPE: Final = SearchAttributeKey.for_keyword("DocumentType")
PROJECT_ID: Final = SearchAttributeKey.for_keyword("ProjectId")
STATE: Final = SearchAttributeKey.for_keyword("State")
NEEDS_ATTENTION: Final = SearchAttributeKey.for_bool("NeedsAttention")

ALL: Final = (PIPELINE, DOCUMENT_TYPE, PROJECT_ID, STATE, NEEDS_ATTENTION)


def at_start(pipeline: str, document_type: str, project_id: str) -> TypedSearchAttributes:
    """The attributes of a run that has just begun and needs nobody."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(PIPELINE, pipeline),
            SearchAttributePair(DOCUMENT_TYPE, document_type),
            SearchAttributePair(PROJECT_ID, project_id),
            SearchAttributePair(STATE, "running"),
            SearchAttributePair(NEEDS_ATTENTION, False),
        ]
    )
