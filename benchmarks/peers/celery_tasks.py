"""`celery -A benchmarks.peers.celery_tasks worker`: one task for a document, over Redis."""

import asyncio
import os
from contextlib import AsyncExitStack
from functools import lru_cache
from importlib import import_module
from typing import Any

from benchmarks.peers.steps import VISIBILITY_SECONDS, Steps, open_steps

app: Any = import_module("celery").Celery("peers", broker=os.environ["PEERS_REDIS"])
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": VISIBILITY_SECONDS},
    # What Celery's documentation recommends for work that must not be lost.
    task_acks_late=os.environ.get("PEERS_ACKS_LATE") == "true",
    task_reject_on_worker_lost=os.environ.get("PEERS_ACKS_LATE") == "true",
)


@lru_cache
def _opened() -> tuple[asyncio.AbstractEventLoop, Steps, AsyncExitStack]:
    """Of this process of the pool, open as long as it lives."""
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    return loop, loop.run_until_complete(stack.enter_async_context(open_steps(1))), stack


async def _imported(steps: Steps, body: str) -> None:
    await steps.load(body, await steps.prepare(body))
    await steps.finish(body)


def import_document(body: str) -> None:
    """Import one document."""
    loop, steps, _ = _opened()
    loop.run_until_complete(_imported(steps, body))


task: Any = app.task(import_document)
