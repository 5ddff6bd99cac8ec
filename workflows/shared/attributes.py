"""Search attributes that every pipeline sets."""

from datetime import datetime
from typing import Any, Final

from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    SearchAttributeUpdate,
    TypedSearchAttributes,
)

PIPELINE: Final = SearchAttributeKey.for_keyword("Pipeline")
DOCUMENT_TYPE: Final = SearchAttributeKey.for_keyword("DocumentType")
PROJECT_ID: Final = SearchAttributeKey.for_keyword("ProjectId")
STATE: Final = SearchAttributeKey.for_keyword("State")
NEEDS_ATTENTION: Final = SearchAttributeKey.for_bool("NeedsAttention")
WAITING_SINCE: Final = SearchAttributeKey.for_datetime("WaitingSince")
WAITING_FOR: Final = SearchAttributeKey.for_keyword("WaitingFor")
ORGANISATION_ID: Final = SearchAttributeKey.for_keyword("OrganisationId")

ALL: Final = (
    PIPELINE,
    DOCUMENT_TYPE,
    PROJECT_ID,
    STATE,
    NEEDS_ATTENTION,
    WAITING_SINCE,
    WAITING_FOR,
    ORGANISATION_ID,
)

OPERATORS: Final = "operators"
"""`WaitingFor` of a run that awaits no one person."""


def at_start(pipeline: str, document_type: str, project_id: str) -> TypedSearchAttributes:
    """The attributes of a run that has just begun and awaits no answer."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(PIPELINE, pipeline),
            SearchAttributePair(DOCUMENT_TYPE, document_type),
            SearchAttributePair(PROJECT_ID, project_id),
            SearchAttributePair(STATE, "running"),
            SearchAttributePair(NEEDS_ATTENTION, False),
        ]
    )


def waiting(state: str, since: datetime, person: str) -> list[SearchAttributeUpdate[Any]]:
    """The changes that show a run which waits for a person.

    Args:
        state: What `State` becomes.
        since: Since when.
        person: Who is to answer, or `OPERATORS`.
    """
    return [
        STATE.value_set(state),
        NEEDS_ATTENTION.value_set(True),
        WAITING_SINCE.value_set(since),
        WAITING_FOR.value_set(person),
    ]


def not_waiting(state: str) -> list[SearchAttributeUpdate[Any]]:
    """The changes that show a run which awaits no answer (any more)."""
    return [
        STATE.value_set(state),
        NEEDS_ATTENTION.value_set(False),
        WAITING_SINCE.value_unset(),
        WAITING_FOR.value_unset(),
    ]
