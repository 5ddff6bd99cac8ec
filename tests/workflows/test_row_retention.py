"""`docflow db clean` has workers remove what is no longer kept, and says what they removed."""

import json
from typing import Any

import pytest

from activities.shared.records import RowRemoval
from tests.support.cli import run_docflow_in_thread
from tests.support.scripted import scripted
from workers import catalogue
from workflows.imports.runs import TASK_QUEUE
from workflows.shared.record_workflows import RowRetention
from workflows.shared.records import RemovedRows, RowRetentionInput, RowRetentionResult

KINDS = (
    RemovedRows(what="status rows of imports", days=365, rows=12_345, blobs=6, more=True),
    RemovedRows(what="documents of batches"),
)


async def test_clean_removes_what_is_due(
    server: Any, run_worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = server.client.service_client.config.target_host
    monkeypatch.setenv("TEMPORAL_ADDRESS", target)
    for pipeline in catalogue.PIPELINES:
        if pipeline.enabled_by is not None:
            monkeypatch.delenv(pipeline.enabled_by, raising=False)
    script = scripted(RowRemoval, results={"remove_old": RowRetentionResult(kinds=KINDS)})
    async with run_worker(TASK_QUEUE, [RowRetention], script.activities()):
        said = await run_docflow_in_thread("db", "clean", "--dry-run")
        done = await run_docflow_in_thread("db", "clean", "--json")
    assert (said.exit_code, done.exit_code) == (0, 0), said.output + done.output
    assert "12,345 or more" in said.stdout and "365 days" in said.stdout
    assert "ever" in said.stdout and "would be removed" in said.stdout
    assert json.loads(done.stdout) == [kind.model_dump() for kind in KINDS]
    assert script.received["remove_old"] == [
        RowRetentionInput(pipeline="imports", dry_run=is_dry) for is_dry in (True, False)
    ]
