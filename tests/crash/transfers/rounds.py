"""One transfer whose worker is killed once, and what it is killed at."""

import asyncio
import random
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError

from tests.crash.transfers import lane_worker
from tests.crash.transfers.lane_worker import Death
from tests.support.forks import FORKS, ended
from workflows.shared import attributes
from workflows.transfers.events import queue_task_queue
from workflows.transfers.file_job import FileJob
from workflows.transfers.runs import FileJobInput, TransferView, file_job_id

TASK_TIMEOUT: Final = timedelta(seconds=2)
LONGEST: Final = 0.3
"""Seconds from the beginning of an activity to the latest kill."""
ANSWER: Final = timedelta(seconds=5)
WITHIN: Final = 15.0
"""Seconds after which it is asked what a transfer waits for."""

Run = WorkflowHandle[Any, TransferView]


def moment(chance: random.Random) -> float:
    """Seconds after the beginning of an activity; early ones are likelier: many are short."""
    return LONGEST * chance.random() ** 3


async def killed_once(
    client: Client, settings: Mapping[str, str], order: FileJobInput, death: Death, log: Path
) -> Run:
    """Start a transfer and have a worker of its queue die.

    Args:
        client: Of Temporal.
        settings: Of the worker.
        order: Of the transfer.
        death: When the worker dies.
        log: Takes what the worker says.
    """
    run = await client.start_workflow(
        FileJob.run,
        order,
        id=file_job_id(order.transfer_id),
        task_queue=queue_task_queue(order.queue),
        task_timeout=TASK_TIMEOUT,
        search_attributes=attributes.at_start("transfers", order.queue, "TMS001"),
    )
    dying = FORKS.Process(target=lane_worker.main, args=(log, settings, order.queue, death))
    dying.start()
    try:
        while dying.exitcode is None:
            await ended(dying, WITHIN)
            await assert_under_way(run)
            # Its worker dies before Temporal learns of the end of that activity.
            running = (await run.describe()).status is WorkflowExecutionStatus.RUNNING
            assert running, f"{run.id}: ended without {death.activity}"
    finally:
        dying.kill()
    assert dying.exitcode == -signal.SIGKILL, f"{order.queue}: {log.read_text()}"
    return run


async def result_of(run: Run) -> TransferView:
    """Its result; a transfer that waits for a person never ends."""
    ending = asyncio.ensure_future(run.result())
    while not (await asyncio.wait([ending], timeout=WITHIN))[0]:
        await assert_under_way(run)
    return ending.result()


async def assert_under_way(run: Run) -> None:
    """It waits for no person, as far as it answers."""
    with suppress(RPCError, WorkflowQueryFailedError):
        view = await run.query(FileJob.status, rpc_timeout=ANSWER)
        assert view.since is None, f"{run.id}: {view.reason}"
