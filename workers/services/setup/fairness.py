"""A trial: does Temporal let two fairness keys take turns on one task queue?

Nothing of the server's API says so. Runs of no worker are started, most of them with one key and
some with another one later. Where keys take turns, a run of the second key is handed out soon.
The runs are deleted.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Iterable
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    DescribeTaskQueueRequest,
    PollWorkflowTaskQueueRequest,
)
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.service import RPCError

from workers.services.errors import TemporalUnavailable

FIRST: Final = 60
"""Runs of the first key. A task queue has four partitions, each in an order of its own: none of
them holds fewer than a dozen of these, with near certainty."""
SECOND: Final = 24
"""Runs of the second key: every partition holds some, with near certainty."""
SOON: Final = 5
"""Among so many tasks that are handed out first, the second key must be seen."""
_TIMEOUT: Final = timedelta(seconds=10)
_LIFETIME: Final = timedelta(minutes=5)
"""What a trial that is killed leaves behind ends by itself."""
_BACKLOG_SECONDS: Final = 5.0
_BACKLOG_POLL: Final = 0.1

logger = logging.getLogger(__name__)


async def is_fair(client: Client) -> bool:
    """Try it.

    Raises:
        TemporalUnavailable: Temporal does not answer, or does not let us.
    """
    queue = f"docflow-setup-{uuid.uuid4().hex}"
    first = [f"{queue}/first/{at}" for at in range(FIRST)]
    second = [f"{queue}/second/{at}" for at in range(SECOND)]
    try:
        await _start(client, queue, "first", first)
        await _backlog(client, queue)
        await _start(client, queue, "second", second)
        return await _second_comes_soon(client, queue)
    except RPCError as error:
        raise TemporalUnavailable(f"fairness cannot be tried: {error.message}") from error
    finally:
        await _each(_removed(client, id) for id in (*first, *second))


async def _start(client: Client, queue: str, key: str, ids: Iterable[str]) -> None:
    await _each(
        client.start_workflow(
            "DocflowSetup",
            id=id,
            task_queue=queue,
            priority=Priority(fairness_key=key),
            execution_timeout=_LIFETIME,
            rpc_timeout=_TIMEOUT,
        )
        for id in ids
    )


async def _each(asked: Iterable[Awaitable[object]]) -> None:
    """Wait for all, also when one fails."""
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer


async def _backlog(client: Client, queue: str) -> None:
    """Wait until the runs of the first key stand in the queue, or for a while."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        report_stats=True,
    )
    until = asyncio.get_running_loop().time() + _BACKLOG_SECONDS
    while asyncio.get_running_loop().time() < until:
        found = await client.workflow_service.describe_task_queue(request, timeout=_TIMEOUT)
        if found.stats.approximate_backlog_count >= FIRST:
            return
        await asyncio.sleep(_BACKLOG_POLL)


async def _second_comes_soon(client: Client, queue: str) -> bool:
    request = PollWorkflowTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), identity="docflow setup"
    )
    for _ in range(SOON):
        task = await client.workflow_service.poll_workflow_task_queue(request, timeout=_TIMEOUT)
        if "/second/" in task.workflow_execution.workflow_id:
            return True
    return False


async def _removed(client: Client, id: str) -> None:
    """Delete a run, which ends it; what cannot be deleted ends by itself."""
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=id)
    )
    try:
        await client.workflow_service.delete_workflow_execution(request, timeout=_TIMEOUT)
    except RPCError as error:
        logger.debug("%s is not deleted: %s", id, error)
