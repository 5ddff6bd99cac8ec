"""What of a batch is not loaded: messages of its dead-letter queue, and recorded ones."""

import json
from datetime import UTC, datetime

import pytest

from activities.batches.records import QUEUED, FailedMessage
from adapters.ports.batches import QueuedDeadLetter
from tests.support.batches.messages import DOCUMENT
from tests.support.scripted_port import ScriptedPort
from workers.batches.service import beginning_of, failed_without_message, unloaded
from workflows.batches.names import BatchKey, names_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = BatchKey(case_id=7, batch_id=3)
NAMES = names_of("p", KEY)
AT = datetime(2026, 1, 2, tzinfo=UTC)


def recorded(document_id: str) -> FailedMessage:
    return FailedMessage(
        document_id=document_id,
        message_key="k",
        event_type="BATCH_ATTACHMENTS",
        reason="gone",
        body="{}",
        at=AT,
    )


async def test_every_message_that_is_not_loaded_has_a_reason() -> None:
    body = json.dumps(DOCUMENT)
    queues = ScriptedPort(
        dead_letters=[
            QueuedDeadLetter(body, "extract: it is cut off", AT),
            QueuedDeadLetter(body, None, AT),
            QueuedDeadLetter("no json", None, None),
        ]
    )
    store = ScriptedPort(failed_messages=[recorded("D-2")])
    cut_off, unsettled, unreadable, failed = await unloaded(queues, store, KEY, NAMES, 5)
    assert cut_off == FailedMessage(
        where=QUEUED,
        document_id="D-1",
        event_type="DOCUMENT_PROCESSED",
        reason="extract: it is cut off",
        at=AT,
        body=body,
    )
    assert "received too often" in unsettled.reason
    assert (unreadable.document_id, "is not JSON" in unreadable.reason) == (None, True)
    assert failed == recorded("D-2")
    assert queues.made("dead_letters") == [[NAMES, 5]]


async def test_failed_documents_of_a_release_that_kept_no_messages_are_counted() -> None:
    store = ScriptedPort()
    store.answer("failed_messages", [recorded("D-1"), recorded("D-1")], [recorded("D-2")], [])
    assert await failed_without_message(store, KEY, 5) == 3


async def test_a_body_that_cannot_be_read_is_shown_by_its_beginning() -> None:
    assert beginning_of("a\x1b[31m" + "x" * 200) == "a?[31m" + "x" * 74 + "..."
