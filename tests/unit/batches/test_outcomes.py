"""How the end of a batch is shown."""

from datetime import UTC, datetime

import pytest

from activities.batches.records import BatchView
from workers.batches.labels import shown_outcome
from workflows.batches.names import BatchKey, LoaderStatus, Phase
from workflows.batches.runs import BatchStatus, DocumentCounts

KEY = BatchKey(case_id=7, batch_id=1)


def view(status: LoaderStatus, **more: int) -> BatchView:
    loaded, failed = more.get("loaded", 3), more.get("failed", 0)
    counts, now = DocumentCounts(loaded=loaded, failed=failed), datetime.now(UTC)
    dead = more.get("dead_letters", 0)
    return BatchView(key=KEY, status=status, updated_at=now, documents=counts, dead_letters=dead)


def run(outcome: str | None) -> BatchStatus:
    return BatchStatus(key=KEY, phase=Phase.DONE, outcome=outcome)


def test_documents_that_a_deleted_queue_held_make_it_partial_though_no_row_counts_them() -> None:
    complete = view(LoaderStatus.COMPLETE)
    assert shown_outcome(complete, run("PARTIAL")) == "PARTIAL"
    assert shown_outcome(complete, run("SUCCESS")) == "SUCCESS"


@pytest.mark.parametrize("report", [None, run(None), run("SKIPPED")])
def test_without_a_run_that_loaded_it_the_row_says_how_it_ended(report: BatchStatus | None) -> None:
    assert shown_outcome(view(LoaderStatus.COMPLETE), report) == "SUCCESS"
    assert shown_outcome(view(LoaderStatus.COMPLETE, loaded=0), report) == "EMPTY"
    assert shown_outcome(view(LoaderStatus.COMPLETE, failed=1), report) == "PARTIAL"
    assert shown_outcome(view(LoaderStatus.COMPLETE, dead_letters=1), report) == "PARTIAL"
    assert shown_outcome(view(LoaderStatus.CANCELLED), report) == "CANCELLED"
    assert shown_outcome(view(LoaderStatus.PROCESSING), report) is None
