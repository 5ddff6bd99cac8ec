"""An endpoint of AWS that accepts connections and never answers."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.aws.functions import AwsFunctions, AwsGrants
from adapters.aws.queues import LONGEST_POLL, AwsQueues
from adapters.aws.session import READ_SECONDS, AwsSettings, open_aws
from adapters.aws.topic import AwsTopic
from adapters.ports.errors import Unavailable
from workflows.batches.names import BatchKey, names_of
from workflows.shared.dependencies import Dependency

KEY = BatchKey(case_id=7, batch_id=1)


class Hanging:
    """A server that reads and says nothing."""

    def __init__(self) -> None:
        self.requests = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await reader.read(1):
                self.requests += 1
            while await reader.read(1 << 16):
                pass
        finally:
            writer.close()


@pytest_asyncio.fixture
async def hanging() -> AsyncIterator[Hanging]:
    made = Hanging()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


@pytest.mark.parametrize("service", ["sqs", "sns", "lambda", "iam"])
async def test_a_call_that_is_not_answered_fails_after_one_timeout(
    hanging: Hanging, service: str
) -> None:
    settings = AwsSettings("eu-central-1", hanging.url, "test", "test", read_seconds=0.2)
    assert settings.attempts > 1
    async with open_aws(settings) as clients:
        arn = "arn:aws:sns:eu-central-1:123456789012:documents"
        calls = {
            "sqs": lambda: AwsQueues(clients.sqs).depth("queue"),
            "sns": lambda: AwsTopic(clients.sns, AwsQueues(clients.sqs)).is_subscribed(f"{arn}:1"),
            "lambda": lambda: AwsFunctions(clients.lambda_).exists("loader"),
            "iam": lambda: AwsGrants(clients.iam).revoke(names_of("p", KEY), "role"),
        }
        with pytest.raises(Unavailable, match=r"[Tt]imeout") as caught:
            await calls[service]()
    assert caught.value.dependency is Dependency.CLOUD
    assert hanging.requests == 1, "the run waits visibly instead of the client"


def test_a_long_poll_is_answered_within_the_timeout() -> None:
    assert READ_SECONDS >= LONGEST_POLL + 5
