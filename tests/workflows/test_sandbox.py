"""Workers run workflows without the sandbox unless a setting turns it on."""

import uuid
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from tests.support.clock_reader import ClockReader
from workers.shared import process
from workers.shared.connect import connect


async def _time(client: Client) -> str:
    queue = uuid.uuid4().hex
    async with Worker(
        client,
        task_queue=queue,
        workflows=[ClockReader],
        workflow_failure_exception_types=[Exception],
    ):
        return await client.execute_workflow(ClockReader.run, id=queue, task_queue=queue)


async def test_the_sandbox_refuses_a_clock(server: Any) -> None:
    address = server.client.service_client.config.target_host
    with pytest.raises(WorkflowFailureError) as refused:
        await _time(await connect(address, sandboxed=True))
    assert "Cannot access datetime.datetime.now" in str(refused.value.cause)


async def test_workers_run_without_it_by_default(server: Any) -> None:
    assert await _time(await connect(server.client.service_client.config.target_host))


class _Connecting(Exception):
    """Stands for the rest of a process."""


@pytest.mark.parametrize(("word", "sandboxed"), [("", False), ("true", True), ("false", False)])
async def test_one_setting_turns_it_on(
    word: str, sandboxed: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connecting(**options: Any) -> Client:
        assert options["sandboxed"] is sandboxed
        raise _Connecting

    monkeypatch.setattr(process, "connect", connecting)
    environment = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow",
        "DOCFLOW_BLOB_FOLDER": str(tmp_path),
        "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
        "DOCFLOW_WORKFLOW_SANDBOX": word,
    }
    with pytest.raises(_Connecting):
        await process.run_worker(["imports"], environment)
