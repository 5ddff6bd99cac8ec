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


def at_start(
    pipeline: str, document_type: str, project_id: str, organisation_id: int | None = None
) -> TypedSearchAttributes:
    """The attributes of a run that has just begun and awaits no answer.

    Args:
        pipeline: Whose run it is.
        document_type: What it is about.
        project_id: Project, account or case.
        organisation_id: Organisation that it belongs to; None: to none.
    """
    return TypedSearchAttributes(
        [
            SearchAttributePair(PIPELINE, pipeline),
            SearchAttributePair(DOCUMENT_TYPE, document_type),
            SearchAttributePair(PROJECT_ID, project_id),
            SearchAttributePair(STATE, "running"),
            SearchAttributePair(NEEDS_ATTENTION, False),
            *_owner(organisation_id),
        ]
    )


def of_part(organisation_id: int | None) -> TypedSearchAttributes | None:
    """The attributes of a run that is a part of another one; None: it belongs to nobody."""
    pairs = _owner(organisation_id)
    return TypedSearchAttributes(pairs) if pairs else None


def organisation_of(attributes: TypedSearchAttributes) -> int | None:
    """The organisation that a run belongs to; None: to none."""
    found = attributes.get(ORGANISATION_ID)
    return int(found) if found and found.isdecimal() else None


def _owner(organisation_id: int | None) -> list[SearchAttributePair[Any]]:
    if organisation_id is None:
        return []
    return [SearchAttributePair(ORGANISATION_ID, str(organisation_id))]


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
