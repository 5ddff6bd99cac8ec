"""Bodies of events of batches, and how they are refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from workers.batches.messages import read_case_event, read_document_event
from workers.shared.services.bodies import (
    DESCRIPTION_LIMIT,
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_EVENT_TYPE,
    RefusedMessage,
)
from workflows.batches.events import CaseEvent
from workflows.batches.loads import DocumentEvent

Read = Callable[[bytes], CaseEvent | DocumentEvent | None]
READERS: tuple[Read, ...] = (read_case_event, read_document_event)

STARTED = {"eventType": "JOB_STARTED", "caseId": 7, "batchId": 3}
DOCUMENT = {
    "eventType": "DOCUMENT_PROCESSED",
    "caseId": 7,
    "batchId": 3,
    "documentId": "D-1",
    "blobName": "cases/7/letter.pdf",
}


def raw_of(body: Any) -> bytes:
    return json.dumps(body).encode()


def enveloped(raw: bytes) -> bytes:
    """As SNS delivers it where raw delivery is off."""
    return raw_of(
        {
            "Type": "Notification",
            "MessageId": "4e1e0b8a",
            "TopicArn": "arn:aws:sns:eu-central-1:000000000000:documents",
            "Message": raw.decode(),
            "Timestamp": "2026-01-01T00:00:00.000Z",
            "MessageAttributes": {"eventType": {"Type": "String", "Value": "X"}},
        }
    )


def refused(read: Read, raw: bytes) -> RefusedMessage:
    with pytest.raises(RefusedMessage) as caught:
        read(raw)
    said = caught.value
    assert said.reason in {MALFORMED_BODY, UNKNOWN_EVENT_TYPE, INVALID_MESSAGE}
    assert 0 < len(said.description) <= DESCRIPTION_LIMIT
    assert said.description.isprintable()
    return said
