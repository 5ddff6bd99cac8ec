"""Relations and attachments that messages name: real tables, blobs in memory."""

import pytest

from tests.support.batches.document_loading import (
    KEY,
    DocumentLoading,
    attachments_of,
)
from workflows.batches.loads import DocumentRelations, LoadStep, Relation, RelationKind

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_relations_of_a_message(loading: DocumentLoading) -> None:
    event = DocumentRelations(
        case_id=KEY.case_id,
        batch_id=KEY.batch_id,
        document_id="D-1",
        relations=(Relation(related_id="D-2", kind=RelationKind.VERSION),),
    )
    await loading.load(event)
    assert (await loading.load(event))[LoadStep.RELATIONS].resumed
    assert await loading.rows("document_relations", "document_id", "related_id", "kind") == [
        ("D-1", "D-2", "version")
    ]


async def test_attachments_of_a_message_are_resolved(loading: DocumentLoading) -> None:
    await loading.put("in/1.jpg", b"one")
    await loading.put("in/2.jpg", b"second")
    await loading.load(attachments_of("in/1.jpg", "in/2.jpg", "in/1.jpg"))
    assert await loading.rows("attachments", "blob_name", "filename", "size") == [
        ("in/1.jpg", "1.jpg", 3),
        ("in/2.jpg", "2.jpg", 6),
    ]


async def test_hundreds_of_attachments_of_one_message_are_resolved(
    loading: DocumentLoading,
) -> None:
    names = [f"in/{number:03}.jpg" for number in range(250)]
    for name in names:
        await loading.put(name, b"one")
    await loading.load(attachments_of(*names))
    assert await loading.rows("attachments", "blob_name") == [(name,) for name in names]
