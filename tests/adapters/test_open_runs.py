"""What Temporal says about runs, asked of a real server."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
import temporalio.client
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.errors import Denied, PortError, Throttled, Unavailable
from adapters.temporal import AT_ONCE, TemporalOpenRuns
from tests.support.waiting import eventually
from workflows.batches.names import LARGEST_ID, BatchKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

Handle = WorkflowHandle[Any, Any]
KEY = BatchKey(case_id=7, batch_id=3)


@pytest.fixture
def runs(client: Client) -> TemporalOpenRuns:
    return TemporalOpenRuns(client)


async def start(client: Client, *ids: str) -> Sequence[Handle]:
    """Runs without a worker: they stay open."""
    queue = f"nobody-{uuid.uuid4()}"
    return [await client.start_workflow("Nothing", id=id, task_queue=queue) for id in ids]


def loads_of(key: BatchKey, count: int) -> list[str]:
    return [f"{key.load_prefix}D-{number}" for number in range(count)]


async def is_asked_to_stop(handle: Handle) -> bool:
    return (await handle.describe()).raw_description.workflow_extended_info.cancel_requested


async def test_a_run_is_open_until_it_ends_and_again_when_it_is_started_again(
    client: Client, runs: TemporalOpenRuns
) -> None:
    assert not await runs.is_open("batch/1/1")
    for _ in range(2):
        (handle,) = await start(client, "batch/1/1")
        assert await runs.is_open("batch/1/1")
        await handle.terminate()
        assert not await runs.is_open("batch/1/1")


async def test_open_loads_of_the_batch_are_counted_and_those_of_no_other(
    client: Client, runs: TemporalOpenRuns
) -> None:
    largest = BatchKey(case_id=LARGEST_ID, batch_id=LARGEST_ID)
    ended, *_ = await start(client, *loads_of(KEY, 3), f"{KEY.load_prefix}D-1/relations")
    await start(client, KEY.workflow_id, "load/7/30/D-1", "load/77/3/D-1", "reload/7/3/D-1")
    await start(client, f"{KEY.group_prefix}one", "load-group/7/30/two", "load-group/77/3/three")
    (await start(client, f'{largest.load_prefix}"%_ OR'),)
    await ended.terminate()

    async def counted() -> bool:
        return (await runs.open_loads(KEY), await runs.open_loads(largest)) == (4, 1)

    await eventually(counted)
    assert await runs.open_loads(BatchKey(case_id=3, batch_id=7)) == 0


async def test_every_open_load_is_asked_to_stop_and_no_other_run(
    client: Client, runs: TemporalOpenRuns
) -> None:
    key = BatchKey(case_id=8, batch_id=1)
    groups = [f"{key.group_prefix}{number}" for number in range(2)]
    ended, *loads = await start(client, *loads_of(key, 2 * AT_ONCE), *groups)
    others = await start(client, key.workflow_id, "load/8/10/D-1")
    await ended.terminate()

    async def seen() -> bool:
        # By name: the list may show the one that has ended, and not yet another one.
        found = {run.id async for run in client.list_workflows("CloseTime IS NULL")}
        prefixes = (key.load_prefix, key.group_prefix)
        return {id for id in found if id.startswith(prefixes)} == {handle.id for handle in loads}

    await eventually(seen)
    assert await runs.cancel_loads(key) == len(loads)
    assert all([await is_asked_to_stop(handle) for handle in loads])
    assert not any([await is_asked_to_stop(handle) for handle in others])


class Failing(temporalio.client.Interceptor):
    """A Temporal that answers every question with an error, except listing where it is asked to."""

    def __init__(self, status: RPCStatusCode, *, lists: bool = False) -> None:
        self.error = RPCError("said so", status, b"")
        self.lists = lists

    def intercept_client(
        self, next: temporalio.client.OutboundInterceptor
    ) -> temporalio.client.OutboundInterceptor:
        return _FailingCalls(next, self)


class _FailingCalls(temporalio.client.OutboundInterceptor):
    def __init__(self, next: temporalio.client.OutboundInterceptor, failing: Failing) -> None:
        super().__init__(next)
        self._failing = failing

    async def describe_workflow(self, input: Any) -> Any:
        raise self._failing.error

    async def count_workflows(self, input: Any) -> Any:
        raise self._failing.error

    async def cancel_workflow(self, input: Any) -> None:
        raise self._failing.error

    def list_workflows(self, input: Any) -> Any:
        if self._failing.lists:
            return super().list_workflows(input)
        raise self._failing.error


def failing(client: Client, failure: Failing) -> TemporalOpenRuns:
    return TemporalOpenRuns(Client(**{**client.config(), "interceptors": [failure]}))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (RPCStatusCode.UNAVAILABLE, Unavailable),
        (RPCStatusCode.DEADLINE_EXCEEDED, Unavailable),
        (RPCStatusCode.CANCELLED, Unavailable),
        (RPCStatusCode.RESOURCE_EXHAUSTED, Throttled),
        (RPCStatusCode.PERMISSION_DENIED, Denied),
        (RPCStatusCode.INVALID_ARGUMENT, Denied),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda runs: runs.is_open("batch/1/1"),
        lambda runs: runs.open_loads(KEY),
        lambda runs: runs.cancel_loads(KEY),
    ],
    ids=["is_open", "open_loads", "cancel_loads"],
)
async def test_an_error_of_temporal_is_an_error_of_the_port(
    client: Client,
    ask: Callable[[TemporalOpenRuns], Awaitable[Any]],
    status: RPCStatusCode,
    expected: type[PortError],
) -> None:
    with pytest.raises(expected, match="said so") as caught:
        await ask(failing(client, Failing(status)))
    assert type(caught.value) is expected


async def listed(client: Client, runs: TemporalOpenRuns, key: BatchKey) -> None:
    await start(client, *loads_of(key, 2))

    async def seen() -> bool:
        return await runs.open_loads(key) == 2

    await eventually(seen)


async def test_a_load_that_ends_before_it_is_asked_is_no_failure(
    client: Client, runs: TemporalOpenRuns
) -> None:
    key = BatchKey(case_id=9, batch_id=1)
    await listed(client, runs, key)
    ended = failing(client, Failing(RPCStatusCode.NOT_FOUND, lists=True))
    assert await ended.cancel_loads(key) == 0


async def test_a_load_that_cannot_be_asked_is_a_failure(
    client: Client, runs: TemporalOpenRuns
) -> None:
    key = BatchKey(case_id=9, batch_id=2)
    await listed(client, runs, key)
    away = failing(client, Failing(RPCStatusCode.UNAVAILABLE, lists=True))
    with pytest.raises(Unavailable):
        await away.cancel_loads(key)
