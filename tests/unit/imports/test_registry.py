"""The registry knows every document type, and only fields that its messages have."""

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from workflows.imports.messages import BulkMessage, DeleteMessage, DocumentType, OwnMessage
from workflows.imports.runs import TypeInfo
from workflows.imports.types import REGISTRY

UNION = get_args(get_args(OwnMessage)[0])
MESSAGES: dict[DocumentType, type[BaseModel]] = {
    document_type: message
    for message in UNION
    for document_type in get_args(message.model_fields["document_type"].annotation)
}
FACTS = pytest.mark.parametrize("facts", REGISTRY.values(), ids=lambda f: f.document_type)
ROOT = Path(__file__).parents[3]


def test_every_document_type_has_a_row_and_a_message() -> None:
    assert set(REGISTRY) == set(DocumentType) == set(MESSAGES)


@FACTS
def test_facts_follow_the_message(facts: TypeInfo) -> None:
    message = MESSAGES[facts.document_type]
    assert facts.guard is None or facts.guard in message.model_fields
    assert facts.needs_blob != issubclass(message, BulkMessage | DeleteMessage)
    assert not facts.own_download or facts.needs_blob


def test_every_fact_is_read() -> None:
    """What nothing reads has no place in the history of every import."""
    code = "\n".join(
        file.read_text()
        for folder in ("activities", "adapters", "workers", "workflows")
        for file in (ROOT / folder).rglob("*.py")
    )
    unread = [name for name in TypeInfo.model_fields if f"facts.{name}" not in code]
    # The registry is looked up by type and not by its facts in one place.
    assert [name for name in unread if f"].{name}" not in code] == []
