"""The bridge of the case-events queue: events -> the runs of their cases."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from temporalio.client import Client

from adapters.aws.session import open_aws
from adapters.ports import REJECTED_BODY_BYTES, RejectedMessages
from contracts.batches import Timings
from workers.bridges.retry import Retry
from workers.bridges.sqs import Polling, SqsBridge
from workers.bridges.sqs_queue import RedriveTarget, SqsQueue
from workers.bridges.totals import BridgeTotals
from workers.health import Health
from workers.pipelines.base import Context
from workers.services.batches.case_events import CaseEventIntake
from workers.settings.batches import BatchSettings

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient

logger = logging.getLogger(__name__)

ONE_BY_ONE: Final = Polling(batch=1)
"""A receive of several messages does not keep the order in which they were sent."""


async def receive(
    context: Context, settings: BatchSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive events of batches; the entry point of the register."""
    async with open_aws(settings.aws) as clients:
        return await run_case_event_bridge(
            context.client,
            clients.sqs,
            context.resources.rejected,
            queue_url=settings.case_events_queue(),
            stop=stop,
            drain=drain,
            timings=settings.timings,
            health=context.health,
        )


async def run_case_event_bridge(
    client: Client,
    sqs: "SQSClient",
    rejected: RejectedMessages,
    *,
    queue_url: str,
    stop: asyncio.Event,
    drain: bool = False,
    timings: Timings | None = None,
    polling: Polling = ONE_BY_ONE,
    retry: Retry | None = None,
    health: Health | None = None,
) -> BridgeTotals:
    """Have the events of the case-events queue taken by their cases until `stop` is set.

    Events of one case are accepted in the order in which they were received, one by one; a
    case that cannot accept its events delays no other. What is not an event goes to the queue's
    dead-letter queue with the attributes `Reason` and `Description`, and is recorded.

    Args:
        client: Of the namespace in which batches run.
        sqs: Client of SQS.
        rejected: Keeps messages that can never be accepted.
        queue_url: Of the case-events queue; standard or FIFO with the case as message group.
        stop: Ends the run within 10 s.
        drain: End when the queue has stayed empty for a while.
        timings: Of every batch that brings none of its own.
        polling: How the queue is received from.
        retry: How long to hold what is not accepted, and to pause before trying again.
        health: Shows whether events are received and accepted.

    Raises:
        QueueUnusable: The queue does not exist, or does not let us in.
    """
    queue = SqsQueue(sqs, queue_url)
    intake = CaseEventIntake(client, rejected, queue=queue.name, timings=timings)
    bridge = SqsBridge(
        queue,
        intake.accept,
        RedriveTarget(queue, REJECTED_BODY_BYTES).put,
        ordering_key=intake.ordering_key,
        ready=intake.ready,
        polling=polling,
        retry=retry or Retry(),
        health=health or Health(),
    )
    logger.info("receiving from %s", queue.name)
    return await bridge.run(stop, drain=drain)
