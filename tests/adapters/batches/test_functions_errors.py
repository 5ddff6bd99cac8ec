"""Every error of AWS at every single call of functions and grants: told apart, and survived."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from adapters.aws.session import AwsClients
from adapters.ports.errors import Denied, NoRoom, NotYet, PortError, Throttled, Unavailable
from tests.support.aws_answers import Answers, answers
from tests.support.batches.functions import FunctionBatch, FunctionSetup, open_function_setup, ready
from tests.support.chaos import some_of
from workflows.batches.names import Resource

pytestmark = pytest.mark.asyncio(loop_scope="module")

Call = Callable[[FunctionBatch], Awaitable[Any]]

LAMBDA_CODES: list[tuple[str, int, type[PortError]]] = [
    ("TooManyRequestsException", 429, Throttled),
    ("ThrottlingException", 400, Throttled),
    ("RequestThrottled", 400, Throttled),
    ("ServiceException", 500, Unavailable),
    ("ResourceInUseException", 400, NotYet),
    ("AccessDeniedException", 403, Denied),
    ("InvalidParameterValueException", 400, Denied),
]
FULL: dict[tuple[str, str], type[PortError]] = {
    ("reserve", "InvalidParameterValueException"): NoRoom,
}
"""Answers that mean, to one step alone, that the account is full."""
IAM_CODES: list[tuple[str, int, type[PortError]]] = [
    ("Throttling", 400, Throttled),
    ("ServiceFailure", 500, Unavailable),
    ("ConcurrentModification", 409, NotYet),
    ("AccessDenied", 403, Denied),
    ("LimitExceeded", 409, Denied),
    ("MalformedPolicyDocument", 400, Denied),
]
LOST: list[Exception] = [
    EndpointConnectionError(endpoint_url="http://lambda"),
    ReadTimeoutError(endpoint_url="http://lambda"),
]


async def nothing(_: FunctionBatch) -> None:
    """The batch needs no more than its queue."""


async def cloned(batch: FunctionBatch) -> None:
    await batch.clone()


async def built(batch: FunctionBatch) -> None:
    await batch.build()


async def granted(batch: FunctionBatch) -> None:
    await batch.grant()


async def source(batch: FunctionBatch) -> None:
    await batch.setup.functions.source(batch.plan)


async def exists(batch: FunctionBatch) -> None:
    await batch.setup.functions.exists(batch.names.function)


async def clone(batch: FunctionBatch) -> None:
    await batch.setup.functions.clone(batch.names, batch.plan, batch.key, batch.owner)


async def attach(batch: FunctionBatch) -> None:
    await batch.setup.functions.attach(batch.names, batch.plan)


async def detach(batch: FunctionBatch) -> None:
    await batch.setup.functions.detach(batch.names)


async def revoke(batch: FunctionBatch) -> None:
    role = (await batch.setup.functions.source(batch.plan)).role
    await batch.setup.grants.revoke(batch.names, role)


async def parts(batch: FunctionBatch) -> list[Resource]:
    return await batch.kinds()


async def policies(batch: FunctionBatch) -> list[Resource]:
    role = (await batch.setup.functions.source(batch.plan)).role
    found = batch.setup.grants.found(batch.plan.prefix, role)
    return [each.resource async for each in found if each.key == batch.key]


@dataclass(frozen=True)
class Step:
    """A call of a port, what it needs, and what there is when it is done."""

    call: Call
    needs: Call = nothing
    leaves: Sequence[Resource] = ()
    left: Callable[[FunctionBatch], Awaitable[list[Resource]]] = parts


FUNCTION, MAPPING, CONCURRENCY = Resource.FUNCTION, Resource.MAPPING, Resource.CONCURRENCY
STEPS = {
    "source": Step(source),
    "exists": Step(exists),
    "clone": Step(clone, leaves=[FUNCTION]),
    "attach": Step(attach, cloned, [FUNCTION, MAPPING]),
    "reserve": Step(FunctionBatch.reserve, cloned, [FUNCTION, CONCURRENCY]),
    "detach": Step(detach, built, [FUNCTION, CONCURRENCY]),
    "delete": Step(FunctionBatch.delete, cloned),
    "found": Step(FunctionBatch.found, built, [FUNCTION, MAPPING, CONCURRENCY]),
}
GRANTS = {
    "grant": Step(FunctionBatch.grant, leaves=[Resource.PERMISSIONS], left=policies),
    "revoke": Step(revoke, granted, left=policies),
    "found": Step(policies, granted, [Resource.PERMISSIONS], policies),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setup(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FunctionSetup]:
    async with open_function_setup("moto", tmp_path_factory.mktemp("moto")) as opened:
        yield opened


@pytest.fixture
def clients(setup: FunctionSetup) -> AwsClients:
    assert setup.cloud is not None
    return setup.cloud.clients


_operations: dict[tuple[Any, Call], Sequence[str]] = {}
"""The calls that a step makes with a client; they are found once."""


async def operations_of(setup: FunctionSetup, client: Any, step: Step) -> Sequence[str]:
    """The calls that a step makes, found by letting it work."""
    known = (client, step.call)
    if known not in _operations:
        async with setup.batch() as batch:
            await step.needs(batch)
            with answers(client) as watching:
                await step.call(batch)
        assert watching.calls
        _operations[known] = watching.calls
    return _operations[known]


async def check(
    setup: FunctionSetup,
    client: Any,
    step: Step,
    spoil: Callable[[Answers, str], None],
    kind: type,
    tried: Callable[[int], range] = range,
) -> None:
    """Let calls of a step fail once: the step says so, and does its work when called again.

    Args:
        tried: Which of so many calls; all by default.
    """
    operations = await operations_of(setup, client, step)
    for failing in tried(len(operations)):
        operation = operations[failing]
        async with setup.batch() as batch:
            await step.needs(batch)
            with answers(client) as standing:
                standing.let_through(operation, operations[:failing].count(operation))
                spoil(standing, operation)
                with pytest.raises(kind) as reported:
                    await step.call(batch)
                assert type(reported.value) is kind
                await ready(lambda batch=batch: step.call(batch))
            assert await step.left(batch) == sorted(step.leaves)


@pytest.mark.chaos
@pytest.mark.parametrize(("code", "status", "kind"), LAMBDA_CODES, ids=str)
@pytest.mark.parametrize("step", STEPS)
async def test_functions_survive_an_error_at_every_call(
    setup: FunctionSetup,
    clients: AwsClients,
    step: str,
    code: str,
    status: int,
    kind: type[PortError],
) -> None:
    await check(
        setup,
        clients.lambda_,
        STEPS[step],
        lambda standing, operation: standing.refuse(operation, code, status),
        FULL.get((step, code), kind),
        partial(some_of, turn=[each for each, *_ in LAMBDA_CODES].index(code), of=4),
    )


@pytest.mark.chaos
@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", STEPS)
async def test_functions_survive_silence_at_every_call(
    setup: FunctionSetup, clients: AwsClients, step: str, error: Exception
) -> None:
    await check(
        setup,
        clients.lambda_,
        STEPS[step],
        lambda standing, operation: standing.lose(operation, error),
        Unavailable,
        partial(some_of, turn=LOST.index(error)),
    )


@pytest.mark.chaos
@pytest.mark.parametrize(("code", "status", "kind"), IAM_CODES, ids=str)
@pytest.mark.parametrize("step", GRANTS)
async def test_grants_survive_an_error_at_every_call(
    setup: FunctionSetup,
    clients: AwsClients,
    step: str,
    code: str,
    status: int,
    kind: type[PortError],
) -> None:
    await check(
        setup,
        clients.iam,
        GRANTS[step],
        lambda standing, operation: standing.refuse(operation, code, status),
        kind,
        partial(some_of, turn=[each for each, *_ in IAM_CODES].index(code), of=3),
    )


@pytest.mark.chaos
@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", GRANTS)
async def test_grants_survive_silence_at_every_call(
    setup: FunctionSetup, clients: AwsClients, step: str, error: Exception
) -> None:
    await check(
        setup,
        clients.iam,
        GRANTS[step],
        lambda standing, operation: standing.lose(operation, error),
        Unavailable,
        partial(some_of, turn=LOST.index(error)),
    )
