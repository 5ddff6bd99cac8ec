"""What docflow needs of Temporal: search attributes, and fairness between those who share it.

A trial: does Temporal let two fairness keys take turns on one task queue?

Nothing of the server's API says so. Runs of no worker are started, most of them with one key and
some with another one later. Where keys take turns, a run of the second key is handed out soon.
The runs are deleted.
"""

import asyncio
import logging
import math
import shlex
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
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

from workers.shared.services import search_attributes
from workers.shared.services.errors import TemporalUnavailable
from workers.shared.services.requirements import Finding, Requirement, State

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


QUERY_SECONDS: Final = 60.0
"""A query names the search attributes so often while a process works: Temporal allows a namespace
few queries in a second, for all of its processes together."""
_CLOUD_HOSTS: Final = (".tmprl.cloud", ".api.temporal.io")
_FAIRNESS_SETTINGS: Final = "matching.enableFairness and matching.useNewMatcher"


class Connection:
    """The client of a process: connected when it is first asked for, and until that succeeds.

    Args:
        connect: Connects.
    """

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._client: Client | None = None

    async def client(self) -> Client:
        """The client.

        Raises:
            SettingsError: A setting of Temporal cannot be used.
            TemporalUnreachable: There is no answer.
        """
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client


def is_cloud(client: Client) -> bool:
    """Whether a client speaks to Temporal Cloud, whose namespaces are changed by other tools."""
    config = client.service_client.config
    host = config.target_host.rsplit(":", 1)[0].lower()
    return host.endswith(_CLOUD_HOSTS) or config.api_key is not None


def search_attributes_of(connection: Connection) -> Requirement:
    """The search attributes of docflow in the namespace."""

    async def check() -> Finding:
        client = await connection.client()
        other = await search_attributes.of_another_type(client)
        if other:
            wanted = search_attributes.types()
            problem = ", ".join(
                f"{name} is {type}, not {wanted[name]}" for name, type in other.items()
            )
            cure = "remove those, or use another namespace (TEMPORAL_NAMESPACE)"
            return Finding(State.DIFFERS, f"{_place(client)}: {problem}", cure)
        names = await search_attributes.missing(client)
        if names:
            problem = f"{', '.join(names)} in {_place(client)}"
            return Finding(State.MISSING, problem, _command(client, names))
        return Finding(State.OK, _place(client))

    async def make() -> Finding:
        client = await connection.client()
        names = await search_attributes.missing(client)
        command, place = _command(client, names), _place(client)
        if is_cloud(client):
            return Finding(State.MISSING, f"{', '.join(names)} in {place}", command)
        try:
            await search_attributes.make(client, names)
        except search_attributes.NotMade as error:
            problem = f"{', '.join(names)} in {place} cannot be made: {error}"
            return Finding(State.MISSING, problem, command)
        return Finding(State.MADE, f"{', '.join(names)} in {place}")

    seen = -math.inf

    async def watch() -> Finding:
        nonlocal seen
        client = await connection.client()
        await search_attributes.require_answer(client)
        time = asyncio.get_running_loop().time
        if time() - seen > QUERY_SECONDS:
            if not await search_attributes.usable(client):
                seen = -math.inf
                return await check()
            seen = time()
        return Finding(State.OK, _place(client))

    return Requirement(
        "search attributes",
        check,
        consequence="no run can be started without them",
        cure="run `docflow setup`",
        make=make,
        watch=watch,
    )


def fairness_of(connection: Connection) -> Requirement:
    """Whether the server lets those who share a task queue take turns."""

    async def check() -> Finding:
        client = await connection.client()
        if await is_fair(client):
            return Finding(State.OK, "two keys took turns")
        if is_cloud(client):
            cure = "switch it on in the settings of the namespace"
        else:
            cure = f"set {_FAIRNESS_SETTINGS} in the dynamic configuration of the server"
        return Finding(State.MISSING, f"two keys do not take turns in {_place(client)}", cure)

    return Requirement(
        "fairness",
        check,
        consequence="a sender of thousands of documents at once delays all others",
        cure=f"see {_FAIRNESS_SETTINGS}",
        needed=False,
    )


def _command(client: Client, names: Sequence[str]) -> str:
    types = search_attributes.types()
    namespace = shlex.quote(client.namespace)
    if is_cloud(client):
        pairs = " ".join(f"--search-attribute {name}={types[name]}" for name in names)
        return f"run `tcld namespace search-attributes add --namespace {namespace} {pairs}`"
    pairs = " ".join(f"--name {name} --type {types[name]}" for name in names)
    command = f"temporal operator search-attribute create --namespace {namespace} {pairs}"
    return f"run `docflow setup`, or `{command}`"


def _place(client: Client) -> str:
    return f"namespace {client.namespace} at {client.service_client.config.target_host}"
