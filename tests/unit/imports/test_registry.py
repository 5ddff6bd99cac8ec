"""The registry knows every document type, and only fields that its messages have."""

from typing import get_args

import pytest
from pydantic import BaseModel

from contracts.imports import BulkMessage, DeleteMessage, DocumentType, ImportMessage, TypeFacts
from domain.imports.registry import REGISTRY

UNION = get_args(get_args(ImportMessage)[0])
MESSAGES: dict[DocumentType, type[BaseModel]] = {
    document_type: message
    for message in UNION
    for document_type in get_args(message.model_fields["document_type"].annotation)
}
FACTS = pytest.mark.parametrize("facts", REGISTRY.values(), ids=lambda f: f.document_type.value)
NO_PAYLOAD = (DocumentType.SCHEDULE_DELETE_ALL,)


def test_every_document_type_has_a_row_and_a_message() -> None:
    assert set(REGISTRY) == set(DocumentType) == set(MESSAGES)


@FACTS
def test_what_a_handler_takes_is_on_its_message(facts: TypeFacts) -> None:
    fields = set(MESSAGES[facts.document_type].model_fields)
    # All bulk types are routed alike; deleting just has nothing to fill in.
    takes = set(facts.takes) - ({"payload"} if facts.document_type in NO_PAYLOAD else set())
    assert takes <= fields
    assert facts.guard is None or facts.guard in fields


@FACTS
def test_flags_follow_the_message(facts: TypeFacts) -> None:
    message = MESSAGES[facts.document_type]
    assert facts.bulk == issubclass(message, BulkMessage)
    assert facts.delete == issubclass(message, DeleteMessage)
    assert facts.needs_blob == (not facts.bulk and not facts.delete)
    assert not facts.own_download or facts.needs_blob
