"""What `AwsFunctions` promises, in memory and on everything that speaks as Lambda does."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from adapters.ports.errors import Denied
from stack.loader_function import TIMEOUT_SECONDS
from tests.support.aws import clouds
from tests.support.batches.functions import FunctionBatch, FunctionSetup, open_function_setup
from workflows.batches.names import Resource

pytestmark = pytest.mark.asyncio(loop_scope="module")

BUILT = sorted([Resource.FUNCTION, Resource.MAPPING, Resource.CONCURRENCY])


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def setup(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[FunctionSetup]:
    async with open_function_setup(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def batch(setup: FunctionSetup) -> AsyncIterator[FunctionBatch]:
    async with setup.batch() as batch:
        yield batch


async def test_the_source_determines_what_queue_and_role_must_fit(setup: FunctionSetup) -> None:
    source = await setup.functions.source(setup.plan)
    assert source.timeout == TIMEOUT_SECONDS
    assert source.role and "/" not in source.role and ":" not in source.role


async def test_everything_made_twice_is_there_once(
    setup: FunctionSetup, batch: FunctionBatch
) -> None:
    assert not await setup.functions.exists(batch.names.function)
    for _ in range(2):
        await batch.build()
    assert await setup.functions.exists(batch.names.function)
    assert await batch.kinds() == BUILT


async def test_found_resources_carry_their_owner_and_age(batch: FunctionBatch) -> None:
    before = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=2)
    await batch.build()
    found = {resource.resource: resource for resource in await batch.found()}
    function = found[Resource.FUNCTION]
    assert (function.name, function.owner) == (batch.names.function, batch.owner)
    assert function.made_at is not None
    assert before <= function.made_at <= datetime.now(UTC) + timedelta(seconds=2)
    # A mapping inherits no tags, and a reservation has none.
    assert {found[kind].owner for kind in (Resource.MAPPING, Resource.CONCURRENCY)} == {None}


async def test_a_function_is_fed_as_long_as_its_mapping_is_there(
    setup: FunctionSetup, batch: FunctionBatch
) -> None:
    assert not await setup.functions.is_fed(batch.names)
    await batch.build()
    assert await setup.functions.is_fed(batch.names)
    await batch.detach()
    assert not await setup.functions.is_fed(batch.names)


async def test_everything_removed_twice_is_gone(setup: FunctionSetup, batch: FunctionBatch) -> None:
    await batch.build()
    assert [await batch.detach(), await batch.detach()] == [True, False]
    assert await batch.kinds() == sorted([Resource.FUNCTION, Resource.CONCURRENCY])
    assert [await batch.delete(), await batch.delete()] == [True, False]
    assert not await setup.functions.exists(batch.names.function)
    assert await batch.found() == []


async def test_only_the_owner_can_delete_a_function(batch: FunctionBatch) -> None:
    await batch.clone()
    with pytest.raises(Denied):
        await batch.setup.functions.delete(batch.names.function, "batch/7/30")
    assert await batch.kinds() == [Resource.FUNCTION]


async def test_a_batch_leaves_others_alone(setup: FunctionSetup, batch: FunctionBatch) -> None:
    await batch.build()
    async with setup.batch() as other:
        await other.build()
        await other.remove()
        assert await other.found() == []
    assert await batch.kinds() == BUILT


async def test_nothing_of_another_installation_is_found(
    setup: FunctionSetup, batch: FunctionBatch
) -> None:
    await batch.build()
    assert [found async for found in setup.functions.found("docflow")] == []


async def test_a_function_of_another_run_is_left_alone(
    batch: FunctionBatch,
) -> None:
    await batch.clone()
    functions = batch.setup.functions
    with pytest.raises(Denied, match=batch.names.function):
        await functions.clone(batch.names, batch.plan, batch.key, "batch/1/1")
    [function] = await batch.found()
    assert function.owner == batch.owner


async def test_nothing_is_fed_or_reserved_without_a_function(
    setup: FunctionSetup, batch: FunctionBatch
) -> None:
    with pytest.raises(Denied):
        await setup.functions.attach(batch.names, batch.plan)
    with pytest.raises(Denied):
        await setup.functions.reserve(batch.names, batch.plan)
    assert await batch.found() == []
