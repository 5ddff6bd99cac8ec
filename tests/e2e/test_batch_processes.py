"""The processes of batches as an operator starts and stops them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from temporalio.client import Client

from stack.embedded import batch_pointers, install_on
from stack.ministack import ministack
from stack.temporal import temporal_server
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.processes import ends_cleanly, running, says, start
from workers.shared.cli.context import CliContext

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
        url = fresh_url()
        # Commands inside this process find Temporal there.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEMPORAL_ADDRESS", temporal.address)
            yield {
                "PATH": os.environ["PATH"],
                "TEMPORAL_ADDRESS": temporal.address,
                "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
                "DATABASE_URL": url,
                "DOCFLOW_SCRATCH": str(folder / "scratch"),
                **batch_pointers(aws, await install_on(aws, temporal.address)),
            }


@pytest.mark.parametrize(
    ("command", "ready"),
    [
        (CASE_EVENTS, b"receiving from docflow_case_events"),
        (LOADER, b"looking for queues"),
    ],
    ids=["case-events", "loader"],
)
async def test_a_signal_ends_a_process_cleanly_within_ten_seconds(
    settings: Mapping[str, str], command: tuple[str, ...], ready: bytes
) -> None:
    async with running(settings, *command) as process:
        await says(process, ready)
        await ends_cleanly(process, signal.SIGTERM)


@pytest.mark.parametrize("command", [CASE_EVENTS, LOADER], ids=["case-events", "loader"])
async def test_a_drained_bridge_ends_by_itself(
    settings: Mapping[str, str], command: tuple[str, ...]
) -> None:
    process = await start(settings, *command, "--drain")
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"0 received" in output) == (0, True), errors.decode()


async def test_a_worker_makes_the_schedule_of_the_sweeper_until_it_is_interrupted(
    settings: Mapping[str, str],
) -> None:
    async with running(settings, *WITH_BRIDGE) as process:
        await says(process, b"working on batches")
        client = await Client.connect(settings["TEMPORAL_ADDRESS"])
        made = await client.get_schedule_handle("batch-sweeper").describe()
        first, second, *_ = made.info.next_action_times
        assert (second - first).total_seconds() == 15 * 60
        await ends_cleanly(process, signal.SIGINT)


@pytest.mark.parametrize("command", [WITH_BRIDGE, CASE_EVENTS], ids=["worker", "case-events"])
async def test_a_case_events_queue_that_is_not_there_is_named_and_waited_for(
    settings: Mapping[str, str], command: tuple[str, ...]
) -> None:
    other = f"{settings['DOCFLOW_CASE_EVENTS_QUEUE_URL']}_of_the_{command[0]}"
    settings = {**settings, "DOCFLOW_CASE_EVENTS_QUEUE_URL": other}
    async with running(settings, *command) as process:
        await says(process, b"not ready: cannot receive from " + other.encode())
        await _setup(settings)
        await ends_cleanly(process, signal.SIGTERM, within=20)


async def test_a_worker_waits_for_the_topic_of_batches(settings: Mapping[str, str]) -> None:
    other = f"{settings['DOCFLOW_BATCH_TOPIC_ARN']}_of_nobody"
    settings = {**settings, "DOCFLOW_BATCH_TOPIC_ARN": other}
    async with running(settings, *WORKER) as process:
        await says(process, b"not ready: topic: there is no topic " + other.encode())
        assert "topic" in await _setup(settings)
        await says(process, b"working on batches")
        await ends_cleanly(process, signal.SIGTERM)


async def _setup(settings: Mapping[str, str]) -> str:
    """Run `docflow setup batches`; what it prints."""
    done = await run_docflow_in_thread("setup", "batches", context=CliContext(settings))
    assert done.exit_code == 0, done.output
    return done.output
