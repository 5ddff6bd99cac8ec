"""The documents of the demo: the same for everybody, and of every kind."""

from collections import Counter
from pathlib import Path

from stack.sample_documents import sample_documents
from workflows.batches.loads import DOCUMENT_EVENT, DocumentState
from workflows.batches.names import BatchKey

KEY = BatchKey(case_id=1, batch_id=2)


def test_they_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = sample_documents(tmp_path / "1"), sample_documents(tmp_path / "2")
    assert [document.path.read_bytes() for document in first] == [
        document.path.read_bytes() for document in second
    ]
    assert len({document.document_id for document in first}) == 40


def test_there_are_all_kinds_two_copies_and_two_that_cannot_be_read(tmp_path: Path) -> None:
    documents = sample_documents(tmp_path)
    kinds = Counter(document.path.suffix for document in documents)
    assert kinds == {".pdf": 12, ".docx": 9, ".eml": 10, ".msg": 2, ".txt": 7}
    ends = Counter(document.ends for document in documents)
    assert (ends[DocumentState.DUPLICATE], ends[DocumentState.FAILED]) == (2, 2)
    contents = Counter(document.path.read_bytes() for document in documents)
    assert sorted(contents.values())[-3:] == [1, 2, 2]


def test_relations_lead_to_documents_that_were_sent_before(tmp_path: Path) -> None:
    sent: set[str] = set()
    for document in sample_documents(tmp_path):
        assert {relation.related_id for relation in document.relations} <= sent
        sent.add(document.document_id)


def test_their_messages_cross_the_wire(tmp_path: Path) -> None:
    for document in sample_documents(tmp_path):
        event = document.event(KEY, f"in/{document.path.name}")
        assert DOCUMENT_EVENT.validate_json(event.model_dump_json(by_alias=True)) == event
