"""Bridges of SQS queues that are quick to try again."""

from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING

from tests.support.sqs import Pair
from workers.shared.bridges.consumer import Accept, Retry
from workers.shared.bridges.sqs import Polling, RedriveTarget, SqsBridge, SqsQueue
from workers.shared.health import Health
from workers.shared.services.bodies import Settle, Verdict

if TYPE_CHECKING:
    pass

QUICK = Retry(first_pause=0.05, longest_pause=0.2, hold=0.5)
SOON = Polling(wait=1, quiet=2)
WHOLE = 100
"""Bytes of a body that its record would hold."""


async def settle(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
    return Settle(raw.decode())


def bridge_of(
    queues: Pair,
    accept: Accept,
    *,
    polling: Polling = SOON,
    retry: Retry = QUICK,
    ordering_key: Callable[[bytes], Hashable | None] | None = None,
    ready: Callable[[], Awaitable[bool]] | None = None,
    health: Health | None = None,
    queue: SqsQueue | None = None,
) -> SqsBridge:
    queue = queue or SqsQueue(queues.client, queues.url)
    return SqsBridge(
        queue,
        accept,
        RedriveTarget(queue, WHOLE).put,
        ordering_key=ordering_key,
        ready=ready,
        polling=polling,
        retry=retry,
        health=health or Health(),
    )
