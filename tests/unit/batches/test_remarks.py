"""What people are shown about one document."""

from datetime import UTC, datetime
from typing import Any

import pytest

from activities.batches.records import DocumentView
from workers.batches.labels import remark
from workflows.batches.loads import DocumentState


@pytest.mark.parametrize(
    ("known", "says"),
    [
        ({}, ""),
        ({"notes": "pictures inside: 1"}, "pictures inside: 1"),
        (
            {"duplicate_of": "D-1", "notes": "empty files: a.txt"},
            "the same bytes as D-1; empty files: a.txt",
        ),
        (
            {
                "state": DocumentState.DUPLICATE,
                "duplicate_of": "D-1",
                "original_state": DocumentState.LOADED,
            },
            "the same bytes as D-1",
        ),
        (
            {
                "state": DocumentState.DUPLICATE,
                "duplicate_of": "D-1",
                "original_state": DocumentState.FAILED,
            },
            "the same bytes as D-1, which is failed: neither is read until that one is loaded",
        ),
        (
            {
                "reason": "a.txt is missing",
                "failed_event": "BATCH_ATTACHMENTS",
                "notes": "pictures inside: 1",
                "parent_id": "D-2",
            },
            "BATCH_ATTACHMENTS: a.txt is missing; pictures inside: 1; found in D-2",
        ),
    ],
)
def test_nothing_that_is_known_of_a_document_hides_another_thing(
    known: dict[str, Any], says: str
) -> None:
    nothing = dict.fromkeys(("filename", "reason", "failed_event", "duplicate_of", "notes"))
    view = DocumentView(
        document_id="D-3",
        updated_at=datetime(2026, 5, 3, tzinfo=UTC),
        **{**nothing, "state": DocumentState.LOADED, "parent_id": None, **known},
    )
    assert remark(view) == says
