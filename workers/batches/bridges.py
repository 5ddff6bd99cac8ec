"""The bridges of batches: case events, and queues of batches that no function receives from."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError

from adapters.aws.queues import AwsQueues
from adapters.aws.session import aws, open_aws
from adapters.ports.errors import PortError
from adapters.ports.records import REJECTED_BODY_BYTES, RejectedMessages
from workers.batches.case_events import CaseEventIntake
from workers.batches.documents import DocumentIntake
from workers.batches.settings import BatchSettings
from workers.shared.bridges.consumer import BridgeTotals, QueueUnusable, Retry, Stop
from workers.shared.bridges.sqs import Polling, Received, RedriveTarget, SqsBridge, SqsQueue
from workers.shared.health import Health
from workers.shared.register import Context
from workers.shared.services.bodies import DeadLetter
from workers.shared.services.intake import START_TIMEOUT
from workflows.batches.case_queue import BatchLifecycle
from workflows.batches.names import (
    BatchKey,
    Names,
    Resource,
    ResourceState,
    Timings,
    key_of,
    names_of,
)
from workflows.batches.runs import BatchStatus

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient


logger = logging.getLogger(__name__)

ONE_BY_ONE: Final = Polling(batch=1)
"""A receive of several messages does not keep the order in which they were sent."""


async def receive_case_events(
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


LOOK_SECONDS: Final = 10.0
"""Between two searches for new queues."""
POLLS: Final = 30
"""Receives under way at once, of the connections that a client has."""
SHORT: Final = Polling(in_flight=10, batch=10, refill=10, wait=5)
"""What one receive brings is loaded together. A batch is one of many: none of its waits delays the
others for long."""
_STOP_LOOKING: Final = 1.0


async def receive(
    context: Context, settings: BatchSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive documents of batches without a function; the entry point of the register."""
    async with open_aws(settings.aws) as clients:
        return await run_batch_loader(
            context.client,
            clients.sqs,
            AwsQueues(clients.sqs),
            prefix=settings.plan.prefix,
            stop=stop,
            drain=drain,
            health=context.health,
        )


async def run_batch_loader(
    client: Client,
    sqs: "SQSClient",
    queues: AwsQueues,
    *,
    prefix: str,
    stop: asyncio.Event,
    drain: bool = False,
    look_seconds: float = LOOK_SECONDS,
    polling: Polling = SHORT,
    retry: Retry | None = None,
    health: Health | None = None,
) -> BridgeTotals:
    """Start the loads of the documents of every batch without a function until `stop` is set.

    Args:
        client: Of the namespace in which batches run.
        sqs: Client of SQS.
        queues: Takes messages that can never be loaded.
        prefix: Of the installation's resources.
        stop: Ends the run within 10 s.
        drain: Search once, and end when the queues found have stayed empty for a while.
        look_seconds: Between two searches for new queues.
        polling: How each queue is received from.
        retry: How long to hold what is not accepted, and to pause before trying again.
        health: Shows whether queues can be listed.
    """
    loader = _Loader(client, sqs, queues, prefix, polling, retry or Retry(), health or Health())
    logger.info("looking for queues called %s_doc_loader_*", prefix)
    await loader.run(stop, drain=drain, look_seconds=look_seconds)
    return loader.totals


@dataclass
class _Loader:
    client: Client
    sqs: "SQSClient"
    queues: AwsQueues
    prefix: str
    polling: Polling
    retry: Retry
    health: Health
    totals: BridgeTotals = field(default_factory=BridgeTotals)
    _polled: dict[BatchKey, asyncio.Task[None]] = field(
        default_factory=dict[BatchKey, asyncio.Task[None]]
    )
    _polls: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, POLLS))

    async def run(self, event: asyncio.Event, *, drain: bool, look_seconds: float) -> None:
        stop = Stop(event)
        watch = asyncio.create_task(stop.watch())
        try:
            async with asyncio.TaskGroup() as bridges:
                while not stop.is_set:
                    async with stop.deadline_after_stop(_STOP_LOOKING):
                        for key, url in (await self._found()).items():
                            if key not in self._polled and await self._is_ours(key):
                                poll = bridges.create_task(self._poll(key, url, event, drain))
                                self._polled[key] = poll
                                poll.add_done_callback(partial(self._done, key))
                    if drain:
                        break
                    await stop.pause(look_seconds)
        finally:
            self.health.ready = False
            watch.cancel()

    def _done(self, key: BatchKey, poll: asyncio.Task[None]) -> None:
        del self._polled[key]

    async def _found(self) -> Mapping[BatchKey, str]:
        """Queues of batches, and their URLs."""
        found: dict[BatchKey, str] = {}
        pages = self.sqs.get_paginator("list_queues").paginate(
            QueueNamePrefix=f"{self.prefix}_doc_loader_", PaginationConfig={"PageSize": 1000}
        )
        try:
            with aws("list queues"):
                async for page in pages:
                    for url in page.get("QueueUrls", []):
                        name = url.rsplit("/", 1)[-1]
                        key = key_of(self.prefix, name)
                        if key is not None and name == names_of(self.prefix, key).queue:
                            found[key] = url
        except PortError as error:
            logger.warning("%s; looking again", error)
            self.health.refuse(str(error))
            return {}
        self.health.take()
        return found

    async def _is_ours(self, key: BatchKey) -> bool:
        """Whether documents are to be taken out of a batch's queue here.

        Not before delivery is proven: the canary that proves it would be removed unseen. And not
        where a function receives them, as many at once as the case allows.
        """
        run = self.client.get_workflow_handle_for(BatchLifecycle.run, key.workflow_id)
        try:
            status = await run.query(
                BatchLifecycle.status,
                reject_condition=QueryRejectCondition.NOT_OPEN,
                rpc_timeout=START_TIMEOUT,
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            logger.debug("the queue of %s is left alone: %s", key, error)
            return False
        return is_fed_here(status)

    async def _poll(self, key: BatchKey, url: str, stop: asyncio.Event, drain: bool) -> None:
        queue = SqsQueue(self.sqs, url, self._polls)
        names = names_of(self.prefix, key)
        intake = DocumentIntake(self.client, key, names.queue)
        bridge = SqsBridge(
            queue,
            intake.accept,
            partial(self._write_dead_letter, names),
            accept_of=lambda message: partial(intake.accept, sent_at=message.sent_at),
            ready=intake.ready,
            polling=self.polling,
            retry=self.retry,
            # A queue that is gone is not a problem of the process; what blocks it blocks this too.
            health=Health(whole=self.health.whole),
        )
        logger.info("receiving from %s", queue.name)
        try:
            totals = await bridge.run(stop, drain=drain, ends_with_queue=True)
        except QueueUnusable as error:
            logger.warning("%s; trying again", error)
            return
        self.totals = self.totals.plus(**asdict(totals))

    async def _write_dead_letter(
        self, names: Names, message: Received, verdict: DeadLetter
    ) -> bool:
        reason = f"{verdict.reason}: {verdict.description}"
        await self.queues.dead_letter(names, message.text, reason, message.message_id)
        return True


def is_fed_here(status: BatchStatus) -> bool:
    """Whether the queue of a batch is open, and no function takes from it."""
    states = {row.resource: row.state for row in status.resources}
    return states.get(Resource.DELIVERY) is ResourceState.READY and Resource.FUNCTION not in states
