"""`docflow setup --schedules`, on a real server."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from stack.temporal import temporal_binary
from tests.support.cli import run_docflow_in_thread
from workers.shared.plugin import docflow_plugin
from workflows.shared import attributes

IDS = [
    "imports-run-sweeper",
    "imports-retention",
    "spreadsheet-retention",
    "spreadsheets-run-sweeper",
    "batch-sweeper",
    "batches-run-sweeper",
    "batches-retention",
    "job-retention",
    "jobs-run-sweeper",
    "transfer-keys",
    "transfer-copies",
    "transfers-run-sweeper",
    "transfers-retention",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address() -> AsyncIterator[str]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with environment:
        yield environment.client.service_client.config.target_host


async def _docflow(*arguments: str) -> str:
    done = await run_docflow_in_thread("setup", "--schedules", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


async def test_schedules_are_made_as_declared(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    made = await _docflow()
    assert made == "".join(f"{id}: created\n" for id in IDS)
    again = json.loads(await _docflow("--json"))
    assert again == dict.fromkeys(IDS, "as declared")


async def test_a_temporal_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    done = await run_docflow_in_thread("setup", "--schedules")
    assert done.exit_code == 1
    assert "TEMPORAL_ADDRESS" in done.output and len(done.output.splitlines()) == 1
