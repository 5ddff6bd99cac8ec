"""The processes of batches as an operator starts and stops them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from temporalio.client import Client

from adapters.database import upgrade
from stack.embedded import batch_pointers, install_on
from stack.ministack import ministack
from stack.temporal import temporal_server
from tests.support.processes import says, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKER = ("worker", "batches")
WITH_BRIDGE = (*WORKER, "--with-bridge")
CASE_EVENTS = ("bridge", "case-events")
LOADER = ("bridge", "batch-loader")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def settings(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("processes")
    async with (
        temporal_server(folder, ui=False, in_memory=True) as temporal,
        ministack(folder) as aws,
    ):
        url = f"sqlite:///{folder / 'docflow.db'}"
        await upgrade(url)
        yield {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": temporal.address,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DATABASE_URL": url,
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            **batch_pointers(aws, await install_on(aws, temporal.address)),
        }


@pytest.mark.parametrize(
    ("command", "number", "ready"),
    [
        (WITH_BRIDGE, signal.SIGTERM, b"working on batches"),
        (WITH_BRIDGE, signal.SIGINT, b"working on batches"),
        (CASE_EVENTS, signal.SIGTERM, b"receiving from docflow_case_events"),
        (LOADER, signal.SIGTERM, b"looking for queues"),
    ],
    ids=["worker", "interrupted worker", "case-events", "loader"],
)
async def test_a_signal_ends_a_process_cleanly_within_ten_seconds(
    settings: Mapping[str, str], command: tuple[str, ...], number: signal.Signals, ready: bytes
) -> None:
    process = await start(settings, *command)
    await says(process, ready)
    process.send_signal(number)
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors


@pytest.mark.parametrize("command", [CASE_EVENTS, LOADER], ids=["case-events", "loader"])
async def test_a_drained_bridge_ends_by_itself(
    settings: Mapping[str, str], command: tuple[str, ...]
) -> None:
    process = await start(settings, *command, "--drain")
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"0 received" in output) == (0, True), errors.decode()


async def test_a_worker_makes_the_schedule_of_the_sweeper(settings: Mapping[str, str]) -> None:
    process = await start(settings, *WORKER)
    try:
        await says(process, b"working on batches")
        client = await Client.connect(settings["TEMPORAL_ADDRESS"])
        made = await client.get_schedule_handle("batch-sweeper").describe()
        first, second, *_ = made.info.next_action_times
        assert (second - first).total_seconds() == 15 * 60
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("command", [WITH_BRIDGE, CASE_EVENTS], ids=["worker", "case-events"])
async def test_a_case_events_queue_that_is_not_there_is_named_and_waited_for(
    settings: Mapping[str, str], command: tuple[str, ...]
) -> None:
    other = f"{settings['DOCFLOW_CASE_EVENTS_QUEUE_URL']}_of_the_{command[0]}"
    settings = {**settings, "DOCFLOW_CASE_EVENTS_QUEUE_URL": other}
    process = await start(settings, *command)
    await says(process, b"not ready: cannot receive from " + other.encode())
    made, said = await _docflow(
        {**settings, "DOCFLOW_CASE_EVENTS_QUEUE_URL": other}, "setup", "batches"
    )
    assert made == 0, said
    process.terminate()
    _, errors = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()


async def test_a_worker_waits_for_the_topic_of_batches(settings: Mapping[str, str]) -> None:
    other = f"{settings['DOCFLOW_BATCH_TOPIC_ARN']}_of_nobody"
    settings = {**settings, "DOCFLOW_BATCH_TOPIC_ARN": other}
    process = await start(settings, *WORKER)
    try:
        await says(process, b"not ready: topic: there is no topic " + other.encode())
        code, said = await _docflow(settings, "setup", "batches")
        assert (code, "topic" in said) == (0, True), said
        await says(process, b"working on batches")
    finally:
        process.terminate()
        await process.communicate()


async def _docflow(settings: Mapping[str, str], *arguments: str) -> tuple[int | None, str]:
    process = await start(settings, *arguments)
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode, (output + errors).decode()
