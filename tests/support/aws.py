"""AWS for tests: MiniStack, moto, and AWS itself on request."""

import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from moto.server import ThreadedMotoServer
from moto.sqs.models import Queue

from adapters.aws.session import AwsClients, AwsSettings, open_aws
from stack.children import free_port
from stack.loader_function import Installation, install
from stack.ministack import ministack

PLAIN_HANDLER = "def handler(event, context):\n    return {'batchItemFailures': []}\n"


@dataclass(frozen=True)
class Cloud:
    """One cloud that speaks as AWS does, or AWS itself."""

    name: str
    """`ministack`, `moto` or `aws`."""
    settings: AwsSettings
    clients: AwsClients
    installed: Installation


def clouds() -> list[str]:
    """Those that tests run against; AWS itself only on request."""
    wanted = os.environ.get("DOCFLOW_TEST_AWS") == "1"
    return ["ministack", "moto", *(["aws"] if wanted else [])]


_changing = threading.RLock()


def _one_by_one(change: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is called by one thread at a time."""

    @functools.wraps(change)
    def alone(*args: Any, **keywords: Any) -> Any:
        with _changing:
            return change(*args, **keywords)

    return alone


@contextmanager
def _safe_queues() -> Iterator[None]:
    """Keep moto's queues whole.

    It serves requests in threads, and a deletion writes the list of messages anew without a lock:
    of two deletions at once, one is undone.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("add_message", "delete_message"):
            patch.setattr(Queue, name, _one_by_one(getattr(Queue, name)))
        yield


@contextmanager
def moto() -> Iterator[AwsSettings]:
    """moto's server in a thread, with an account that nothing has happened in."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    with _safe_queues():
        server.start()
        try:
            host, port = server.get_host_and_port()
            url = f"http://{host}:{port}"
            # Every server of a process has the same account behind it.
            httpx.post(f"{url}/moto-api/reset").raise_for_status()
            # What it does not know it answers with 500, at once and for ever.
            yield AwsSettings("eu-central-1", url, "test", "test", attempts=1)
        finally:
            server.stop()


@asynccontextmanager
async def cloud(name: str, folder: Path) -> AsyncIterator[Cloud]:
    """Start one of `clouds()`, with an installation of docflow on it."""
    from stack.loader_function import loader_zip

    package = loader_zip(PLAIN_HANDLER)
    if name == "ministack":
        async with ministack(folder) as settings, open_aws(settings) as clients:
            yield Cloud(name, settings, clients, await install(clients, {}, package))
    elif name == "moto":
        with moto() as settings:
            async with open_aws(settings) as clients:
                yield Cloud(name, settings, clients, await install(clients, {}, package))
    else:
        settings = AwsSettings(region=os.environ["AWS_REGION"])
        async with open_aws(settings) as clients:
            yield Cloud(name, settings, clients, await install(clients, {}, package))
